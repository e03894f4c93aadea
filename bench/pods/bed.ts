/**
 * Where contenders meet: two real control planes on this machine, `home` and `foreign` with ten nodes played by kwok,
 * and the tenant as the product's own commands make it (quota, policy, rights), the same for every contender.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import yaml from 'yaml';

import { binaries } from '../../lab/binaries.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { Lab } from '../../lab/lab.ts';
import { ANNOTATION_PEER_PREFIXES, LABEL_PROVIDER, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { namespaces } from '../../src/api/resources.ts';
import type { ReflectionRule } from '../../src/api/reflection.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { auditOf } from '../frame/audit.ts';
import type { OtherProgram } from '../frame/bench.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { HOME_ID, HOME_SEEN_AS, joinNetworks, PROVIDER_ID } from '../../test/support/labs/services-lab.ts';
import { peerArguments } from './peer-program.ts';
import { compileProgram, imageEnvironment, imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import { Program } from '../frame/program.ts';
import { virtualNodeObjects } from '../frame/virtual-node.ts';

export type ClusterName = 'home' | 'foreign';
/** A namespace at home whose pods one program runs in a tenant of the foreign cluster; its virtual node has the same name. */
type MirrorName = string;

/** Ours, and that of another checkout. */
export type Version = 'agent' | 'before';
/** Those that take part. @param before the other checkout */
export const versionsOf = (before: string | undefined): readonly Version[] =>
  before === undefined ? ['agent'] : ['agent', 'before'];

export interface BedOptions {
  /** Of the lab. */
  readonly name: string;
  readonly progress?: (line: string) => void;
  /** Flags of Node.js for the agent besides those of the image, such as --cpu-prof. */
  readonly nodeFlags?: readonly string[];
  /** The folder of another checkout, whose program is to take part. */
  readonly before?: string | undefined;
  readonly others?: readonly OtherProgram[];
  /** Of each tenant. */
  readonly mostPods?: number;
  /** Of kwok, for 250 pods each. Default 10. */
  readonly foreignNodes?: number;
  /** Of the virtual nodes' namespaces. Default: the product's. */
  readonly reflection?: ReflectionRule[];
  /** Both API servers tell who asks for what. Default: no. */
  readonly audit?: boolean;
  /** Virtual nodes of ours, each with a namespace of its name. Default: one, `agent`. */
  readonly agents?: readonly string[];
  /** Both API servers keep what they store as JSON, so that it can be read and written in etcd. Default: as they do, Protobuf. */
  readonly storesJson?: boolean;
  /** A Tunnel says that the networks are joined. No packet uses it. Default: no. */
  readonly network?: boolean;
}

/** A program of ours that can be stopped and started again. */
export interface Restartable {
  /** Does not wait until it is ready. */
  readonly start: (environment?: Readonly<Record<string, string>>) => Program;
  /** Of /readyz and /metrics. */
  readonly opsUrl: string;
}

