/** One agent that the `cluster` role starts, or that runs within role `all`, as objects to apply. Pure. */
import {
  AGENT_NAME_PREFIX,
  AGENTS_NAMESPACE,
  checkedLabel,
  checkedSubdomain,
  type Manifest,
  PEERS_NAME,
  SYSTEM_NAMESPACE,
} from '../api/manifest.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import { type AccountRef, forgeBinding, forgeGrant, type Right, rulesOf } from '../api/rbac.ts';
import { DEFAULT_RESTORED_KEEP_SECONDS } from '../api/virtual-node.ts';
import { TributaryError } from '../lib/errors.ts';
import { DEFAULT_LOG_LEVEL, type LogLevel } from '../lib/log.ts';
import { AGENT_BINDING_PREFIX, AGENT_KINDS_ROLE, AGENT_NAMESPACE_ROLE } from './agents.ts';
import { checkedImage, forgeDeployment, KUBELET_PORT, labelsOf, OPS_PORT, type Program } from './program.ts';
import { LAUNCHED_OWN_RIGHTS } from './rights/agent.ts';

interface Dns {
  nameservers: readonly string[];
  domain: string | undefined;
}

/** What all agents are started with. */
export interface AgentProgram {
  image: string;
  priorityClassName?: string;
  /** Of this cluster, where people have named them; the agent knows those of its own pod. */
  dns?: Dns;
  /** With which the agent starts; default: as any process. */
  logLevel?: LogLevel;
  /** Default: as the agent itself takes. */
  restoredKeepSeconds?: number;
}

/** What its rights follow from. */
export interface AccountOfAgent {
  /** ClusterID of the provider. */
  clusterID: string;
  virtualNodes: readonly { name: string; nodeName: string }[];
  /** The offloaded home namespaces. */
  namespaces: readonly string[];
  /** In tributary-system. */
  kubeconfigSecret: string;
}

export interface LaunchedAgent extends AgentProgram, AccountOfAgent {}

/** Twice that of one agent; what one more peer takes is in docs/operations/many-peers.md. */
const PEERS_MEMORY_LIMIT = '1Gi';

export const agentName = (clusterID: string): string => `${AGENT_NAME_PREFIX}${clusterID}`;
/** Of its bindings in each offloaded namespace, by the ClusterRole. */
const bindingsOf = (clusterID: string): Record<string, string> => ({
  [AGENT_NAMESPACE_ROLE]: `${AGENT_BINDING_PREFIX}${clusterID}`,
  [AGENT_KINDS_ROLE]: `${AGENT_BINDING_PREFIX}${clusterID}-kinds`,
});
export const agentBindingNames = (clusterID: string): string[] => Object.values(bindingsOf(clusterID));

/** On all of its objects. */
const agentLabels = (clusterID: string): Record<string, string> => ({
  ...labelsOf(agentName(clusterID)),
  [LABEL_PROVIDER]: clusterID,
});

/** Its own, where it has a pod for itself, or runs within role `all`. */
export const agentAccount = (clusterID: string): AccountRef => ({
  namespace: AGENTS_NAMESPACE,
  name: agentName(clusterID),
});

/** Of the one agent of all. */
export const PEERS_ACCOUNT: AccountRef = { namespace: AGENTS_NAMESPACE, name: PEERS_NAME };

/** All that it may do for this provider, and for no other, given to those accounts. */
export function forgeAgentRights(agent: AccountOfAgent, account: readonly AccountRef[]): Manifest[] {
  const { clusterID } = checkedAgent(agent);
  const labels = agentLabels(clusterID);
  return [
    ...forgeGrant({
      name: agentName(clusterID),
      namespace: SYSTEM_NAMESPACE,
      labels,
      account,
      rules: rulesOf(ownRights(agent)),
    }),
    ...agent.namespaces.flatMap((namespace) =>
      Object.entries(bindingsOf(clusterID)).map(([role, name]) =>
        forgeBinding({ kind: 'ClusterRole', name: role }, { name, namespace, labels, account }),
      ),
    ),
  ];
}

