/**
 * How long the program for people takes to answer, as it is released: from the start of the process to its end, compared with a
 * Node.js that does nothing, in the same run; and how large what people install is.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';

import { advertisements } from '../src/api/advertisement.ts';
import { clusterModes } from '../src/api/cluster-mode.ts';
import { foreignClusters } from '../src/api/foreign-cluster.ts';
import { CLUSTER_LEASE, SYSTEM_NAMESPACE } from '../src/api/manifest.ts';
import { LABEL_NODE_TYPE, LABEL_PROVIDER, NODE_TYPE_VIRTUAL } from '../src/api/names.ts';
import { namespaceOffloadings, OFFLOADING_NAME } from '../src/api/namespace-offloading.ts';
import { peeringRequests } from '../src/api/peering-request.ts';
import { leases, nodes, pods, type ResourceType } from '../src/api/resources.ts';
import { tunnels } from '../src/api/tunnel.ts';
import { virtualNodes } from '../src/api/virtual-node.ts';
import type { KubeObject } from '../src/api/wire.ts';
import { FakeApiServer } from '../test/support/fake-api/fake-api-server.ts';
import { buildRelease } from '../tools/release/release.ts';
import { parsedOptions, refusePositionals, wholeNumber } from './frame/arguments.ts';
import { imageBytes } from './frame/image-size.ts';
import { runProgram } from './frame/interruption.ts';
import { scratchFolder } from './frame/scratch.ts';
import { shown, spread, table } from './frame/statistics.ts';

const USAGE = `usage: node bench/cli.ts [--rounds 5] [--peers 20]

  --rounds NUMBER  how often each command is run; make bench-cli ROUNDS=NUMBER
  --peers NUMBER   which the cluster has that is asked; from 0 on
  --check          says whether these options can be used, and measures nothing
`;

const OPTIONS = {
  rounds: { type: 'string', default: '5' },
  peers: { type: 'string', default: '20' },
  check: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Longer than a run takes. */
const LEASE_MS = 600_000;
const root = join(import.meta.dirname, '..');

interface Ran {
  ms: number;
  /** User and system; does not depend on what else the machine does as much as the time does. */
  cpuMs: number;
}

/** A shell tells what its child has used. */
const TIMED = '"$@" >/dev/null; code=$?; times; exit $code';

