/**
 * One home with many foreign clusters. These are pretended by one real API server, in which each has a tenant: a namespace, an account,
 * a token and a quota of its own. So it costs the home what real ones would; what it costs the provider is that of many.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from '../../lab/binaries.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { compileProgram, imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { Lab } from '../../lab/lab.ts';
import { customResourceDefinitions } from '../../src/api/crd/index.ts';
import { AGENT_OF_ALL, HOME_LEASE, LABEL_AGENT, LABEL_PROVIDER } from '../../src/api/names.ts';
import { forgeManualTenant } from '../../src/hosting/tenants/manual-tenant.ts';
import { present } from '../../src/lib/fields.ts';
import { forgeKubeconfig, peerAccount } from '../../src/peering/tenant-kubeconfig.ts';
import { Program } from '../frame/program.ts';

const SYSTEM = 'tributary-system';
const TIMEOUT_MS = 600_000;
const POLL_MS = 100;
/** A batch of tokens that are asked for at once. */
const AT_ONCE = 16;

export const nameOf = (peer: number): string => `peer-${peer}`;
/** A ClusterID that a peer could have. */
const idOf = (peer: number): string =>
  `p${peer.toString(2).replaceAll('0', 'a').replaceAll('1', 'b')}`.padEnd(26, 'x');

export class PeersBed {
  readonly lab: Lab;
  readonly #main: string;
  readonly #kubectl: string;
  readonly #nodeFlags: readonly string[];
  readonly #programs: Program[] = [];

  private constructor(lab: Lab, main: string, kubectl: string, nodeFlags: readonly string[]) {
    this.lab = lab;
    this.#main = main;
    this.#kubectl = kubectl;
    this.#nodeFlags = nodeFlags;
  }

  /** With tenants for that many peers over there. `checkout`: whose program it is, if it is another one's. */
  static async up(options: {
    peers: number;
    nodeFlags: readonly string[];
    checkout?: string | undefined;
    say: (line: string) => void;
  }): Promise<PeersBed> {
    const { peers, nodeFlags, checkout, say } = options;
    const clusters = [{ name: 'home' }, { name: 'foreign', nodes: 1 }];
    const lab = await Lab.fresh({ name: 'bench-peers', workload: 'kwok', clusters, progress: say });
    try {
      const main = compileProgram(join(lab.spec.dataDirectory, 'agent'), present({ checkout }));
      const { kubectl } = await binaries(say, ['kubectl']);
      const bed = new PeersBed(lab, main, kubectl, [...imageFlags(checkout), ...nodeFlags]);
      await bed.#furnish(peers, say);
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await this.stopAll();
    await this.lab.down();
  }

  cluster(name: 'home' | 'foreign'): Cluster {
    return this.lab.cluster(name);
  }

  /** One process of role `peers`, for all that are labelled for it. */
  async startPeers(): Promise<Program> {
    return this.#start('peers', ['peers', ...(await this.#arguments('peers'))]);
  }

  /** One process of role `peer` for one of them. */
  async startPeer(peer: number): Promise<Program> {
    const name = nameOf(peer);
    return this.#start(name, ['peer', '--virtual-node', name, ...(await this.#arguments(name))]);
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#programs.splice(0).map(async (program) => program.stop()));
  }

  /** VirtualNodes of the first ones, and no others; their Nodes are made anew. */
  async setPeers(count: number, isShared: boolean): Promise<void> {
    for (const plural of ['virtualnodes.tributary.dev', 'nodes'])
      this.#kubectlHome(['delete', plural, '--all', '--ignore-not-found', '--wait=true']);
    await this.until('no Node is left', async () => (await this.nodes()).length === 0);
    const objects = Array.from({ length: count }, (_none, peer) => virtualNode(peer, isShared));
    if (count > 0) this.#apply('home', objects);
  }

  /** What all VirtualNodes offer; returns when all Nodes show it. */
  async offer(count: number, cpu: number, isShared: boolean): Promise<void> {
    const objects = Array.from({ length: count }, (_none, peer) => virtualNode(peer, isShared, cpu));
    this.#apply('home', objects);
    await this.until(`all Nodes show ${cpu} CPUs`, async () =>
      (await this.nodes()).every(({ status }) => status?.allocatable?.['cpu'] === String(cpu)),
    );
  }

  async allReady(count: number, alive: readonly Program[]): Promise<void> {
    await this.until(`${count} Nodes are Ready`, async () => {
      for (const program of alive) void program.pid;
      const ready = (await this.nodes()).filter(({ status }) =>
        status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'),
      );
      return ready.length === count;
    });
  }

  async nodes(): Promise<readonly NodeState[]> {
    return (await this.cluster('home').api.get<{ items: NodeState[] }>('/api/v1/nodes'))?.items ?? [];
  }

  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + TIMEOUT_MS;
    while (!(await condition())) {
      if (performance.now() > end) throw new Error(`not within ${TIMEOUT_MS / 1000} s: ${what}`);
      await sleep(POLL_MS);
    }
  }

