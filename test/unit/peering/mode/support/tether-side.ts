/** One cluster of a tether over a simulated API server: all parts of peering and offloading, as src/agent/peering.ts connects them. */
import { acceptancePolicies } from '../../../../../src/api/acceptance-policy.ts';
import { advertisements } from '../../../../../src/api/advertisement.ts';
import {
  CLUSTER_MODE,
  type ClusterMode,
  clusterModes,
  forwardingOf,
} from '../../../../../src/api/cluster-mode.ts';
import { type ForeignCluster, foreignClusters } from '../../../../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../../../src/api/peering-request.ts';
import { namespaces, nodes, type ResourceType } from '../../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../../../../src/api/virtual-node.ts';
import type { KubeObject } from '../../../../../src/api/wire.ts';
import { Caches } from '../../../../../src/kube/caches.ts';
import type { ClusterBasics, KubeClient } from '../../../../../src/kube/client.ts';
import { type Component, Lifecycle, subscribing } from '../../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../../src/lib/log.ts';
import { Offloading } from '../../../../../src/offloading/offloading.ts';
import { Release } from '../../../../../src/offloading/release/release.ts';
import { Remake } from '../../../../../src/offloading/release/remake.ts';
import { Borrowing } from '../../../../../src/peering/borrowing/borrowing.ts';
import { clusterIndexes, Clusters } from '../../../../../src/peering/clusters/clusters.ts';
import { Identity } from '../../../../../src/peering/identity/identity.ts';
import { Lending } from '../../../../../src/peering/lending/lending.ts';
import { ModeKeeper } from '../../../../../src/peering/mode/mode.ts';
import { StockWatcher } from '../../../../../src/peering/offer/stock-watcher.ts';
import type { PeerLinks } from '../../../../../src/peering/ports.ts';
import { FakeApi } from '../../../../support/fake-api/fake-api.ts';
import { type AnyObject, type Change, keyOf } from '../../../../support/fake-api/storage.ts';
import type { FakeClock } from '../../../../support/fake-clock.ts';
import { FakeAgents } from '../../borrowing/support/fake-agents.ts';
import { aNode } from '../../support/stock.ts';

const TYPES = [
  acceptancePolicies,
  advertisements,
  clusterModes,
  foreignClusters,
  namespaceOffloadings,
  peeringRequests,
  sharingPolicies,
  virtualNodes,
] as ResourceType<KubeObject>[];
const SYSTEM = 'tributary-system';
const API_SERVER = 'api.example:6443';
const STOP_MS = 600_000;
const EVENTS = { event: () => undefined };

/** What runs in one process. */
export interface Process {
  lending: Lending;
  borrowing: Borrowing;
  clusters: Clusters;
}

export class TetherSide {
  readonly name: string;
  readonly identity: Identity = Identity.generate();
  readonly api: FakeApi;
  readonly agents: FakeAgents;
  readonly #clock: FakeClock;
  readonly #links: PeerLinks;
  readonly #tokens = new Set<string>();
  readonly #live = new Set<string>();
  #started = 0;
  #running: { process: Process; lifecycle: Lifecycle; client: KubeClient } | undefined;

