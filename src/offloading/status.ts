import { isConditionTrue, type WantedCondition } from '../api/conditions.ts';
import { MAX_MESSAGE_LENGTH } from '../api/limits.ts';
import { LABEL_CLUSTER } from '../api/names.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  NAMESPACE_OFFLOADING_REASONS as REASONS,
  type NamespaceMappingState,
  type NamespaceOffloading,
  type NamespaceOffloadingReason,
  type OffloadedCluster,
} from '../api/namespace-offloading.ts';
import { nodeLabelsOf, nodeNameOf } from '../api/node-labels.ts';
import {
  API_VERSION,
  closedCondition,
  type NamespaceMapping,
  type StricterPolicy,
  VIRTUAL_NODE_CONDITIONS,
  type VirtualNode,
} from '../api/virtual-node.ts';

/** What there is to know of one namespace in one foreign cluster. */
export interface ClusterFacts {
  homeNamespace: string;
  /** ClusterID; of a VirtualNode made by hand, its name. */
  cluster: string;
  /** Whether peering keeps its VirtualNodes; the others are written by people. */
  isPeer: boolean;
  /** All virtual nodes of that cluster. */
  virtualNodes: readonly VirtualNode[];
  /** The virtual nodes that the namespace may use. */
  selected: readonly VirtualNode[];
  /** Names of virtual nodes that are no longer selected, while pods of the namespace end there. */
  draining: readonly string[];
  /** Undefined: the provider has not answered. */
  atPeer: NamespaceMappingState | undefined;
}

type ClusterState = Pick<OffloadedCluster, 'phase' | 'reason' | 'message' | 'remoteNamespace'>;

/** The entry of one cluster in the status. Pure. */
export function statusEntry(facts: ClusterFacts): OffloadedCluster {
  const { cluster, virtualNodes, selected, draining } = facts;
  const shown = selected.length > 0 ? selected : virtualNodes;
  const { message = drainingMessage(draining), ...state } = clusterState(facts);
  const clusterName = shown.map((one) => nodeLabelsOf(one)[LABEL_CLUSTER]).find((name) => name);
  return {
    cluster,
    ...(clusterName !== undefined && { clusterName }),
    virtualNodes: [...new Set([...shown.map(({ metadata }) => metadata.name), ...draining])].toSorted(),
    ...state,
    ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
  };
}

const drainingMessage = (draining: readonly string[]): string | undefined =>
  draining.length === 0 ? undefined : `no longer selected: pods on ${draining.join(', ')} end`;

function clusterState(facts: ClusterFacts): ClusterState {
  if (facts.selected.length === 0) return ending(facts);
  return facts.isPeer ? ofPeer(facts) : madeByHand(facts);
}

function ending({ homeNamespace, virtualNodes }: ClusterFacts): ClusterState {
  const remote = virtualNodes
    .flatMap((one) => [mappingOf(one, homeNamespace), formerMappingOf(one, homeNamespace)])
    .find((mapping) => mapping !== undefined);
  return {
    phase: 'Ending',
    reason: REASONS.ending,
    message: 'no longer selected: pods there end, and the namespace over there is given back',
    ...at(remote?.tenantNamespace),
  };
}

function ofPeer(facts: ClusterFacts): ClusterState {
  const { atPeer, selected, homeNamespace } = facts;
  if (atPeer === undefined) {
    return {
      phase: 'Pending',
      reason: REASONS.waitingForProvider,
      message: 'the provider has been asked for a namespace and has not answered yet',
    };
  }
  if (atPeer.state === 'Withheld' && atPeer.ending === true) {
    return { phase: 'Pending', reason: atPeer.reason, message: atPeer.message };
  }
  if (atPeer.state === 'Withheld') {
    return { phase: 'Failed', reason: atPeer.reason, message: advised(atPeer) };
  }
  const remote = at(atPeer.tenantNamespace);
  if (!selected.some((one) => mappingOf(one, homeNamespace) !== undefined)) {
    const message = 'the provider has given a namespace; its virtual node does not have it yet';
    return { phase: 'Pending', reason: REASONS.waitingForProvider, message, ...remote };
  }
  return { ...readiness(selected), ...remote };
}

/** Peering does not write such a VirtualNode, so a person has to add the mapping. */
function madeByHand({ homeNamespace, selected, cluster }: ClusterFacts): ClusterState {
  const mapping = selected.map((one) => mappingOf(one, homeNamespace)).find((one) => one !== undefined);
  if (mapping !== undefined) return { ...readiness(selected), ...at(mapping.tenantNamespace) };
  return {
    phase: 'Failed',
    reason: REASONS.notMapped,
    message:
      `VirtualNode ${cluster} was made by hand: add {homeNamespace: ${homeNamespace}, tenantNamespace: ...} to its ` +
      'spec.namespaces, or exclude it with spec.clusterSelector',
  };
}

