import { nodeNameOf } from '../../api/node-labels.ts';
import {
  API_VERSION,
  closedMessage,
  type NamespaceMapping,
  type StricterPolicy,
  VIRTUAL_NODE_CONDITIONS,
  VIRTUAL_NODE_REASONS,
  type VirtualNode,
  virtualNodes,
  type VirtualNodeStatus,
} from '../../api/virtual-node.ts';
import type { Condition } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { HomeApiServerWay } from '../home-api-server.ts';
import type { HomeDnsWay } from '../home-dns.ts';
import type { RestoredState } from '../restored/restores.ts';
import type { ContactState } from './contact.ts';
import { foreignVersionOf } from './forge.ts';
import { type Obstacle, obstacleOf } from './readiness.ts';

export interface StatusInputs {
  virtualNode: VirtualNode;
  contact: ContactState;
  notReady: Obstacle | undefined;
  namespaces: NamespaceMapping[];
  stricterPolicies: readonly StricterPolicy[];
  homeApiServer: HomeApiServerWay;
  homeDns: HomeDnsWay;
  restored?: RestoredState | undefined;
  now: string;
}

const CREDENTIAL_REASONS = new Set<string>([
  VIRTUAL_NODE_REASONS.secretNotFound,
  VIRTUAL_NODE_REASONS.kubeconfigInvalid,
  VIRTUAL_NODE_REASONS.credentialsRejected,
  VIRTUAL_NODE_REASONS.notAuthorized,
]);

const ANSWER_REASONS = new Set<string>([
  VIRTUAL_NODE_REASONS.credentialsRejected,
  VIRTUAL_NODE_REASONS.notAuthorized,
]);

/** The VirtualNode's status: which parts work, and why others do not. Pure. */
export function forgeVirtualNodeStatus(inputs: StatusInputs): VirtualNodeStatus {
  const { virtualNode, contact, notReady, namespaces, stricterPolicies, now } = inputs;
  const generation = virtualNode.metadata.generation ?? 1;
  const isCredential = CREDENTIAL_REASONS.has(contact.reason);
  // A server that refuses a credential has answered.
  const hasAnswered = ANSWER_REASONS.has(contact.reason);
  const isStarting = contact.reason === VIRTUAL_NODE_REASONS.starting;
  const bad = { reason: contact.reason as string, message: contact.message };
  const good = (message: string): ConditionState => ({
    status: 'True',
    reason: VIRTUAL_NODE_REASONS.ok,
    message,
  });
  const obstacle = obstacleOf(contact, notReady);
  const ready: ConditionState =
    obstacle === undefined ? readyState(virtualNode) : { status: 'False', ...obstacle };
  const credentials: ConditionState = contact.ok
    ? good('the foreign API server accepts the credential')
    : { status: isCredential ? 'False' : 'Unknown', ...bad };
  const reachable: ConditionState =
    contact.ok || hasAnswered
      ? good('the foreign API server answers')
      : { status: isCredential || isStarting ? 'Unknown' : 'False', ...bad };
  const foreignVersion = foreignVersionOf(contact, virtualNode);
  const verdicts: [string, ConditionState][] = [
    [VIRTUAL_NODE_CONDITIONS.ready, ready],
    [VIRTUAL_NODE_CONDITIONS.credentials, credentials],
    [VIRTUAL_NODE_CONDITIONS.reachable, reachable],
    [VIRTUAL_NODE_CONDITIONS.homeApiServer, homeApiServerState(inputs.homeApiServer)],
    ...homeDnsVerdict(inputs.homeDns),
    ...restoredVerdict(inputs.restored),
  ];
  // Also one that is not said any more.
  const ours = new Set<string>(Object.values(VIRTUAL_NODE_CONDITIONS));
  return {
    observedGeneration: generation,
    nodeName: nodeNameOf(virtualNode),
    namespaces,
    ...(stricterPolicies.length > 0 && { stricterPolicies: [...stricterPolicies] }),
    ...(foreignVersion === undefined ? {} : { foreignVersion }),
    conditions: [
      ...verdicts.map(([type, verdict]) => withTransition(type, verdict, inputs, now)),
      // Conditions of others, such as peering's, are theirs.
      ...(virtualNode.status?.conditions ?? []).filter(({ type }) => !ours.has(type)),
    ],
  };
}

function readyState(virtualNode: VirtualNode): ConditionState {
  const closed = closedMessage(virtualNode);
  return closed === undefined
    ? { status: 'True', reason: VIRTUAL_NODE_REASONS.ok, message: 'the foreign cluster takes pods' }
    : { status: 'True', reason: VIRTUAL_NODE_REASONS.closed, message: closed };
}

function homeApiServerState(way: HomeApiServerWay): ConditionState {
  if (way.kind === 'At') {
    const { host, port, alias } = way;
    const at = alias === undefined ? '' : `, which is ${alias} over there`;
    const message = `pods over there reach it at ${host}:${port}${at}`;
    return { status: 'True', reason: VIRTUAL_NODE_REASONS.ok, message };
  }
  const { kind, reason, message } = way;
  return kind === 'Unknown'
    ? { status: 'Unknown', reason, message }
    : { status: 'False', reason, message: `pods over there get no token for it: ${message}` };
}

function homeDnsVerdict(way: HomeDnsWay): [string, ConditionState][] {
  if (way.kind === 'NotChosen') return [];
  const type = VIRTUAL_NODE_CONDITIONS.homeDns;
  if (way.kind === 'At') {
    const message = `pods over there ask ${way.nameservers.join(', ')}, with the domain ${way.domain}`;
    return [[type, { status: 'True', reason: VIRTUAL_NODE_REASONS.ok, message }]];
  }
  const { kind, reason, message } = way;
  if (kind === 'Unknown')
    return [[type, { status: 'Unknown', reason, message: `new pods wait: ${message}` }]];
  return [
    [type, { status: 'False', reason, message: `pods over there ask the DNS of their cluster: ${message}` }],
  ];
}

const restoredVerdict = (state: RestoredState | undefined): [string, ConditionState][] =>
  state === undefined ? [] : [[VIRTUAL_NODE_CONDITIONS.restored, { status: 'True', ...state }]];

type ConditionState = Pick<Condition, 'reason' | 'message'> & { status: 'True' | 'False' | 'Unknown' };

function withTransition(
  type: string,
  verdict: ConditionState,
  { virtualNode }: StatusInputs,
  now: string,
): Condition {
  const before = virtualNode.status?.conditions?.find((condition) => condition.type === type);
  return {
    type,
    ...verdict,
    observedGeneration: virtualNode.metadata.generation ?? 1,
    lastTransitionTime: before?.status === verdict.status ? before.lastTransitionTime : now,
  };
}

export const isShown = (inputs: StatusInputs): boolean =>
  deepEqual(inputs.virtualNode.status, forgeVirtualNodeStatus(inputs));

/** Writes the status only when it differs. */
export async function writeVirtualNodeStatus(
  home: KubeClient,
  inputs: StatusInputs,
  signal: AbortSignal,
): Promise<void> {
  const status = forgeVirtualNodeStatus(inputs);
  const { virtualNode } = inputs;
  // Named in full, since the one read at start may have come without its kind.
  const object: VirtualNode = { apiVersion: API_VERSION, kind: 'VirtualNode', ...virtualNode };
  await replaceStatusIfDiffers(home, virtualNodes, object, { status, signal });
}
