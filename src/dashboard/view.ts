/** Facts and a person become what that person's page shows. Pure. */
import { LABEL_PROVIDER } from '../api/names.ts';
import {
  NAMESPACE_OFFLOADING_REASONS,
  type NamespaceOffloading,
  type OffloadedCluster,
} from '../api/namespace-offloading.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { Condition, KubeEvent } from '../api/wire.ts';
import { clustersOf, shortID } from './clusters-view.ts';
import type { Facts, Viewer } from './facts.ts';
import {
  SECTION_KINDS,
  type DashboardModel,
  type NamespaceModel,
  type NewsModel,
  type PlaceModel,
  type SectionKind,
} from './model.ts';
import { line, word } from './texts.ts';

/** A page that shows more is of no use to anybody, and costs each viewer the same again with every change. */
const MOST = { clusters: 100, namespaces: 300, news: 60 };

export function viewOf(facts: Facts, viewer: Viewer): DashboardModel {
  const seen = visible(facts, viewer.may);
  const clusters = clustersOf(seen);
  const namespaces = namespacesOf(seen);
  const tether = tetherOf(seen);
  return {
    own: { clusterID: facts.own.clusterID, clusterName: word(facts.own.clusterName) },
    user: line(viewer.user, 200),
    clusters: clusters.slice(0, MOST.clusters),
    namespaces: namespaces.slice(0, MOST.namespaces),
    news: viewer.may.has('events') ? newsOf(viewer.events) : [],
    ...(tether && { tether }),
    hidden: SECTION_KINDS.filter((kind) => !viewer.may.has(kind)),
    more: { clusters: clusters.length, namespaces: namespaces.length },
  };
}

/** The facts without those kinds that may not be listed. */
function visible(facts: Facts, may: ReadonlySet<SectionKind>): Facts {
  const if_ = <T>(kind: SectionKind, list: readonly T[]): readonly T[] => (may.has(kind) ? list : []);
  return {
    own: facts.own,
    clusters: if_('foreignclusters', facts.clusters),
    requests: if_('peeringrequests', facts.requests),
    offers: if_('advertisements', facts.offers),
    tunnels: if_('tunnels', facts.tunnels),
    virtualNodes: if_('virtualnodes', facts.virtualNodes),
    offloadings: if_('namespaceoffloadings', facts.offloadings),
    modes: if_('clustermodes', facts.modes),
    namespaces: if_('namespaces', facts.namespaces),
    pods: may.has('pods') ? facts.pods : new Map(),
  };
}

function namespacesOf(facts: Facts): NamespaceModel[] {
  const offloadings = new Map(facts.offloadings.map((one) => [one.metadata.namespace ?? '', one]));
  const names = new Set([...facts.namespaces.filter(isOfPeople), ...offloadings.keys()]);
  const nodes = new Map(facts.virtualNodes.map((node) => [nodeOf(node), node]));
  return [...names]
    .map((name) => namespaceModel(name, offloadings.get(name), { facts, nodes }))
    .toSorted((a, b) => Number(b.isOffloaded) - Number(a.isOffloaded) || (a.name < b.name ? -1 : 1));
}

/** Others hold parts of the cluster itself, and are never offloaded. */
const isOfPeople = (name: string): boolean => !/^(?:kube|tributary)-/u.test(name);

/** Of the Node that stands for it. */
export const nodeOf = ({ metadata, spec }: VirtualNode): string => spec.nodeName ?? metadata.name;
const providerOf = ({ metadata }: VirtualNode): string => metadata.labels?.[LABEL_PROVIDER] ?? metadata.name;

interface Around {
  facts: Facts;
  /** By the name of the Node. */
  nodes: ReadonlyMap<string, VirtualNode>;
}

function namespaceModel(
  name: string,
  offloading: NamespaceOffloading | undefined,
  { facts, nodes }: Around,
): NamespaceModel {
  const condition = troubleOf(offloading?.status?.conditions);
  return {
    name,
    isOffloaded: offloading !== undefined,
    ...(offloading && { strategy: offloading.spec.podStrategy ?? 'LocalAndRemote' }),
    ...(condition && { reason: word(condition.reason), message: line(condition.message) }),
    places: placesOf(name, offloading?.status?.clusters ?? [], { facts, nodes }),
  };
}

/** Here, and where it is offloaded to, or has pods for another reason. */
function placesOf(
  name: string,
  clusters: readonly OffloadedCluster[],
  { facts, nodes }: Around,
): PlaceModel[] {
  const places = new Map<string, PlaceModel>([['', { title: word(facts.own.clusterName), pods: 0 }]]);
  for (const { cluster, clusterName, phase, reason, message } of clusters) {
    const title = word(clusterName ?? shortID(cluster));
    const state =
      reason === NAMESPACE_OFFLOADING_REASONS.ok
        ? {}
        : { reason: word(reason), message: line(message ?? '') };
    places.set(cluster, { clusterID: cluster, title, pods: 0, phase, ...state });
  }
  for (const [node, count] of facts.pods.get(name) ?? []) {
    const virtual = nodes.get(node);
    const cluster = virtual === undefined ? '' : providerOf(virtual);
    const place = places.get(cluster) ?? { clusterID: cluster, title: shortID(cluster), pods: 0 };
    places.set(cluster, { ...place, pods: place.pods + count });
  }
  return [...places.values()];
}

const troubleOf = (conditions: readonly Condition[] = []): Condition | undefined =>
  conditions.find(({ type, status }) => type === 'Ready' && status !== 'True');

function tetherOf({ modes: [mode] }: Facts): DashboardModel['tether'] {
  const { phase, tether, conditions = [] } = mode?.status ?? {};
  if (phase === undefined || phase === 'Autonomous') return undefined;
  const cluster = tether?.clusterName ?? mode?.spec?.tether?.cluster;
  const message = conditions[0]?.message;
  return {
    phase,
    ...(cluster !== undefined && { cluster: word(cluster) }),
    ...(message !== undefined && { message: line(message) }),
  };
}

const timeOf = ({ lastTimestamp, eventTime, metadata }: KubeEvent): string =>
  lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';

/** The newest first. */
function newsOf(events: readonly KubeEvent[]): NewsModel[] {
  return events
    .toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))
    .slice(0, MOST.news)
    .map((event) => {
      const { kind = '', name = '', namespace } = event.involvedObject;
      const where = namespace === undefined || namespace === '' ? '' : `${namespace}/`;
      return {
        id: event.metadata.uid ?? `${event.metadata.namespace}/${event.metadata.name}`,
        at: timeOf(event),
        isWarning: event.type === 'Warning',
        reason: word(event.reason ?? ''),
        message: line(event.message ?? ''),
        about: line(`${kind} ${where}${name}`, 160),
        count: event.count ?? 1,
      };
    });
}