function readiness(virtualNodes: readonly VirtualNode[]): ClusterState {
  const ready = virtualNodes.filter(({ status }) =>
    isConditionTrue(status?.conditions, VIRTUAL_NODE_CONDITIONS.ready),
  );
  const closed = ready.flatMap((one) => closedCondition(one)?.message ?? []);
  if (ready.length > closed.length) return { phase: 'Ready', reason: REASONS.ok };
  if (ready.length > 0) {
    return { phase: 'Ready', reason: REASONS.closed, message: [...new Set(closed)].join('; ') };
  }
  const conditions = virtualNodes.flatMap(
    ({ status }) => status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready) ?? [],
  );
  const refusal = conditions.find(({ status }) => status === 'False');
  // A virtual node whose agent has reported nothing yet is starting, not broken.
  const message = refusal?.message ?? 'the virtual node is being set up';
  return { phase: refusal === undefined ? 'Pending' : 'Failed', reason: REASONS.notReady, message };
}

function advised({ reason, message }: Extract<NamespaceMappingState, { state: 'Withheld' }>): string {
  const advice =
    reason === 'NameTaken'
      ? 'make the NamespaceOffloading anew with another name or with naming: Suffixed, exclude the cluster with spec.clusterSelector, or wait: it is given as soon as it is free'
      : 'make the NamespaceOffloading anew with naming: Suffixed, or ask the provider to let its peers choose names';
  return message === '' ? advice : `${message}; ${advice}`;
}

const at = (remoteNamespace: string | undefined): Pick<ClusterState, 'remoteNamespace'> =>
  remoteNamespace === undefined ? {} : { remoteNamespace };

const find = (mappings: readonly NamespaceMapping[] = [], name: string): NamespaceMapping | undefined =>
  mappings.find(({ homeNamespace }) => homeNamespace === name);

const mappingOf = ({ spec }: VirtualNode, name: string): NamespaceMapping | undefined =>
  find(spec.namespaces, name);

const formerMappingOf = ({ status }: VirtualNode, name: string): NamespaceMapping | undefined =>
  find(status?.namespaces, name);

/** Which policies of the namespace close more over there; undefined: none. Pure. */
export function policiesStricter(
  homeNamespace: string,
  virtualNodes: readonly VirtualNode[],
): WantedCondition | undefined {
  const found = virtualNodes.flatMap((virtualNode) =>
    (virtualNode.status?.stricterPolicies ?? [])
      .filter((policy) => policy.homeNamespace === homeNamespace)
      .map((policy) => ({ ...policy, virtualNode })),
  );
  if (found.length === 0) return undefined;
  const names = [...new Set(found.map(({ virtualNode }) => virtualNode.metadata.name))].join(', ');
  return {
    type: NAMESPACE_OFFLOADING_CONDITIONS.policiesStricter,
    status: 'True',
    reason: REASONS.policiesStricter,
    message: stricterMessage(found, `status.stricterPolicies of VirtualNode ${names}`),
  };
}

/** Causes that are shown of each policy. */
const SHOWN_CAUSES = 3;

/** The first causes of each policy, as far as there is room, and where the rest is. */
function stricterMessage(
  policies: readonly (StricterPolicy & { virtualNode: VirtualNode })[],
  place: string,
): string {
  const said = policies.map(({ virtualNode, policy, causes }) => {
    const more = causes.length > SHOWN_CAUSES ? '; and more' : '';
    return `${nodeNameOf(virtualNode)}: NetworkPolicy ${policy}: ${causes.slice(0, SHOWN_CAUSES).join('; ')}${more}`;
  });
  const whole = said.join('. ');
  const isWhole = policies.every(({ causes }) => causes.length <= SHOWN_CAUSES);
  if (isWhole && whole.length <= MAX_MESSAGE_LENGTH) return whole;
  const tail = `. All is in ${place}`.slice(0, MAX_MESSAGE_LENGTH / 2);
  return `${whole.slice(0, MAX_MESSAGE_LENGTH - tail.length)}${tail}`;
}

interface ReadyFacts {
  clusters: readonly OffloadedCluster[];
  /** Whether clusters are chosen by labels; otherwise all of them are. */
  isSelective?: boolean;
  /** Whether there is any virtual node, chosen or not. Default: there is none. */
  hasVirtualNodes?: boolean;
  /** Why the namespace never leaves this cluster. */
  refusal?: string | undefined;
  isEnding?: boolean;
  generation?: number | undefined;
  /** Why pods do not come home yet, one phrase for each pod. */
  held?: readonly string[];
  /** Which pods cannot come home before somebody changes their templates. */
  keptAway?: string | undefined;
  /** Which pods are on real nodes although they must not be. */
  atHome?: string | undefined;
}

const NOT_SELECTED =
  'no virtual node has the labels of spec.clusterSelector; `kubectl get nodes -l tributary.dev/node-type=virtual-node --show-labels` shows what there is';
