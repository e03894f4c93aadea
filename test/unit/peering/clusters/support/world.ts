import { acceptancePolicies, type AcceptancePolicy } from '../../../../../src/api/acceptance-policy.ts';
import { foreignClusters, type ForeignCluster } from '../../../../../src/api/foreign-cluster.ts';
import { sharingPolicies, type SharingPolicy } from '../../../../../src/api/sharing-policy.ts';
import type { ResourceType } from '../../../../../src/api/resources.ts';
import { type Tunnel, tunnels } from '../../../../../src/api/tunnel.ts';
import type { KubeObject } from '../../../../../src/api/wire.ts';
import type { HttpClient } from '../../../../../src/kube/http-client.ts';
import { Informer } from '../../../../../src/kube/informer.ts';
import { Lifecycle } from '../../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../../src/lib/log.ts';
import {
  clusterIndexes,
  Clusters,
  type ClustersLimits,
} from '../../../../../src/peering/clusters/clusters.ts';
import type {
  DialProblem,
  DialTarget,
  LinkView,
  PeeringReport,
  PeerLinks,
} from '../../../../../src/peering/ports.ts';
import { FakeApi } from '../../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { NOW, OWN } from './objects.ts';

/** The registry of links, as its contract says: `setTargets` is given the whole set, changes are told. */
export class FakeLinks implements PeerLinks {
  readonly #views = new Map<string, LinkView>();
  readonly #problems = new Map<string, DialProblem>();
  readonly #listeners = new Set<(key: { clusterID?: string; target?: string }) => void>();
  targets: readonly DialTarget[] = [];
  timesTold = 0;

  view = (clusterID: string): LinkView | undefined => this.#views.get(clusterID);
  views = (): Iterable<LinkView> => this.#views.values();
  problem = (target: string): DialProblem | undefined => this.#problems.get(target);
  publish = (): void => undefined;
  call = async (): Promise<never> => Promise.reject(new Error('not in this test'));

  setTargets(targets: readonly DialTarget[]): void {
    this.targets = targets;
    this.timesTold++;
  }

