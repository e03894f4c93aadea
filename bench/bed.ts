/**
 * Where contenders meet: two real control planes on this machine, `home` and `foreign` with ten nodes played by kwok,
 * and the tenant as the product's own commands make it (quota, policy, rights), the same for every contender.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from '../lab/binaries.ts';
import type { Cluster } from '../lab/cluster.ts';
import { Lab } from '../lab/lab.ts';
import { TAINT_VIRTUAL_NODE } from '../src/api/names.ts';
import { createClient, type HttpClient } from '../src/kube/http-client.ts';
import { parseKubeconfig } from '../src/kube/kubeconfig.ts';
import { cpuMs } from './process-figures.ts';
import { peerArguments } from './peer-program.ts';
import { compileProgram, imageFlags, runToEnd } from '../lab/compiled-program.ts';
import { Program } from './program.ts';

export type ClusterName = 'home' | 'foreign';
type MirrorName = 'agent' | 'null';

export interface BedOptions {
  /** Of the lab. */
  readonly name: string;
  readonly progress?: (line: string) => void;
  /** Flags of Node.js for the agent besides those of the image, such as --cpu-prof. */
  readonly nodeFlags?: readonly string[];
}

const FOREIGN_NODES = 10;
const NAMESPACES: Readonly<Record<ClusterName, readonly string[]>> = {
  home: ['agent', 'null'],
  foreign: ['native'],
};
const QUOTA = 'cpu=1000,memory=1000Gi,pods=5000';
const POLL_MS = 100;
const QUIET_CPU_MS = 200;
const QUIET_TIMEOUT_MS = 30_000;
const READY_TIMEOUT_MS = 60_000;

export const tenantOf = (namespace: string): string => `home-${namespace}`;

export class Bed {
  readonly lab: Lab;
  readonly clients: Readonly<Record<ClusterName, HttpClient>>;
  readonly #main: string;
  readonly #kubectl: string;
  readonly #nodeFlags: readonly string[];
  readonly #programs: Program[] = [];

  private constructor(parts: {
    lab: Lab;
    clients: Bed['clients'];
    main: string;
    kubectl: string;
    nodeFlags: readonly string[];
  }) {
    this.lab = parts.lab;
    this.clients = parts.clients;
    this.#main = parts.main;
    this.#kubectl = parts.kubectl;
    this.#nodeFlags = parts.nodeFlags;
  }