const FOREIGN_NODES = 10;
const MOST_PODS = 5_000;
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
  readonly #options: BedOptions;
  readonly #programs: Program[] = [];

  private constructor(parts: {
    lab: Lab;
    clients: Bed['clients'];
    main: string;
    kubectl: string;
    options: BedOptions;
  }) {
    this.lab = parts.lab;
    this.clients = parts.clients;
    this.#main = parts.main;
    this.#kubectl = parts.kubectl;
    this.#options = parts.options;
  }

  static async up(options: BedOptions): Promise<Bed> {
    const { name, progress = () => {}, foreignNodes = FOREIGN_NODES } = options;
    const lab = await Lab.fresh({
      name,
      workload: 'kwok',
      clusters: [{ name: 'home' }, { name: 'foreign', nodes: foreignNodes }].map((cluster) => ({
        ...cluster,
        flags: { 'kube-apiserver': apiServerFlags(options, cluster.name) },
      })),
      progress,
    });
    try {
      const open = async (cluster: ClusterName): Promise<HttpClient> =>
        createClient(await parseKubeconfig(readFileSync(lab.cluster(cluster).kubeconfig, 'utf8')));
      const clients = { home: await open('home'), foreign: await open('foreign') };
      const main = compileProgram(join(lab.spec.dataDirectory, 'program', 'agent'));
      const { kubectl } = await binaries(progress, ['kubectl']);
      const bed = new Bed({ lab, clients, main, kubectl, options });
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
    return this.#startAgent('agent', this.#agentCommand());
  }

  /** The same, or the program of the other checkout in its place, started by the caller. @param nodeFlags further ones of Node.js */
  async restartable(
    which: Version,
    nodeFlags: readonly string[],
    node: MirrorName = 'agent',
  ): Promise<Restartable> {
    const program = which === 'agent' ? this.#agentCommand(nodeFlags) : this.#beforeCommand(nodeFlags);
    const { command, opsPort } = await this.#peer(node, program);
    const own = which === 'agent' ? {} : this.#beforeEnvironment();
    return {
      opsUrl: `http://127.0.0.1:${opsPort}`,
      start: (environment) => this.#launch(node, command, { ...own, ...environment }),
    };
  }

  #agentCommand(more: readonly string[] = []): string[] {
    return [...imageFlags(), ...(this.#options.nodeFlags ?? []), ...more, this.#main];
  }

  /** The program of the other checkout, with the flags of that checkout's image. */
  async startBefore(): Promise<Program> {
    return this.#startAgent('before', this.#beforeCommand(), this.#beforeEnvironment());
  }

  /** That of its own image, and nothing that only ours has. */
  #beforeEnvironment(): Record<string, string | undefined> {
    const ours = Object.keys(imageEnvironment()).map((name) => [name, undefined] as const);
    return { ...Object.fromEntries(ours), ...imageEnvironment(this.#options.before) };
  }

  #beforeCommand(more: readonly string[] = []): string[] {
    const { before: checkout } = this.#options;
    if (checkout === undefined) throw new Error('no other checkout is named: --before FOLDER');
    const main = compileProgram(join(this.lab.spec.dataDirectory, 'program', 'before'), { checkout });
    return [...imageFlags(checkout), ...more, main];
  }

  async #startAgent(name: MirrorName, command: readonly string[], environment = {}): Promise<Program> {
    return this.#start(name, (await this.#peer(name, command)).command, environment);
  }

  async #peer(name: MirrorName, program: readonly string[]): Promise<{ command: string[]; opsPort: number }> {
    const folder = join(this.lab.spec.dataDirectory, name);
    const { args, opsPort } = await peerArguments(this.cluster('home'), { virtualNode: name, folder });
    return { command: [process.execPath, ...program, ...args], opsPort };
  }

  /** Of another system, which makes the node by itself. */
  async startOther({ name, command }: OtherProgram): Promise<Program> {
    return this.#start(name, ['sh', '-c', `exec ${command}`], {
      HOME_KUBECONFIG: this.cluster('home').kubeconfig,
      FOREIGN_KUBECONFIG: this.cluster('foreign').kubeconfig,
      NODE: name,
      HOME_NAMESPACE: name,
      FOREIGN_NAMESPACE: tenantOf(name),
    });
  }

  async startNullMirror(): Promise<Program> {
    const script = join(import.meta.dirname, 'null-mirror.ts');
    const files = [this.cluster('home').kubeconfig, this.tenantKubeconfig];
    const command = [process.execPath, ...imageFlags(), script, ...files];
    return this.#start('null', [...command, 'null', 'null', tenantOf('null'), String(this.#mostPods)]);
  }

  /** Objects as YAML or JSON, as a person would apply them. */
  apply(cluster: ClusterName, objects: string): void {
    const { kubeconfig } = this.cluster(cluster);
    runToEnd(this.#kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', '-'], objects);
  }

  async #start(name: MirrorName, command: readonly string[], environment = {}): Promise<Program> {
    const program = this.#launch(name, command, environment);
    await this.nodeReady(name, program);
    return program;
  }

  #launch(name: MirrorName, command: readonly string[], environment = {}): Program {
    const program = Program.start(name, command, this.lab.spec, environment);
    this.#programs.push(program);
    return program;
  }

  async nodeReady(name: MirrorName, program: Program): Promise<void> {
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
  }

  async until(what: string, timeoutMs: number, condition: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (!(await condition())) {
      if (performance.now() > end) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
      await sleep(POLL_MS);
    }
  }

  /** Path of what home has in the foreign cluster: its rights, and the policies that hold for it. */
  get tenantKubeconfig(): string {
    return join(this.lab.spec.dataDirectory, 'tenant.kubeconfig');
  }

  get #mostPods(): number {
    return this.#options.mostPods ?? MOST_PODS;
  }

  /** Those that a program of ours serves. */
  get #ours(): MirrorName[] {
    const { before, agents = ['agent'] } = this.#options;
    return [...agents, ...(before === undefined ? [] : ['before'])];
  }

  /** Namespaces at home whose pods run in tenants over there. */
  get #mirrors(): MirrorName[] {
    return [...this.#ours, 'null', ...(this.#options.others ?? []).map(({ name }) => name)];
  }

  get #namespaces(): [ClusterName, MirrorName[]][] {
    return [
      ['home', this.#mirrors],
      ['foreign', ['native']],
    ];
  }

  tributary(...args: string[]): string {
    return runToEnd(process.execPath, [this.#main, ...args]);
  }

  async #furnish(): Promise<void> {
    const foreign = this.cluster('foreign');
    this.lend(this.#mirrors, `cpu=1000,memory=1000Gi,pods=${this.#mostPods}`);
    for (const [cluster, names] of this.#namespaces) {
      const objects = names.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
      this.apply(cluster, list(objects));
    }
    const [first = ''] = this.#ours;
    const where = ['--namespace', tenantOf(first), '--kubeconfig', foreign.kubeconfig];
    const kubeconfig = this.tributary('tenant-kubeconfig', '--peer', HOME_ID, ...where);
    writeFileSync(this.tenantKubeconfig, kubeconfig, { mode: 0o600 });
    for (const cluster of ['home', 'foreign'] as const) await this.#kinds(cluster);
    if (this.#options.network === true) await this.#joinNetworks();
    // As role `cluster` writes it. One that a person makes is YAML, whose parser takes time and memory of its own.
    const json = JSON.stringify(yaml.parse(kubeconfig));
    for (const name of this.#ours) {
      this.apply('home', list(virtualNode(name, json, { ...this.#options, mostPods: this.#mostPods })));
    }
    await this.#ready();
  }

  /** Makes the tenants of these namespaces of home, as an administrator of the foreign cluster would. */
  lend(names: readonly MirrorName[], quota: string): void {
    const where = ['--namespace', names.map(tenantOf).join(), '--quota', quota];
    this.apply('foreign', this.tributary('tenant', '--peer', HOME_ID, ...where));
  }

  /** Our own, as an installation makes them. */
  async #kinds(cluster: ClusterName): Promise<void> {
    this.apply(cluster, this.tributary('manifests', 'crds'));
    await this.until(`the kinds of ${cluster}`, READY_TIMEOUT_MS, async () => {
      const { status } = await this.cluster(cluster).api.call('GET', '/apis/tributary.dev/v1alpha1/tunnels');
      return status === 200;
    });
  }

  /** The foreign cluster lets a peer write endpoints at addresses of its Tunnel, which its role `cluster` would have noted. */
  async #joinNetworks(): Promise<void> {
    await joinNetworks(this.clients);
    const body = { metadata: { annotations: { [ANNOTATION_PEER_PREFIXES]: HOME_SEEN_AS } } };
    for (const name of this.#mirrors.map(tenantOf))
      await this.clients.foreign.patch(namespaces, { name }, { type: 'merge', body });
  }

  /** Accounts and the quota are there a moment after their namespaces. */
  async #ready(): Promise<void> {
    for (const [cluster, names] of this.#namespaces) {
      for (const name of names)
        await this.#exists(cluster, `/api/v1/namespaces/${name}/serviceaccounts/default`);
    }
    for (const name of this.#mirrors.map(tenantOf)) {
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

const apiServerFlags = (
  { name, audit = false, storesJson = false }: BedOptions,
  cluster: string,
): string[] => [
  ...(audit ? auditOf(name, cluster).flags : []),
  ...(storesJson ? ['--storage-media-type=application/json'] : []),
];

const list = (items: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

const virtualNode = (
  name: string,
  kubeconfig: string,
  { mostPods, reflection, network = false }: Pick<BedOptions, 'mostPods' | 'reflection' | 'network'>,
): object[] =>
  virtualNodeObjects({
    name,
    kubeconfig,
    namespace: { tenantNamespace: tenantOf(name), ...(reflection && { reflection }) },
    resources: { cpu: '1000', memory: '1000Gi', pods: String(mostPods) },
    ...(network && { labels: { [LABEL_PROVIDER]: PROVIDER_ID } }),
  });