  onChange(listener: (key: { clusterID?: string; target?: string }) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  up(view: LinkView): void {
    this.#views.set(view.clusterID, view);
    for (const listener of this.#listeners) listener({ clusterID: view.clusterID });
  }

  down(clusterID: string): void {
    this.#views.delete(clusterID);
    for (const listener of this.#listeners) listener({ clusterID });
  }

  fails(target: string, problem: DialProblem): void {
    this.#problems.set(target, problem);
    for (const listener of this.#listeners) listener({ target });
  }
}

/** Lending or borrowing, told what to say. */
export class FakeReports {
  readonly #reports = new Map<string, PeeringReport>();
  readonly #listeners = new Set<(clusterID: string) => void>();

  report = (clusterID: string): PeeringReport => this.#reports.get(clusterID) ?? { phase: 'None' };

  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  say(clusterID: string, report: PeeringReport): void {
    this.#reports.set(clusterID, report);
    for (const listener of this.#listeners) listener(clusterID);
  }
}

const TYPES: readonly ResourceType<KubeObject>[] = [
  foreignClusters,
  acceptancePolicies,
  sharingPolicies,
  tunnels,
];
/** As much time as passes at most while something is waited for. */
const PATIENCE_MS = 10_000;

export const NAMESPACE = 'tributary-system';

/** Clusters on a simulated API server, with links, lending and borrowing played by the test. */
export class ClustersWorld {
  readonly clock: FakeClock = new FakeClock(NOW);
  readonly server: FakeApi = new FakeApi({ clock: this.clock, types: TYPES });
  readonly links: FakeLinks = new FakeLinks();
  readonly outgoing: FakeReports = new FakeReports();
  readonly incoming: FakeReports = new FakeReports();
  /** "reason: message" about each object by name. */
  readonly events: string[] = [];
  readonly #limits: Partial<ClustersLimits>;
  #client: HttpClient | undefined;
  #lifecycle: Lifecycle | undefined;
  #clusters: Clusters | undefined;

  constructor(limits: Partial<ClustersLimits> = {}) {
    this.#limits = limits;
  }

  get clusters(): Clusters {
    if (this.#clusters === undefined) throw new Error('not started');
    return this.#clusters;
  }

  async up(): Promise<this> {
    await this.begin();
    return this;
  }

  /** A new process on the same API server. */
  async begin(): Promise<void> {
    const { clock, links, outgoing, incoming } = this;
    const client = this.server.client();
    const common = { client, clock, log: silentLogger };
    const clusters = new Informer<ForeignCluster>({
      ...common,
      type: foreignClusters,
      list: {},
      indexes: clusterIndexes,
    });
    const acceptance = new Informer<AcceptancePolicy>({ ...common, type: acceptancePolicies, list: {} });
    const sharing = new Informer<SharingPolicy>({ ...common, type: sharingPolicies, list: {} });
    const network = new Informer<Tunnel>({ ...common, type: tunnels, list: {} });
    this.#clusters = new Clusters({
      ...common,
      events: {
        event: ({ metadata }, type, reason, message) =>
          void this.events.push(`${metadata.name} ${type} ${reason}: ${message}`),
      },
      own: OWN,
      systemNamespace: NAMESPACE,
      clusters,
      acceptance,
      sharing,
      tunnels: network,
      links: () => links,
      outgoing: () => outgoing,
      incoming: () => incoming,
      limits: this.#limits,
    });
    const components = [
      clusters,
      acceptance,
      sharing,
      network,
      ...this.#clusters.caches(),
      ...this.#clusters.components(),
    ];
    this.#client = client;
    this.#lifecycle = new Lifecycle(components, { clock, log: silentLogger, stopDeadlineMs: 10_000 });
    await this.clock.during('clusters start', this.#lifecycle.start(new AbortController().signal));
  }

  async end(): Promise<void> {
    if (this.#lifecycle) await this.clock.during('clusters stop', this.#lifecycle.stop());
    await this.#client?.close();
  }

  async down(): Promise<void> {
    await this.end();
    await this.server.stop();
  }

  seed(type: ResourceType<KubeObject>, { metadata, ...object }: object & { metadata: object }): void {
    const {
      uid: _uid,
      resourceVersion: _version,
      creationTimestamp: _created,
      ...rest
    } = metadata as KubeObject['metadata'];
    this.server.seed(type, { ...object, metadata: rest });
  }

  /** As somebody else would write it. */
  async patch(name: string, body: object, subresource?: 'status'): Promise<void> {
    if (this.#client === undefined) throw new Error('not started');
    const patch = { type: 'merge', body } as const;
    await this.#client.patch(
      foreignClusters,
      { name },
      patch,
      subresource === undefined ? {} : { subresource },
    );
  }

  async remove(name: string): Promise<void> {
    await this.#client?.delete(foreignClusters, { name });
  }

  stored(name: string): ForeignCluster | undefined {
    return this.server.storage.get('foreignclusters.tributary.dev', name);
  }

  /** Lets time pass, so that what failed is tried again. */
  async wait(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    await this.clock.until(what, condition, PATIENCE_MS);
  }

  /** Waits until the stored object looks so. */
  async until(name: string, condition: (cluster: ForeignCluster) => boolean): Promise<ForeignCluster> {
    await this.wait(`ForeignCluster ${name}: ${condition.toString()}`, () => {
      const cluster = this.stored(name);
      return cluster !== undefined && condition(cluster);
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}; it is ${JSON.stringify(this.stored(name))}`);
    });
    return this.stored(name) as ForeignCluster;
  }

  async gone(name: string): Promise<void> {
    await this.wait(`${name} is gone`, () => this.stored(name) === undefined);
  }

  /** Nothing is written for a while. */
  async quiet(): Promise<number> {
    let writes = -1;
    await this.wait('nothing is written any more', async () => {
      writes = this.server.storage.writes;
      await this.clock.advance(250);
      return this.server.storage.writes === writes;
    });
    return writes;
  }
}