  static async up({ name, progress = () => {}, nodeFlags = [] }: BedOptions): Promise<Bed> {
    const lab = await Lab.fresh({
      name,
      workload: 'kwok',
      clusters: [{ name: 'home' }, { name: 'foreign', nodes: FOREIGN_NODES }],
      progress,
    });
    try {
      const open = async (cluster: ClusterName): Promise<HttpClient> =>
        createClient(await parseKubeconfig(readFileSync(lab.cluster(cluster).kubeconfig, 'utf8')));
      const clients = { home: await open('home'), foreign: await open('foreign') };
      const main = compileProgram(join(lab.spec.dataDirectory, 'agent'));
      const { kubectl } = await binaries(progress, ['kubectl']);
      const bed = new Bed({ lab, clients, main, kubectl, nodeFlags });
      await bed.#furnish();
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await Promise.all(this.#programs.map(async (program) => program.stop()));
    await Promise.all(Object.values(this.clients).map(async (client) => client.close()));
    await this.lab.down();
  }

  cluster(name: ClusterName): Cluster {
    return this.lab.cluster(name);
  }

  /** CPU time of all control planes and of kwok so far. */
  get controlPlaneCpuMs(): number {
    return [...this.lab.daemons().values()].reduce(
      (sum, { id }) => sum + (id === undefined ? 0 : cpuMs(id.pid)),
      0,
    );
  }

  /** Waits until the control planes have dealt with what came before: less than a fifth of a core for a second. */
  async quiet(): Promise<void> {
    const end = performance.now() + QUIET_TIMEOUT_MS;
    for (let busyMs = Infinity; busyMs > QUIET_CPU_MS && performance.now() < end;) {
      const before = this.controlPlaneCpuMs;
      await sleep(1_000);
      busyMs = this.controlPlaneCpuMs - before;
    }
  }

  /** The product, compiled, as its image starts it; resolves when its node is Ready. */
  async startAgent(): Promise<Program> {
    const folder = join(this.lab.spec.dataDirectory, 'agent');
    const args = await peerArguments(this.cluster('home'), { virtualNode: 'agent', folder });
    return this.#start('agent', [...imageFlags(), ...this.#nodeFlags, this.#main, ...args]);
  }

  async startNullMirror(): Promise<Program> {
    const script = join(import.meta.dirname, 'null-mirror.ts');
    const files = [this.cluster('home').kubeconfig, this.#tenantKubeconfig];
    return this.#start('null', [...imageFlags(), script, ...files, 'null', 'null', tenantOf('null')]);
  }

  /** Objects as YAML or JSON, as a person would apply them. */
  apply(cluster: ClusterName, objects: string): void {
    const { kubeconfig } = this.cluster(cluster);
    runToEnd(this.#kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', '-'], objects);
  }

  async #start(name: MirrorName, args: readonly string[]): Promise<Program> {
    const program = Program.start(name, args, this.lab.spec);
    this.#programs.push(program);
    await this.until(`node ${name} Ready`, READY_TIMEOUT_MS, async () => {
      // Throws when the program has ended.
      void program.figures;
      const node = await this.cluster('home').api.get<NodeState>(`/api/v1/nodes/${name}`);
      const isReady = node?.status?.conditions?.some(
        ({ type, status }) => type === 'Ready' && status === 'True',
      );
      // The node controller takes this one off a moment after Ready.
      return isReady === true && node?.spec?.taints?.every(({ key }) => key === TAINT_VIRTUAL_NODE) !== false;
    });
    return program;
  }

  async until(what: string, timeoutMs: number, condition: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (!(await condition())) {
      if (performance.now() > end) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
      await sleep(POLL_MS);
    }
  }

  get #tenantKubeconfig(): string {
    return join(this.lab.spec.dataDirectory, 'agent', 'tenant.kubeconfig');
  }

  #tributary(...args: string[]): string {
    return runToEnd(process.execPath, [this.#main, ...args]);
  }

  async #furnish(): Promise<void> {
    const foreign = this.cluster('foreign');
    const tenants = NAMESPACES.home.map(tenantOf);
    this.apply(
      'foreign',
      this.#tributary('tenant', '--peer', 'home', '--namespace', tenants.join(), '--quota', QUOTA),
    );
    for (const [cluster, names] of Object.entries(NAMESPACES) as [ClusterName, readonly string[]][]) {
      const objects = names.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
      this.apply(cluster, list(objects));
    }
    const where = ['--namespace', tenantOf('agent'), '--kubeconfig', foreign.kubeconfig];
    const kubeconfig = this.#tributary('tenant-kubeconfig', '--peer', 'home', ...where);
    mkdirSync(join(this.lab.spec.dataDirectory, 'agent'), { recursive: true });
    writeFileSync(this.#tenantKubeconfig, kubeconfig, { mode: 0o600 });
    this.apply('home', this.#tributary('manifests', 'crds'));
    await this.until('the VirtualNode kind', READY_TIMEOUT_MS, async () => {
      const { status } = await this.cluster('home').api.call(
        'GET',
        '/apis/tributary.dev/v1alpha1/virtualnodes',
      );
      return status === 200;
    });
    this.apply('home', list(virtualNode(kubeconfig)));
    await this.#ready();
  }

  /** Accounts and the quota are there a moment after their namespaces. */
  async #ready(): Promise<void> {
    for (const [cluster, names] of Object.entries(NAMESPACES) as [ClusterName, readonly string[]][]) {
      for (const name of names)
        await this.#exists(cluster, `/api/v1/namespaces/${name}/serviceaccounts/default`);
    }
    for (const name of NAMESPACES.home.map(tenantOf)) {
      const path = `/api/v1/namespaces/${name}/resourcequotas/tributary`;
      await this.until(path, READY_TIMEOUT_MS, async () => {
        const quota = await this.cluster('foreign').api.get<{ status?: { hard?: object } }>(path);
        return quota?.status?.hard !== undefined;
      });
    }
  }

  async #exists(cluster: ClusterName, path: string): Promise<void> {
    const { api } = this.cluster(cluster);
    await this.until(path, READY_TIMEOUT_MS, async () => (await api.get(path)) !== undefined);
  }
}

interface NodeState {
  readonly spec?: { readonly taints?: readonly { readonly key: string }[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const list = (items: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

const virtualNode = (kubeconfig: string): object[] => [
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'agent', name: 'foreign-kubeconfig' },
    stringData: { kubeconfig },
  },
  {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'VirtualNode',
    metadata: { name: 'agent' },
    spec: {
      kubeconfigSecretRef: { namespace: 'agent', name: 'foreign-kubeconfig' },
      resources: { cpu: '1000', memory: '1000Gi', pods: '5000' },
      namespaces: [{ homeNamespace: 'agent', tenantNamespace: tenantOf('agent') }],
    },
  },
];