async function run(name: string, args: readonly string[]): Promise<Ran> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const began = performance.now();
  const child = spawn('sh', ['-c', TIMED, 'sh', process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  child.once('error', reject);
  child.once('close', resolve);
  const code = await promise;
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${err}`);
  const ms = performance.now() - began;
  // Two lines, of the shell and of its children: `0m0.09s 0m0.03s`.
  const used = [...(out.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return {
    ms,
    cpuMs: used.reduce(
      (sum, [, minutes, seconds]) => sum + (Number(minutes) * 60 + Number(seconds)) * 1000,
      0,
    ),
  };
}

const TYPES = [
  foreignClusters,
  virtualNodes,
  tunnels,
  namespaceOffloadings,
  peeringRequests,
  advertisements,
  clusterModes,
] as ResourceType<KubeObject>[];

/** An API server in memory with peers, over TLS, so that only the program is measured. All is well in that cluster. */
async function clusterWithPeers(
  directory: string,
  peers: number,
): Promise<{ api: FakeApiServer; kubeconfig: string }> {
  const api = await new FakeApiServer({ types: TYPES }).start();
  const renewTime = new Date(Date.now() + LEASE_MS).toISOString();
  api.seed(leases, { metadata: { namespace: SYSTEM_NAMESPACE, name: CLUSTER_LEASE }, spec: { renewTime } });
  for (let peer = 0; peer < peers; peer++) seedPeer(api, peer);
  const { server, ca = '' } = api.credentials();
  const kubeconfig = join(directory, 'kubeconfig');
  const cluster = { server: server.href, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const named = { cluster: 'bench', user: 'bench' };
  const content = {
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: { token: 'bench' } }],
    contexts: [{ name: 'bench', context: named }],
    'current-context': 'bench',
  };
  writeFileSync(kubeconfig, JSON.stringify(content));
  return { api, kubeconfig };
}

/** Both directions, with a tunnel, a virtual node, and a namespace that is offloaded with one pod. */
function seedPeer(api: FakeApiServer, peer: number): void {
  const clusterID = `peer${String(peer).padStart(2, '0')}`.padEnd(26, 'a');
  const name = `node-${peer}`;
  const namespace = `shop-${peer}`;
  const phase = { phase: 'Established', since: '2026-01-01T00:00:00Z' };
  const conditions = [{ type: 'Ready', status: 'True', reason: 'AsExpected', message: '' }];
  const status = { clusterID, clusterName: `cluster-${peer}`, outgoing: phase, incoming: phase };
  api.seed(foreignClusters, {
    metadata: { name: clusterID },
    spec: { clusterID },
    status: { ...status, link: { connected: true } },
  });
  const connection = { rttMs: 12.3, lossPercent: 0 };
  api.seed(tunnels, {
    metadata: { name: clusterID },
    spec: { clusterID },
    status: { connection, conditions },
  });
  api.seed(virtualNodes, {
    metadata: { name, labels: { [LABEL_PROVIDER]: clusterID } },
    spec: { resources: {} },
    status: { conditions },
  });
  api.seed(nodes, {
    metadata: { name, labels: { [LABEL_NODE_TYPE]: NODE_TYPE_VIRTUAL } },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' } },
  });
  api.seed(namespaceOffloadings, {
    metadata: { namespace, name: OFFLOADING_NAME },
    spec: {},
    status: { conditions },
  });
  api.seed(pods, {
    metadata: { namespace, name: 'web' },
    spec: { nodeName: name, containers: [{ name: 'web' }] },
    status: { phase: 'Running' },
  });
}

/** Each command is run in each round: what else the machine does meets all. The first round fills caches, and is not counted. */
async function measure(
  commands: ReadonlyMap<string, readonly string[]>,
  rounds: number,
  signal: AbortSignal,
): Promise<Map<string, Ran[]>> {
  const all = new Map([...commands.keys()].map((name): [string, Ran[]] => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, args] of commands) {
      signal.throwIfAborted();
      const ran = await run(name, args);
      if (round > 0) all.get(name)?.push(ran);
    }
  }
  return all;
}

async function compare(rounds: number, peers: number, signal: AbortSignal): Promise<void> {
  const directory = scratchFolder('cli');
  const files = await buildRelease(root, join(directory, 'release'), undefined);
  const { api, kubeconfig } = await clusterWithPeers(directory, peers);
  try {
    const program = join(directory, 'release', 'tributary');
    const commands = new Map([
      ['node -e 0 (reference)', ['-e', '0']],
      ['tributary version', [program, 'version']],
      ['tributary --help', [program, '--help']],
      [`tributary status, ${peers} peers`, [program, '--kubeconfig', kubeconfig, 'status']],
    ]);
    const load = `${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`;
    reportTimes(await measure(commands, rounds, signal), `${rounds}; load of the machine ${load}`);
    reportSizes(files);
  } finally {
    await api.stop();
  }
}

function reportTimes(measured: ReadonlyMap<string, readonly Ran[]>, of: string): void {
  const figures = (ran: readonly Ran[], figure: (one: Ran) => number): string =>
    shown(spread(ran.map(figure)), 0);
  const rows = [...measured].map(([name, ran]) => [
    name,
    figures(ran, ({ ms }) => ms),
    figures(ran, ({ cpuMs }) => cpuMs),
  ]);
  process.stdout.write(`\nFrom start to end, median (least–most) of ${of}\n\n`);
  process.stdout.write(table([['', 'ms', 'CPU ms'], ...rows]));
}

function reportSizes(files: readonly { readonly name: string; readonly bytes: number }[]): void {
  const image = imageBytes();
  const sizes = [...files, ...(image === undefined ? [] : [{ name: 'image (OCI archive)', bytes: image }])];
  const rows = sizes.map(({ name, bytes }) => [name, (bytes / 1024).toFixed(0)]);
  process.stdout.write(`\n${table([['', 'KiB'], ...rows])}`);
  if (image === undefined) process.stdout.write('image: not built on this machine yet (make image)\n');
}

await runProgram('bench-cli', async (signal) => {
  const { values, positionals } = parsedOptions(process.argv.slice(2), OPTIONS);
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  refusePositionals(positionals, '--help lists all options');
  const rounds = wholeNumber('rounds', values.rounds);
  const peers = wholeNumber('peers', values.peers, { least: 0 });
  if (!values.check) await compare(rounds, peers, signal);
});