  /** `links`: to the other side. */
  constructor(name: string, clock: FakeClock, links: PeerLinks) {
    this.name = name;
    this.#clock = clock;
    this.#links = links;
    this.api = new FakeApi({ clock, types: TYPES, tokens: this.#tokens });
    this.api.storage.subscribe((change) => this.#note(change));
    this.agents = new FakeAgents(this.api);
    for (const each of ['shop', 'kube-system', SYSTEM])
      this.api.seed(namespaces, { metadata: { name: each } });
    this.api.seed(nodes, aNode(`${name}-1`));
  }

  get id(): string {
    return this.identity.clusterID;
  }

  /** Undefined: it is dead, or not yet or no longer alive. */
  get process(): Process | undefined {
    return this.#tokens.size === 0 ? undefined : this.#running?.process;
  }

  /** A fresh process, which remembers nothing. */
  async start(): Promise<void> {
    this.#started++;
    const token = `${this.name}-${this.#started}`;
    this.#tokens.add(token);
    const client = this.api.client({ token: async () => Promise.resolve(token) });
    const { process, components } = assemble(this, { client, clock: this.#clock, links: this.#links });
    const lifecycle = new Lifecycle(components, {
      clock: this.#clock,
      log: silentLogger,
      stopDeadlineMs: STOP_MS,
    });
    this.#running = { process, lifecycle, client };
    await this.#clock.during(`${this.name} starts`, lifecycle.start(new AbortController().signal));
  }

  /** As kill -9: nothing of it arrives at its API server any more. */
  kill(): void {
    this.#tokens.clear();
    this.api.cut();
  }

  /** Of what was killed, or else by SIGTERM. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    await this.#clock.during(`${this.name} stops`, running.lifecycle.stop());
    this.#tokens.clear();
    await running.client.close();
  }

  /** Whether this process may still do something outside of its API server. */
  isAlive(): boolean {
    return this.#tokens.size > 0;
  }

  get mode(): ClusterMode | undefined {
    return this.api.storage.get('clustermodes.tributary.dev', CLUSTER_MODE);
  }

  foreign(clusterID: string): ForeignCluster | undefined {
    const all = this.api.storage.list('foreignclusters.tributary.dev') as unknown as ForeignCluster[];
    return all.find(({ spec, status }) => (spec?.clusterID ?? status?.clusterID) === clusterID);
  }

  /** Of all kinds, except what a person has made or what comes and goes by itself. */
  inventory(): string[] {
    const agents = [...this.agents.running.keys()].map((id) => `agent of ${id}`);
    return [...this.#live, ...agents]
      .filter((each) => !/^(events|leases|foreignclusters)/.test(each))
      .toSorted();
  }

  #note({ resource, previous, current }: Change): void {
    const key = keyOf((current ?? previous) as AnyObject);
    if (current !== undefined) this.#live.add(`${resource} ${key}`);
    else this.#live.delete(`${resource} ${key}`);
    if (resource === 'namespaces' && current === undefined) queueMicrotask(() => this.#empty(key));
  }

  /** As the controller of namespaces does. */
  #empty(namespace: string): void {
    for (const each of this.#live) {
      const [resource = '', key = ''] = each.split(' ');
      if (key.startsWith(`${namespace}/`)) this.api.storage.remove(resource, key);
    }
  }
}

interface Outside {
  client: KubeClient;
  clock: FakeClock;
  links: PeerLinks;
}

/** The parts in one process, in the order of their start: as src/agent/peering.ts has them, without sockets. */
function assemble(
  side: TetherSide,
  { client, clock, links }: Outside,
): { process: Process; components: Component[] } {
  const basics: ClusterBasics = { client, clock, log: silentLogger };
  const caches = new Caches(basics);
  const common = { ...basics, caches, events: EVENTS, systemNamespace: SYSTEM };
  const own = side.id;
  const seen = caches.of(foreignClusters, { indexes: clusterIndexes });
  const acceptance = caches.of(acceptancePolicies);
  const sharing = caches.of(sharingPolicies);
  const stock = new StockWatcher(common);
  const clusters: Clusters = new Clusters({
    ...common,
    own,
    clusters: seen,
    acceptance,
    sharing,
    links: () => links,
    outgoing: () => borrowing,
    incoming: () => lending,
    ties: (clusterID) => mode.ties(clusterID),
  });
  const { identity } = side;
  const api = { server: `https://${API_SERVER}` };
  const lending: Lending = new Lending({
    ...common,
    identity,
    stock,
    intents: clusters,
    links,
    api,
    quotaPatienceMs: 0,
    withdrawalGraceMs: 0,
  });
  const remake = new Remake({ ...common, namespaceUid: (name) => offloading.namespaceUid(name) });
  const offloading: Offloading = new Offloading({
    ...common,
    ownSystemNamespace: SYSTEM,
    tether: () => forwardingOf(mode.current()),
    remake,
    peerNamespaces: {
      stateOf: (clusterID, namespace) => borrowing.mappingState(clusterID, namespace),
      isNamed: (clusterID, namespace) => borrowing.isNamed(clusterID, namespace),
      onChange: (listener) => borrowing.onChange(listener),
    },
  });
  const release = new Release({ ...common, offloadings: offloading, remake });
  const mode: ModeKeeper = new ModeKeeper({
    ...common,
    own,
    clusters: seen,
    sharing,
    virtualNodes: offloading.virtualNodes,
    links: () => links,
    outgoing: () => borrowing,
    incoming: () => lending,
    isBringingBack: () => offloading.isBringingBack,
    hasForwarded: () => offloading.hasForwarded,
    intent: (clusterID) => clusters.intent(clusterID),
  });
  const borrowing: Borrowing = new Borrowing({
    ...common,
    identity,
    clusterName: side.name,
    intents: clusters,
    offloadings: offloading,
    links: () => links,
    reach: {
      open: async () => Promise.resolve({ server: 'https://127.0.0.1:4443' }),
      close: async () => Promise.resolve(),
    },
    launcher: side.agents.launcher(() => side.isAlive()),
    // Nobody is dialled: the way goes by the link.
    ours: () => ({ hosts: [], apiServers: [API_SERVER] }),
  });
  const wiring = subscribing('peering wiring', () => [
    mode.onChange(() => {
      clusters.tiesChanged();
      offloading.tetherChanged();
    }),
    mode.onTies((clusterID) => clusters.tiesChanged(clusterID)),
    lending.onChange((clusterID) => links.publish(clusterID)),
    clusters.onChange((clusterID) => links.publish(clusterID)),
  ]);
  const components = [
    seen,
    acceptance,
    sharing,
    mode.cache(),
    ...clusters.caches(),
    stock,
    ...offloading.caches(),
    ...borrowing.caches(),
    ...lending.components(),
    wiring,
    ...borrowing.actors(),
    ...remake.components(),
    ...release.components(),
    ...offloading.actors(),
    ...clusters.components(),
    ...mode.actors(),
  ];
  return { process: { lending, borrowing, clusters }, components };
}