export const forgeAgentAccount = (clusterID: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { ...agentAccount(clusterID), labels: agentLabels(clusterID) },
});

/** Its account and its pod. Its rights must come before them. */
export function forgeAgentPod(agent: LaunchedAgent): Manifest[] {
  const { clusterID, virtualNodes } = checkedAgent(agent);
  checkedImage(agent.image);
  const names = virtualNodes.map(({ name }) => name).join(',');
  return [
    forgeAgentAccount(clusterID),
    forgeDeployment({
      ...programOf(agent, ['peer', '--system-namespace', SYSTEM_NAMESPACE, '--virtual-node', names]),
      account: agentAccount(clusterID),
      labels: agentLabels(clusterID),
      ports: { kubelet: KUBELET_PORT, ops: OPS_PORT },
      memoryLimit: '512Mi',
    }),
  ];
}

/** Account and pod of the one agent of all: nothing in it says whom it serves, so that it goes on when that changes. */
export function forgePeersPod(agent: AgentProgram): Manifest[] {
  const labels = labelsOf(PEERS_NAME);
  checkedImage(agent.image);
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...PEERS_ACCOUNT, labels } },
    forgeDeployment({
      ...programOf(agent, ['peers', '--system-namespace', SYSTEM_NAMESPACE]),
      account: PEERS_ACCOUNT,
      labels,
      // The kubelet APIs follow each other from there on.
      ports: { kubelet: KUBELET_PORT, ops: OPS_PORT },
      memoryLimit: PEERS_MEMORY_LIMIT,
    }),
  ];
}

function programOf(
  { image, priorityClassName, dns, logLevel, restoredKeepSeconds }: AgentProgram,
  role: readonly string[],
): Pick<Program, 'args' | 'image' | 'priorityClassName'> {
  const args = [
    'run',
    ...role,
    ...dnsArguments(dns),
    ...logArguments(logLevel),
    ...keepArguments(restoredKeepSeconds),
  ];
  return { args, image, ...(priorityClassName !== undefined && { priorityClassName }) };
}

const dnsArguments = ({ nameservers, domain }: Dns = { nameservers: [], domain: undefined }): string[] => [
  ...(nameservers.length > 0 ? ['--cluster-dns', nameservers.join(',')] : []),
  ...(domain === undefined ? [] : ['--cluster-domain', domain]),
];

/** The default is not said, so that agents which run with it are not replaced for the sake of a word. */
const logArguments = (level: LogLevel = DEFAULT_LOG_LEVEL): string[] =>
  level === DEFAULT_LOG_LEVEL ? [] : ['--log-level', level];

const keepArguments = (seconds = DEFAULT_RESTORED_KEEP_SECONDS): string[] =>
  seconds === DEFAULT_RESTORED_KEEP_SECONDS ? [] : ['--restored-keep-seconds', String(seconds)];

/** Its table with the names filled in; where there are several, each in its place. */
function ownRights({ virtualNodes, kubeconfigSecret }: AccountOfAgent): Right[] {
  const names: Readonly<Record<string, readonly string[]>> = {
    '<secret>': [kubeconfigSecret],
    '<node>': virtualNodes.map(({ nodeName }) => nodeName),
    '<virtual-node>': virtualNodes.map(({ name }) => name),
  };
  return LAUNCHED_OWN_RIGHTS.map((right) => ({
    ...right,
    names: (right.names ?? []).flatMap((name) => names[name] ?? [name]),
  }));
}

function checkedAgent(agent: AccountOfAgent): AccountOfAgent {
  checkedLabel('cluster', agent.clusterID);
  if (agent.virtualNodes.length === 0) {
    throw new TributaryError(
      'Invalid',
      `the agent of cluster ${agent.clusterID} has no VirtualNode to serve`,
    );
  }
  for (const { name, nodeName } of agent.virtualNodes) {
    checkedLabel('virtual node', name);
    checkedSubdomain('node', nodeName);
  }
  for (const namespace of agent.namespaces) checkedLabel('namespace', namespace);
  return agent;
}
