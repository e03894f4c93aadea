/** Two real control planes with pretended nodes, and agents as real processes that come and go between them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Cluster } from '../../../lab/cluster.ts';
import { freePorts } from '../../../lab/free-ports.ts';
import { mainModule } from '../../../lab/own-program.ts';
import type { LabSpec } from '../../../lab/spec.ts';
import { type FaultProxy, proxyOf } from '../../../faults/proxy/proxy.ts';
import { LABEL_PROVIDER } from '../../../src/api/names.ts';
import { pods, secrets } from '../../../src/api/resources.ts';
import { API_VERSION, type VirtualNode, virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { openTokenIssuer, tenantKubeconfigCommand } from '../../../src/cli/tenant-kubeconfig.ts';
import { tenantCommand } from '../../../src/cli/tenant.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { eventually } from '../eventually.ts';
import type { BorrowedLab } from './borrowed-lab.ts';
import { applyYaml, borrowPair, printed } from './rights-cluster.ts';

export const NODE = 'faulty';
const AGENT = 'agent';
const SECRET = { namespace: 'shop', name: 'foreign' };
const READY_TIMEOUT_MS = 60_000;

export class AgentLab {
  readonly home: HttpClient;
  readonly foreign: HttpClient;
  readonly homeCluster: Cluster;
  readonly foreignCluster: Cluster;
  /** Between the agents and the foreign API server. */
  readonly proxy: FaultProxy;
  /** The kubeconfig that works, through the proxy. */
  readonly kubeconfig: string;
  readonly #borrowed: BorrowedLab;
  readonly #folder: string;
  /** The log of all agents, in order; it is in the lab's folder and is removed with it. */
  readonly #log: number;
  /** By name. */
  readonly #agents = new Map<string, ChildProcess>();

  private constructor(parts: {
    borrowed: BorrowedLab;
    home: HttpClient;
    foreign: HttpClient;
    proxy: FaultProxy;
    kubeconfig: string;
  }) {
    this.#borrowed = parts.borrowed;
    this.home = parts.home;
    this.foreign = parts.foreign;
    this.homeCluster = parts.borrowed.lab.cluster('home');
    this.foreignCluster = parts.borrowed.lab.cluster('foreign');
    this.proxy = parts.proxy;
    this.kubeconfig = parts.kubeconfig;
    this.#folder = mkdtempSync(join(tmpdir(), 'tributary-agent-'));
    this.#log = openSync(join(this.#folder, 'agent.log'), 'a');
  }

  /** `peer`: the name under which the provider knows home; `provider`: its ClusterID, if the two are peers. */
  static async up({ peer = 'rome', provider }: { peer?: string; provider?: string } = {}): Promise<AgentLab> {
    const borrowed = await borrowPair();
    const { lab } = borrowed;
    const open = async (cluster: string): Promise<HttpClient> =>
      createClient(await parseKubeconfig(readFileSync(lab.cluster(cluster).kubeconfig, 'utf8')));
    const foreign = lab.cluster('foreign');
    const proxy = await proxyOf(foreign);
    const tenant = ['--peer', peer, '--namespace', 'tenant'];
    await applyYaml(
      foreign,
      await printed(tenantCommand, [
        ...tenant,
        '--external-names',
        '--quota',
        'cpu=100,memory=100Gi,pods=60',
      ]),
    );
    const direct = await printed(tenantKubeconfigCommand(openTokenIssuer), [
      ...tenant,
      '--kubeconfig',
      foreign.kubeconfig,
    ]);
    const kubeconfig = direct.replace(foreign.server, proxy.url);
    const all = new AgentLab({
      borrowed,
      home: await open('home'),
      foreign: await open('foreign'),
      proxy,
      kubeconfig,
    });
    try {
      await all.#furnish(provider);
    } catch (error) {
      await all.down();
      throw error;
    }
    return all;
  }

  async #furnish(provider: string | undefined): Promise<void> {
    await this.homeCluster.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const account = '/api/v1/namespaces/shop/serviceaccounts/default';
    await eventually('the account', async () => (await this.homeCluster.api.get(account)) !== undefined);
    await this.home.create(secrets, { metadata: SECRET, data: { kubeconfig: base64(this.kubeconfig) } });
    const spec: VirtualNode['spec'] = {
      kubeconfigSecretRef: SECRET,
      // More than the tenant's quota, so that the provider has something to refuse.
      resources: { cpu: '1000', memory: '1000Gi', pods: '100' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }],
    };
    const kind = { apiVersion: API_VERSION, kind: 'VirtualNode' };
    const labels = provider === undefined ? {} : { [LABEL_PROVIDER]: provider };
    await this.home.create(virtualNodes, { ...kind, metadata: { name: NODE, labels }, spec });
    const keys = await this.homeCluster.pki.authority.issue({ commonName: 'agent', ips: ['127.0.0.1'] });
    writeFileSync(join(this.#folder, 'tls.crt'), keys.cert);
    writeFileSync(join(this.#folder, 'tls.key'), keys.key);
  }

  get spec(): LabSpec {
    return this.#borrowed.lab.spec;
  }

  async down(): Promise<void> {
    await Promise.all([...this.#agents.keys()].map(async (name) => this.kill(name)));
    await Promise.all([this.home.close(), this.foreign.close(), this.proxy.stop()]);
    this.homeCluster.api.close();
    this.foreignCluster.api.close();
    await this.#borrowed.giveBack();
    closeSync(this.#log);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /**
   * `kubeconfig`: a file, of the home cluster; default: of its administrator. `others`: VirtualNodes that the process serves
   * besides. `name`: of the process, as that of a pod; several may run. `options`: further ones, by long name.
   */
  async start({
    kubeconfig = this.homeCluster.kubeconfig,
    others = [],
    name = AGENT,
    role = 'peer',
    options = {},
  }: {
    kubeconfig?: string;
    others?: readonly string[];
    name?: string;
    role?: 'all' | 'peer';
    options?: Readonly<Record<string, string | number>>;
  } = {}): Promise<void> {
    const [free = 0] = await freePorts(1);
    // Ports are counted from the first one, and the next may be taken.
    const kubelet = others.length === 0 ? free : 0;
    const all = {
      kubeconfig,
      'virtual-node': [NODE, ...others].join(','),
      'node-address': '127.0.0.1',
      'kubelet-port': kubelet,
      'ops-port': 0,
      'tls-cert-file': join(this.#folder, 'tls.crt'),
      'tls-private-key-file': join(this.#folder, 'tls.key'),
      ...options,
    };
    const args = Object.entries(all).flatMap(([option, value]) => [`--${option}`, String(value)]);
    const agent = spawn(process.execPath, [mainModule(), 'run', role, ...args], {
      stdio: ['ignore', this.#log, this.#log],
      env: { ...process.env, POD_NAME: name },
    });
    this.#agents.set(name, agent);
  }

  /** kill -9. */
  async kill(name: string = AGENT): Promise<void> {
    this.signal(name, 'SIGKILL');
    await this.ended(name);
  }

  signal(name: string, signal: 'SIGCONT' | 'SIGKILL' | 'SIGSTOP' | 'SIGTERM'): void {
    this.#agents.get(name)?.kill(signal);
  }

  /** Process ID of one that was started; fails if it has ended. */
  pid(name: string = AGENT): number {
    const { pid } = this.#agents.get(name) ?? {};
    if (pid === undefined) throw new Error(`no agent ${name} runs`);
    return pid;
  }

  /** Resolves when that process has ended, by itself or by a signal; at once if it has before, or never was. */
  async ended(name: string): Promise<void> {
    const agent = this.#agents.get(name);
    if (agent === undefined) return;
    if (agent.exitCode === null && agent.signalCode === null) await once(agent, 'exit');
    if (this.#agents.get(name) === agent) this.#agents.delete(name);
  }

  /** What all agents have logged. */
  get log(): string {
    return readFileSync(join(this.#folder, 'agent.log'), 'utf8');
  }

  async ready(): Promise<void> {
    await eventually(
      'the node is Ready',
      async () => (await this.condition('Ready'))?.status === 'True',
      READY_TIMEOUT_MS,
    );
  }

  async condition(type: string): Promise<{ status: string; reason: string; message: string } | undefined> {
    const { status } = await this.home.get(virtualNodes, { name: NODE });
    return status?.conditions?.find((condition) => condition.type === type);
  }

  async use(kubeconfig: string): Promise<void> {
    const body = { data: { kubeconfig: base64(kubeconfig) } };
    await this.home.patch(secrets, SECRET, { type: 'merge', body });
  }

  async pods(side: 'home' | 'foreign'): Promise<Pod[]> {
    const namespace = side === 'home' ? 'shop' : 'tenant';
    return (await this[side].list(pods, { namespace })).items;
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
