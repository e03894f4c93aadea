/**
 * Two clusters of which the foreign one runs real containers, and a pod of home that runs there. It is reached at home, through the
 * virtual node, and directly at the provider.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from '../../lab/binaries.ts';
import { compileProgram, imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import type { Daemon } from '../../lab/daemon.ts';
import { Program } from '../../lab/demo/program.ts';
import { Lab } from '../../lab/lab.ts';
import type { Credentials } from '../../src/kube/credentials.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { peerArguments } from '../pods/peer-program.ts';
import { podOf, PORTS, virtualNodeOf, type Port } from './objects.ts';

/** One way to a container. */
export interface Way {
  readonly name: string;
  readonly credentials: Credentials;
  readonly client: HttpClient;
  /** Of the pod, at that API server. */
  readonly podPath: string;
  /** Where `kubectl port-forward` listens, by what is behind it. */
  readonly forwarded: Readonly<Record<Port, number>>;
  /** The process of the virtual node, and where it tells whether it lives; absent where there is none. */
  readonly agent?: { readonly pid: number; readonly ops: URL };
  /** The API server that the way through the virtual node has more; absent where there is none. */
  readonly homeApiServerPid?: number;
}

export interface AccessOptions {
  /** Of the pod's log and of its file. */
  readonly bytes: number;
  readonly before: string | undefined;
  readonly nodeFlags: readonly string[];
  readonly progress: (line: string) => void;
}

const POLL_MS = 100;
const TIMEOUT_MS = 120_000;
const KUBECTL_LIFE_MS = 3_600_000;
type ClusterName = 'home' | 'foreign';

export class AccessBed {
  readonly ways: Way[] = [];
  readonly #lab: Lab;
  readonly #kubectl: string;
  readonly #options: AccessOptions;
  readonly #daemons: Daemon[] = [];
  readonly #forwards: Program[] = [];

  private constructor(lab: Lab, kubectl: string, options: AccessOptions) {
    this.#lab = lab;
    this.#kubectl = kubectl;
    this.#options = options;
  }

  static async up(options: AccessOptions): Promise<AccessBed> {
    const { progress, before } = options;
    const lab = await Lab.fresh({
      name: 'bench-access',
      clusters: [
        { name: 'home', workload: 'kwok', metricsServer: false },
        { name: 'foreign', metricsServer: false },
      ],
      progress,
    });
    try {
      const { kubectl } = await binaries(progress, ['kubectl']);
      const bed = new AccessBed(lab, kubectl, options);
      await bed.#add('agent');
      if (before !== undefined) await bed.#add('before', before);
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await Promise.all(this.#forwards.map(async (program) => program.stop()));
    await Promise.all(this.ways.map(async ({ client }) => client.close()));
    // Not killed: a profile is written at the end.
    await Promise.all(this.#daemons.map(async (daemon) => daemon.terminate(10_000)));
    await this.#lab.down();
  }

  /** A program, its virtual node, its pod, and the ways to that; the pod of the first is the one that is reached directly. */
  async #add(name: string, checkout?: string): Promise<void> {
    const folder = join(this.#lab.spec.dataDirectory, 'program', name);
    const main = compileProgram(folder, checkout === undefined ? {} : { checkout });
    const tenant = `home-${name}`;
    this.#apply(
      'foreign',
      runToEnd(process.execPath, [
        main,
        'tenant',
        '--peer',
        name,
        '--namespace',
        tenant,
        '--quota',
        'cpu=4,pods=9',
      ]),
    );
    const issue = ['tenant-kubeconfig', '--peer', name, '--namespace', tenant];
    const kubeconfig = runToEnd(process.execPath, [
      main,
      ...issue,
      '--kubeconfig',
      this.#lab.cluster('foreign').kubeconfig,
    ]);
    this.#apply('home', runToEnd(process.execPath, [main, 'manifests', 'crds']));
    await this.#found('home', '/apis/tributary.dev/v1alpha1/virtualnodes');
    this.#apply('home', JSON.stringify(virtualNodeOf(name, tenant, kubeconfig)));
    const agent = await this.#startAgent(name, [
      ...imageFlags(checkout),
      ...(checkout === undefined ? this.#options.nodeFlags : []),
      main,
    ]);
    await this.#found('home', `/api/v1/namespaces/${name}/serviceaccounts/default`);
    this.#apply('home', JSON.stringify(podOf(name, this.#options.bytes)));
    if (this.ways.length === 0) this.ways.push(await this.#way('direct', 'foreign', tenant));
    const homeApiServerPid = this.#lab.daemons().get('home/kube-apiserver')?.id?.pid ?? 0;
    this.ways.push({ ...(await this.#way(name, 'home', name)), agent, homeApiServerPid });
  }

  async #startAgent(name: string, command: readonly string[]): Promise<NonNullable<Way['agent']>> {
    const cluster = this.#lab.cluster('home');
    const { address } = cluster.node();
    const folder = join(this.#lab.spec.dataDirectory, name);
    const { args } = await peerArguments(cluster, { virtualNode: name, folder, address });
    const daemon = cluster.node().spawn(name, [process.execPath, ...command, ...args]);
    this.#daemons.push(daemon);
    const ops = new URL(`http://${address}:${args[args.indexOf('--ops-port') + 1]}/livez`);
    const ready = new URL('/readyz', ops);
    await daemon.waitFor('/readyz', async () => (await fetch(ready).catch(() => undefined))?.ok === true, {
      timeoutMs: TIMEOUT_MS,
    });
    return { pid: daemon.id?.pid ?? 0, ops };
  }

  /** Resolves when the pod has written its log. */
  async #way(name: string, cluster: ClusterName, namespace: string): Promise<Way> {
    const { kubeconfig } = this.#lab.cluster(cluster);
    const credentials = await parseKubeconfig(readFileSync(kubeconfig, 'utf8'));
    const podPath = `/api/v1/namespaces/${namespace}/pods/pod`;
    const { api } = this.#lab.cluster(cluster);
    await until(`${name}: the pod has written its log`, async () => {
      const { status, body } = await api.call('GET', `${podPath}/log?tailLines=1`);
      return status === 200 && body === 'ready\n';
    });
    const ports = Object.values(PORTS).map((port) => `:${port}`);
    const forward = Program.start(
      [this.#kubectl, '--kubeconfig', kubeconfig, '-n', namespace, 'port-forward', 'pod/pod', ...ports],
      { timeoutMs: KUBECTL_LIFE_MS },
    );
    this.#forwards.push(forward);
    const local = async (port: number): Promise<number> => {
      const pattern = new RegExp(`Forwarding from 127.0.0.1:(\\d+) -> ${port}\\n`, 'u');
      return Number((await forward.waitFor(pattern))[1]);
    };
    const forwarded = { file: await local(PORTS.file), word: await local(PORTS.word) };
    return { name, credentials, client: createClient(credentials), podPath, forwarded };
  }

  #apply(cluster: ClusterName, objects: string): void {
    const file = join(this.#lab.spec.dataDirectory, 'applied.yaml');
    writeFileSync(file, objects, { mode: 0o600 });
    const { kubeconfig } = this.#lab.cluster(cluster);
    runToEnd(this.#kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', file]);
  }

  async #found(cluster: ClusterName, path: string): Promise<void> {
    const { api } = this.#lab.cluster(cluster);
    await until(`${cluster}: ${path}`, async () => (await api.call('GET', path)).status === 200);
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + TIMEOUT_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within ${TIMEOUT_MS / 1000} s: ${what}`);
    await sleep(POLL_MS);
  }
}