const NO_VIRTUAL_NODE =
  'there is no virtual node, so no foreign cluster takes pods; `kubectl get foreignclusters` shows which ones are known, and how far a ' +
  'peering is; `tributary peer` begins one';

/** What is true: a selector that is set says nothing where there is nothing to select. */
function notSelected({ clusters, isSelective, hasVirtualNodes }: ReadyFacts): string {
  const left = clusters.map(nameOf);
  if (isSelective === true && hasVirtualNodes === true) return NOT_SELECTED;
  return left.length === 0
    ? NO_VIRTUAL_NODE
    : `${left.join(', ')}: being left; besides, ${NO_VIRTUAL_NODE.replace('virtual node', 'other virtual node')}`;
}

/** Of Ready=True. */
const FINE = new Set<NamespaceOffloadingReason>([REASONS.ok, REASONS.closed]);

type ReadyCondition = WantedCondition<string, NamespaceOffloadingReason>;

/** The API server leaves the kind out of objects in a list. */
export const subjectOf = (
  offloading: NamespaceOffloading,
): NamespaceOffloading & { apiVersion: string; kind: string } => ({
  ...offloading,
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
});

/** The condition Ready. Clusters that are being drained do not count. Pure. */
export function readyCondition(facts: ReadyFacts): ReadyCondition {
  const { clusters, refusal, isEnding = false, generation, held = [], keptAway, atHome } = facts;
  const of = (reason: NamespaceOffloadingReason, message: string): ReadyCondition => ({
    type: NAMESPACE_OFFLOADING_CONDITIONS.ready,
    status: FINE.has(reason) ? 'True' : 'False',
    reason,
    message,
    ...(generation !== undefined && { observedGeneration: generation }),
  });
  if (isEnding) {
    const [first] = held;
    const waits = first === undefined ? '' : `; waits for ${held.length} of them, one is ${first}`;
    const stuck = keptAway === undefined ? '' : `; ${keptAway}`;
    return of(
      REASONS.ending,
      `pods come home, then the namespaces over there are given back${waits}${stuck}`,
    );
  }
  if (refusal !== undefined) return of(REASONS.systemNamespace, refusal);
  const current = clusters.filter(({ phase }) => phase !== 'Ending');
  if (current.length === 0) return of(REASONS.noClusterSelected, notSelected(facts));
  const failed = current.filter(({ phase }) => phase === 'Failed');
  if (failed.length === current.length) return of(REASONS.allFailed, failed.map(described).join('; '));
  if (failed.length > 0) return of(REASONS.someFailed, failed.map(described).join('; '));
  const pending = current.filter(({ phase }) => phase === 'Pending');
  if (pending.length > 0) return of(REASONS.inProgress, pending.map(described).join('; '));
  if (atHome !== undefined) return of(REASONS.podsAtHome, atHome);
  // It is there, and its pods run; only new ones find no place.
  const isOpen = current.some(({ reason }) => reason !== REASONS.closed);
  return of(isOpen ? REASONS.ok : REASONS.closed, `in ${current.map(placeOf).join(', ')}`);
}

const nameOf = ({ cluster, clusterName }: OffloadedCluster): string => clusterName ?? cluster;

const placeOf = (cluster: OffloadedCluster): string =>
  cluster.reason === REASONS.closed ? `${nameOf(cluster)} (${cluster.message ?? ''})` : nameOf(cluster);

const described = (cluster: OffloadedCluster): string =>
  `${nameOf(cluster)}: ${cluster.reason}${cluster.message === undefined ? '' : ` (${cluster.message})`}`;

interface EventText {
  type: 'Normal' | 'Warning';
  reason: NamespaceOffloadingReason;
  message: string;
}

/** Events to write: the reason of Ready has changed, or a cluster has failed, or has failed for another reason. Pure. */
export function eventsFor(
  before: { ready?: string | undefined; clusters?: readonly OffloadedCluster[] },
  now: { ready: ReadyCondition; clusters: readonly OffloadedCluster[] },
): EventText[] {
  const { ready, clusters } = now;
  const known = new Map((before.clusters ?? []).map((one) => [one.cluster, one]));
  const failures = clusters
    .filter(({ phase }) => phase === 'Failed')
    .filter(
      ({ cluster, reason }) =>
        known.get(cluster)?.phase !== 'Failed' || known.get(cluster)?.reason !== reason,
    )
    .map((one): EventText => ({ type: 'Warning', reason: one.reason, message: `in ${described(one)}` }));
  if (before.ready === ready.reason) return failures;
  const isFine = ([REASONS.ok, REASONS.inProgress, REASONS.ending] as string[]).includes(ready.reason);
  return [...failures, { type: isFine ? 'Normal' : 'Warning', reason: ready.reason, message: ready.message }];
}
