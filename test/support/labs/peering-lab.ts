/** Clusters with pretended nodes on real networks, and Tributary in each as one process that comes and goes. */
import { readFileSync, readdirSync } from 'node:fs';
import type { Cluster } from '../../../lab/cluster.ts';
import type { Lab } from '../../../lab/lab.ts';
import { mainModule } from '../../../lab/own-program.ts';
import type { PeerProcess, PeerProcessOptions } from '../../../lab/peer-process.ts';
import { acceptancePolicies } from '../../../src/api/acceptance-policy.ts';
import { advertisements } from '../../../src/api/advertisement.ts';
import type { ForeignCluster, PeeringPhase } from '../../../src/api/foreign-cluster.ts';
import { foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../../src/api/names.ts';
import { readAnnouncementData } from '../../../src/api/own-announcement.ts';
import { peeringRequests } from '../../../src/api/peering-request.ts';
import type { ResourceType } from '../../../src/api/resources.ts';
import { configMaps, events, namespaces, serviceAccounts } from '../../../src/api/resources.ts';
import { searchDomains } from '../../../src/api/search-domain.ts';
import { sharingPolicies, type SharingPolicySpec } from '../../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Condition, KubeObject } from '../../../src/api/wire.ts';
import { type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { LABEL_PEER } from '../../../src/api/tenant-labels.ts';
import { awaited } from '../eventually.ts';
import { borrowLab } from './borrowed-lab.ts';

// Jest loads CommonJS before any module has run, so what the lab's PKI needs must be there before it is imported.
await import('reflect-metadata');
const lab = {
  ...(await import('../../../lab/inventory.ts')),
  ...(await import('../../../lab/lab.ts')),
  ...(await import('../../../lab/peer-process.ts')),
  ...(await import('../../../lab/preflight.ts')),
  ...(await import('../../../lab/run.ts')),
};

export type Direction = 'outgoing' | 'incoming';

/** Why these tests cannot run here; undefined when they can. */
export const peeringLabProblem = (): string | undefined => lab.missing(lab.thisMachine());

const REST = { least: 20, most: 250 };

/** Waits until `look` returns something else than undefined or false. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  deadlineMs = 60_000,
): Promise<T> {
  return awaited(what, look, { deadlineMs, rest: REST });
}

/** Prints a line for the person who reads the output of the tests. */
export const say = (line: string): void => void process.stderr.write(`  ${line}\n`);

/** The program to run, if it is not the current one. */
export type PeerProgram = Omit<PeerProcessOptions, 'options'>;

export interface PeeringLabCluster {
  name: string;
  segment?: number;
}

export class PeeringLab {
  readonly lab: Lab;
  readonly #cities = new Map<string, City>();
  readonly #end: () => Promise<void>;

  private constructor(own: Lab, end: () => Promise<void>) {
    this.lab = own;
    this.#end = end;
  }

  /** Rome and milan on one network, which files use one after another. */
  static async pair(): Promise<PeeringLab> {
    const { lab: borrowed, giveBack } = await borrowLab('linked', { furnish });
    return PeeringLab.#opened(borrowed, giveBack);
  }

  /** A lab of one's own, removed afterwards. */
  static async up(name: string, clusters: readonly PeeringLabCluster[]): Promise<PeeringLab> {
    const options = clusters.map((cluster) => ({ ...cluster, workload: 'kwok' as const }));
    const own = await lab.Lab.fresh({ name, clusters: options });
    return PeeringLab.#opened(own, async () => own.down(), furnish);
  }

  static async #opened(
    own: Lab,
    end: () => Promise<void>,
    prepare: (own: Lab) => Promise<void> = async () => Promise.resolve(),
  ): Promise<PeeringLab> {
    const opened = new PeeringLab(own, end);
    try {
      await prepare(own);
      for (const cluster of own.clusters) opened.#cities.set(cluster.name, await City.open(cluster));
    } catch (error) {
      // A test that never got its lab cannot remove it.
      await opened.down();
      throw error;
    }
    return opened;
  }

  city(name: string): City {
    const found = this.#cities.get(name);
    if (found === undefined) throw new Error(`no cluster ${name}`);
    return found;
  }

  get cities(): City[] {
    return [...this.#cities.values()];
  }

  async down(): Promise<void> {
    for (const city of this.cities) await city.client.close();
    await this.#end();
  }
}

/** Applies the manifests, and waits for what the controllers of a new cluster make. */
async function furnish({ clusters }: Lab): Promise<void> {
  await Promise.all(clusters.map(async (cluster) => lab.PeerProcess.prepare(cluster)));
  for (const cluster of clusters) await settled(cluster);
}

/**
 * Resolves when the controllers of a new cluster have made what each namespace has. They start after its API server is ready, and
 * an inventory before that would lack it.
 */
async function settled({ name, api }: Cluster): Promise<void> {
  const list = async (plural: string): Promise<KubeObject[]> =>
    (await api.get<{ items: KubeObject[] }>(`/api/v1/${plural}`))?.items ?? [];
  const has = (items: readonly KubeObject[], namespace: string, object: string): boolean =>
    items.some(({ metadata }) => metadata.namespace === namespace && metadata.name === object);
  await until(`the namespaces of ${name} are furnished`, async () => {
    const all = await list('namespaces');
    const accounts = await list('serviceaccounts');
    const maps = await list('configmaps');
    return all.every(
      ({ metadata }) =>
        has(accounts, metadata.name, 'default') && has(maps, metadata.name, 'kube-root-ca.crt'),
    );
  });
}

/** One cluster. */
export class City {
  readonly cluster: Cluster;
  readonly client: HttpClient;
  #process: PeerProcess | undefined;
  #id = '';

  private constructor(cluster: Cluster, client: HttpClient) {
    this.cluster = cluster;
    this.client = client;
  }

  static async open(cluster: Cluster): Promise<City> {
    return new City(cluster, createClient(await parseKubeconfig(readFileSync(cluster.kubeconfig, 'utf8'))));
  }

  get name(): string {
    return this.cluster.name;
  }

  get address(): string {
    return this.cluster.node().address;
  }

  /** Its ClusterID; known once it has run. */
  get id(): string {
    if (this.#id === '') throw new Error(`${this.name} has not told its ClusterID yet`);
    return this.#id;
  }

  get process(): PeerProcess {
    if (this.#process === undefined) throw new Error(`${this.name} was never started`);
    return this.#process;
  }

  /** Does not wait. */
  start(options: Record<string, string> = {}, program: PeerProgram = {}): void {
    this.#process = lab.PeerProcess.start(this.cluster, { ...program, options });
  }

  /** Starts it, and waits until its ClusterID is known and it listens. */
  async run(options: Record<string, string> = {}, program: PeerProgram = {}): Promise<void> {
    const before = this.#process === undefined ? 0 : this.started();
    this.start(options, program);
    await until(`${this.name} has started`, async () => Promise.resolve(this.started() > before));
    await this.learnID();
  }

  /** How often it has come up so far. */
  started(): number {
    return this.logged((line) => line.message === 'started' && line['role'] === 'all').length;
  }

  async learnID(): Promise<void> {
    this.#id = await until(`the ID of ${this.name}`, async () => {
      const { items } = await this.client.list(configMaps, { namespace: 'tributary-system' });
      const own = items.find(({ metadata }) => metadata.name === 'tributary-announcement');
      return readAnnouncementData(own?.data)?.clusterID;
    });
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.#process?.daemon.kill();
  }

  /** SIGTERM. */
  async terminate(): Promise<void> {
    await this.#process?.daemon.terminate(10_000);
  }

  get isRunning(): boolean {
    return this.#process?.daemon.id !== undefined;
  }

  logged(test: (line: LogLine) => boolean): LogLine[] {
    return this.process.log
      .split('\n')
      .flatMap((text) => {
        try {
          return text.startsWith('{') ? [JSON.parse(text) as LogLine] : [];
        } catch {
          return [];
        }
      })
      .filter((line) => test(line));
  }

  /** Memory in MiB and open descriptors of its process. */
  use(): { rssMib: number; descriptors: number } {
    const pid = this.process.daemon.id?.pid ?? 0;
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const rssMib = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    return { rssMib, descriptors: readdirSync(`/proc/${pid}/fd`).length };
  }

  /** `tributary …` as a person types it at this cluster; its standard output. A failure says all that it has printed. */
  async tributary(args: readonly string[], stdin?: string): Promise<string> {
    const command = [
      'env',
      `KUBECONFIG=${this.cluster.kubeconfig}`,
      process.execPath,
      mainModule(),
      ...args,
    ] as const;
    try {
      return await lab.run([...command], stdin === undefined ? {} : { stdin });
    } catch (cause) {
      if (!(cause instanceof lab.RunError)) throw cause;
      throw new lab.RunError(`${cause.message}\n${cause.printed}`, { printed: cause.printed, cause });
    }
  }

  /** What it knows of a cluster: of several objects the one that counts. */
  async foreign(id: string): Promise<ForeignCluster | undefined> {
    const { items } = await this.client.list(foreignClusters);
    const known = items.filter(({ spec, status, metadata }) =>
      [spec?.clusterID, status?.clusterID, metadata.name].includes(id),
    );
    return known.find(({ status }) => status?.outgoing?.reason !== 'Duplicate') ?? known[0];
  }

  async phaseOf(id: string, direction: Direction): Promise<PeeringPhase> {
    return (await this.foreign(id))?.status?.[direction]?.phase ?? 'None';
  }

  async inPhase(id: string, direction: Direction, phase: PeeringPhase): Promise<ForeignCluster> {
    let last: ForeignCluster | undefined;
    try {
      return await until(`${this.name}: ${direction} of ${id} is ${phase}`, async () => {
        last = await this.foreign(id);
        return (last?.status?.[direction]?.phase ?? 'None') === phase
          ? (last ?? ({} as ForeignCluster))
          : undefined;
      });
    } catch (cause) {
      const tail = this.process.daemon.tail(15);
      throw new Error(`${String(cause)}\n${JSON.stringify(last, undefined, 1)}\n${tail}`, { cause });
    }
  }

  condition(cluster: ForeignCluster | undefined, type: string): Condition | undefined {
    return cluster?.status?.conditions?.find((condition) => condition.type === type);
  }

  /** Whether a provider has virtual nodes here, and all of them are Ready. */
  async nodeReady(provider: string): Promise<boolean> {
    const { items } = await this.client.list(virtualNodes, {
      labelSelector: `${LABEL_PROVIDER}=${provider}`,
    });
    return (
      items.length > 0 &&
      items.every(({ status }) =>
        status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
      )
    );
  }

  /** The objects of each kind that belongs to a peering, by a key that must be unique. */
  async made(peer: string): Promise<Record<string, string[]>> {
    const names = async <T extends KubeObject>(
      type: ResourceType<T>,
      test: (object: T) => boolean,
    ): Promise<string[]> => {
      const { items } = await this.client.list(type);
      return items.filter(test).map(({ metadata }) => metadata.name);
    };
    const of =
      (label: string) =>
      ({ metadata }: KubeObject): boolean =>
        metadata.labels?.[label] === peer;
    const called = ({ metadata }: KubeObject): boolean => metadata.name === peer;
    return {
      foreignClusters: await names(foreignClusters, ({ status }) => status?.clusterID === peer),
      advertisements: await names(advertisements, called),
      requests: await names(peeringRequests, called),
      virtualNodes: await names(virtualNodes, of(LABEL_PROVIDER)),
      tenants: await names(namespaces, of(LABEL_PEER)),
      accounts: await names(serviceAccounts, called),
    };
  }

  async generation(provider: string): Promise<number> {
    const { items } = await this.client.list(advertisements);
    const found = items.find(({ metadata }) => metadata.name === provider);
    return found?.spec?.offer.generation ?? 0;
  }

  /** Lends a half to anyone. */
  async lend(spec: Partial<SharingPolicySpec> = {}): Promise<void> {
    const body = { peers: { anyone: true }, approval: 'Automatic' as const, ...spec };
    await this.client.create(sharingPolicies, { ...kind('SharingPolicy', 'all'), spec: body });
  }

  /** Takes the offers of anyone who is found, for the namespace `default`. */
  async borrow(): Promise<void> {
    const spec = { peers: { anyone: true }, approval: 'Automatic' as const, namespaces: ['default'] };
    await this.client.create(acceptancePolicies, { ...kind('AcceptancePolicy', 'all'), spec });
  }

  /** Takes back all that a person has configured. */
  async forgetPolicies(): Promise<void> {
    for (const type of [sharingPolicies, acceptancePolicies, searchDomains] as ResourceType<KubeObject>[]) {
      for (const { metadata } of (await this.client.list(type)).items) {
        await this.client.delete(type, { name: metadata.name });
      }
    }
  }

  async forgetClusters(): Promise<void> {
    for (const { metadata } of (await this.client.list(foreignClusters)).items) {
      await this.client.delete(foreignClusters, { name: metadata.name });
    }
  }

  /** Names of all objects of all kinds, or of those that are named, except those that come and go by themselves. */
  async inventory(only?: ReadonlySet<string>): Promise<string[]> {
    return lab.inventory(this.cluster.api, only);
  }

  async eventsAbout(name: string): Promise<string[]> {
    const { items } = await this.client.list(events);
    return items
      .filter((event) => event.involvedObject?.name === name)
      .map(({ reason = '', message = '', count = 1 }) => `${count}x ${reason}: ${message}`);
  }
}

export interface LogLine {
  time: string;
  level: string;
  message: string;
  [field: string]: unknown;
}

const kind = (
  name: string,
  object: string,
): { apiVersion: string; kind: string; metadata: { name: string } } => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: name,
  metadata: { name: object },
});
