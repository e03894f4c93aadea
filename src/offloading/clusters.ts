import { isConditionTrue } from '../api/conditions.ts';
import { MAX_MESSAGE_LENGTH } from '../api/limits.ts';
import { LABEL_CLUSTER } from '../api/names.ts';
import {
  NAMESPACE_OFFLOADING_REASONS as REASONS,
  type NamespaceMappingState,
  type OffloadedCluster,
} from '../api/namespace-offloading.ts';
import { nodeLabelsOf } from '../api/node-labels.ts';
import { type NamespaceMapping, VIRTUAL_NODE_CONDITIONS, type VirtualNode } from '../api/virtual-node.ts';

/** What there is to know of one namespace in one foreign cluster. */
export interface ClusterFacts {
  homeNamespace: string;
  /** ClusterID; of a VirtualNode made by hand, its name. */
  cluster: string;
  /** Whether peering keeps its VirtualNodes; the others are written by people. */
  isPeer: boolean;
  /** All of that cluster. */
  virtualNodes: readonly VirtualNode[];
  /** Those that the namespace may use. */
  selected: readonly VirtualNode[];
  /** Names of those that were selected before, while pods of the namespace end there. */
  leaving: readonly string[];
  /** Undefined: no word from the provider. */
  standing: NamespaceMappingState | undefined;
}

type Verdict = Pick<OffloadedCluster, 'phase' | 'reason' | 'message' | 'remoteNamespace'>;

/** Its entry in the status. Pure. */
export function entryOf(facts: ClusterFacts): OffloadedCluster {
  const { cluster, virtualNodes, selected, leaving } = facts;
  const shown = selected.length > 0 ? selected : virtualNodes;
  const { message = leavingMessage(leaving), ...verdict } = verdictOf(facts);
  const clusterName = shown.map((one) => nodeLabelsOf(one)[LABEL_CLUSTER]).find((name) => name);
  return {
    cluster,
    ...(clusterName !== undefined && { clusterName }),
    virtualNodes: [...new Set([...shown.map(({ metadata }) => metadata.name), ...leaving])].toSorted(),
    ...verdict,
    ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
  };
}

const leavingMessage = (leaving: readonly string[]): string | undefined =>
  leaving.length === 0 ? undefined : `no longer selected: pods on ${leaving.join(', ')} end`;

function verdictOf(facts: ClusterFacts): Verdict {
  if (facts.selected.length === 0) return ending(facts);
  return facts.isPeer ? ofPeer(facts) : madeByHand(facts);
}

function ending({ homeNamespace, virtualNodes }: ClusterFacts): Verdict {
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

function ofPeer(facts: ClusterFacts): Verdict {
  const { standing, selected, homeNamespace } = facts;
  if (standing === undefined) {
    return {
      phase: 'Pending',
      reason: REASONS.waitingForProvider,
      message: 'the provider has been asked for a namespace and has not answered yet',
    };
  }
  if (standing.state === 'Withheld') {
    return { phase: 'Failed', reason: standing.reason, message: advised(standing) };
  }
  const remote = at(standing.tenantNamespace);
  if (!selected.some((one) => mappingOf(one, homeNamespace) !== undefined)) {
    const message = 'the provider has given a namespace; its virtual node does not have it yet';
    return { phase: 'Pending', reason: REASONS.waitingForProvider, message, ...remote };
  }
  return { ...readiness(selected), ...remote };
}

/** Peering does not write such a VirtualNode, so a person has to. */
function madeByHand({ homeNamespace, selected, cluster }: ClusterFacts): Verdict {
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

function readiness(virtualNodes: readonly VirtualNode[]): Verdict {
  if (virtualNodes.some(({ status }) => isConditionTrue(status?.conditions, VIRTUAL_NODE_CONDITIONS.ready))) {
    return { phase: 'Ready', reason: REASONS.ok };
  }
  const conditions = virtualNodes.flatMap(
    ({ status }) => status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready) ?? [],
  );
  const refusal = conditions.find(({ status }) => status === 'False');
  // One whose agent has said nothing yet is starting, not broken.
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

const at = (remoteNamespace: string | undefined): Pick<Verdict, 'remoteNamespace'> =>
  remoteNamespace === undefined ? {} : { remoteNamespace };

const find = (mappings: readonly NamespaceMapping[] = [], name: string): NamespaceMapping | undefined =>
  mappings.find(({ homeNamespace }) => homeNamespace === name);

const mappingOf = ({ spec }: VirtualNode, name: string): NamespaceMapping | undefined =>
  find(spec.namespaces, name);

const formerMappingOf = ({ status }: VirtualNode, name: string): NamespaceMapping | undefined =>
  find(status?.namespaces, name);