  #start(name: string, args: readonly string[]): Program {
    const program = Program.start(
      name,
      [process.execPath, ...this.#nodeFlags, this.#main, 'run', ...args],
      this.lab.spec,
    );
    this.#programs.push(program);
    return program;
  }

  async #arguments(name: string): Promise<string[]> {
    const home = this.cluster('home');
    const folder = join(this.lab.spec.dataDirectory, 'certificates', name);
    const pair = await home.pki.authority.issue({ commonName: name, ips: ['127.0.0.1'] });
    mkdirSync(folder, { recursive: true });
    const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key, { mode: 0o600 });
    const [ops = 0] = await freePorts(1);
    const options = {
      kubeconfig: home.kubeconfig,
      'node-address': '127.0.0.1',
      'kubelet-port': '0',
      'ops-port': String(ops),
      'tls-cert-file': cert,
      'tls-private-key-file': key,
    };
    return Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
  }

  async #furnish(peers: number, say: (line: string) => void): Promise<void> {
    const all = Array.from({ length: peers }, (_none, peer) => peer);
    say(`${peers} tenants and namespaces`);
    const quota = { cpu: '100', memory: '100Gi', pods: '100' };
    const common = { quota, podSecurity: 'baseline', keepForSeconds: 86_400, isolation: 'Tenant' } as const;
    const tenants = all.flatMap((peer) =>
      forgeManualTenant({ peer: nameOf(peer), namespaces: [`tenant-${peer}`], ...common }),
    );
    this.#apply('foreign', [
      ...customResourceDefinitions(),
      ...new Map(tenants.map((one) => [JSON.stringify([one.kind, one.metadata]), one])).values(),
      ...all.map(homeLease),
    ]);
    this.#apply('home', [
      ...customResourceDefinitions(),
      ...[SYSTEM, ...all.map((peer) => `shop-${peer}`)].map((name) => ({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name },
      })),
    ]);
    await this.until('the VirtualNode kind', async () => {
      const path = '/apis/tributary.dev/v1alpha1/virtualnodes';
      return (await this.cluster('home').api.call('GET', path)).status === 200;
    });
    const secrets: object[] = [];
    for (let from = 0; from < peers; from += AT_ONCE) {
      const some = all.slice(from, from + AT_ONCE);
      secrets.push(...(await Promise.all(some.map(async (peer) => this.#secret(peer)))));
    }
    this.#apply('home', secrets);
  }

  async #secret(peer: number): Promise<object> {
    const foreign = this.cluster('foreign');
    const { namespace, name } = peerAccount(nameOf(peer));
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const { body } = await foreign.api.call('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 86_400 },
    });
    const { status } = JSON.parse(body) as { status: { token: string } };
    const kubeconfig = forgeKubeconfig({
      peer: nameOf(peer),
      server: foreign.server,
      certificateAuthorityData: Buffer.from(foreign.pki.authority.cert).toString('base64'),
      token: status.token,
    });
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: SYSTEM, name: `tributary-kubeconfig-${idOf(peer)}` },
      stringData: { kubeconfig: JSON.stringify(kubeconfig) },
    };
  }

  #apply(cluster: 'home' | 'foreign', items: readonly object[]): void {
    const { kubeconfig } = this.cluster(cluster);
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    runToEnd(this.#kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', '-'], text);
  }

  #kubectlHome(args: readonly string[]): void {
    runToEnd(this.#kubectl, ['--kubeconfig', this.cluster('home').kubeconfig, ...args]);
  }
}

interface NodeState {
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly allocatable?: Readonly<Record<string, string>>;
  };
}

/** As the guardian of a provider makes it in the namespace of each tenant, and the agent renews it. */
const homeLease = (peer: number): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: `tenant-${peer}`, name: HOME_LEASE },
  spec: { leaseDurationSeconds: 40 },
});

const virtualNode = (peer: number, isShared: boolean, cpu = 100): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'VirtualNode',
  metadata: {
    name: nameOf(peer),
    labels: { [LABEL_PROVIDER]: idOf(peer), ...(isShared && { [LABEL_AGENT]: AGENT_OF_ALL }) },
  },
  spec: {
    kubeconfigSecretRef: { namespace: SYSTEM, name: `tributary-kubeconfig-${idOf(peer)}` },
    resources: { cpu: String(cpu), memory: '100Gi', pods: '100' },
    namespaces: [{ homeNamespace: `shop-${peer}`, tenantNamespace: `tenant-${peer}` }],
  },
});
