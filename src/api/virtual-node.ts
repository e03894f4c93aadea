import { ANNOTATION_CLOSED, ANNOTATION_ENDING, TAINT_CLOSED } from './names.ts';
import type { Price } from './offer.ts';
import type { PodAdditions } from './pod-additions.ts';
import type { ReflectionRule } from './reflection.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject, ResourceList, Taint } from './wire.ts';

export const API_GROUP = 'tributary.dev';
export const API_VERSION = 'tributary.dev/v1alpha1';

/** A key of a Secret that holds a kubeconfig for the foreign cluster. */
export interface KubeconfigSecretRef {
  namespace: string;
  name: string;
  /** Default `kubeconfig`. */
  key?: string;
}

/** Pods of the home namespace run in the tenant namespace over there. */
export interface NamespaceMapping {
  homeNamespace: string;
  tenantNamespace: string;
  /** Which objects travel beside what is carried across by default. */
  reflection?: ReflectionRule[];
  /** It is to be taken out: what runs there goes on until somebody ends it, and nothing new is begun. */
  leaving?: boolean;
}

/** Where offloaded pods reach the home API server; without it they get no token for it. */
export interface HomeApiServer {
  /** An address or name that is reachable from the foreign cluster's pods and named in the serving certificate. */
  host: string;
  port: number;
}

/** None: the Node has no such taint, and the scheduler treats it as any other. */
export type VirtualNodeTaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'None';

export interface VirtualNodeSpec {
  /** Name of the Node in the home cluster; default: the VirtualNode's own name. */
  nodeName?: string;
  kubeconfigSecretRef: KubeconfigSecretRef;
  /** What the foreign cluster lends, as Node capacity: cpu, memory, pods, ephemeral-storage, extended resources. */
  resources: ResourceList;
  /**
   * What one node over there has for a pod: of those nodes that no other one exceeds in everything. Absent: any pod that the Node has
   * room for fits over there, too, as far as is known.
   */
  nodeSizes?: ResourceList[];
  /** What the foreign cluster asks for, by resource. */
  prices?: Record<string, Price>;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** What the taint `tributary.dev/virtual-node` does to pods that do not tolerate it. Default NoSchedule. */
  taintEffect?: VirtualNodeTaintEffect;
  /** Besides the taint `tributary.dev/virtual-node`. */
  taints?: Taint[];
  /** For every pod that is sent there. */
  podAdditions?: PodAdditions;
  /** The foreign cluster is away when nothing has answered for so long; shorter gaps change nothing. Default 20. */
  awayAfterSeconds?: number;
  /** Only pods of these namespaces are offloaded. */
  namespaces?: NamespaceMapping[];
  homeApiServer?: HomeApiServer;
  /** Classes of Ingresses here, and what they become over there. An Ingress of another class stays home. */
  ingressClasses?: Record<string, string>;
  /** StorageClasses here and what they become over there; before the parameter `foreignClass` of the class. */
  storageClasses?: Record<string, string>;
  /** Classes that the provider lends, where it has said; others are refused here already. */
  offeredStorageClasses?: string[];
  /** PriorityClasses that the provider lends; a pod of another class has no priority over there. */
  priorityClasses?: string[];
  /** The runtime's features that all nodes over there declare; decides what the scheduler lets in (KEP-5328). */
  declaredFeatures?: string[];
}

/** Default of `awayAfterSeconds`. */
export const AWAY_AFTER_SECONDS = 20;

/** A NetworkPolicy that closes more for pods over there than at home. */
export interface StricterPolicy {
  homeNamespace: string;
  policy: string;
  /** Each with its rule. Where there are too many, the last one says how many more there are. */
  causes: string[];
}

export interface VirtualNodeStatus {
  /** The spec's generation that the conditions speak of. */
  observedGeneration?: number;
  nodeName?: string;
  /** Namespaces looked after: those of the spec, and those taken out of it in which pods still live. */
  namespaces?: NamespaceMapping[];
  /** Absent where all hold as at home. */
  stricterPolicies?: StricterPolicy[];
  /** `major.minor.patch` of the foreign API server. */
  foreignVersion?: string;
  conditions?: Condition[];
}

/** From one VirtualNode come one Node and one agent. */
export interface VirtualNode extends KubeObject {
  spec: VirtualNodeSpec;
  status?: VirtualNodeStatus;
}

/** Whether its taint keeps away pods that do not tolerate it: the default. */
export const isTainted = ({ spec: { taintEffect = 'NoSchedule' } }: Pick<VirtualNode, 'spec'>): boolean =>
  taintEffect === 'NoSchedule';

export const virtualNodes: ResourceType<VirtualNode> = clusterScoped('tributary.dev/v1alpha1', 'VirtualNode');

/** Condition types of a VirtualNode's status; a closed list. */
export const VIRTUAL_NODE_CONDITIONS = {
  /** The Node is Ready: everything below holds and the kubelet API listens. */
  ready: 'Ready',
  /** The kubeconfig Secret is there, parses, and its credential is accepted. */
  credentials: 'CredentialsValid',
  /** The foreign API server answers. */
  reachable: 'ForeignClusterReachable',
  /** Pods over there reach the home API server, and so get tokens for it. */
  homeApiServer: 'HomeApiServerReachable',
  /** Pods over there ask the home DNS. Absent unless people have chosen that. */
  homeDns: 'HomeDNSReachable',
  /** One of the two clusters was restored from a backup of late. Absent otherwise. */
  restored: 'Restored',
} as const;

/** How long pods over there are kept that have no pod here since this cluster was restored from a backup. */
export const DEFAULT_RESTORED_KEEP_SECONDS = 600;

/** Reasons of those conditions; a closed list. */
export const VIRTUAL_NODE_REASONS = {
  ok: 'AsExpected',
  /** Of Ready=True: it takes no new pods, and the message says why. */
  closed: 'Closed',
  starting: 'Starting',
  stopped: 'AgentNotRunning',
  cachesNotSynced: 'CachesNotSynced',
  nodeRefused: 'NodeRefused',
  secretNotFound: 'KubeconfigSecretNotFound',
  kubeconfigInvalid: 'KubeconfigInvalid',
  credentialsRejected: 'CredentialsRejected',
  notAuthorized: 'NotAuthorized',
  unreachable: 'ForeignClusterUnreachable',
  unhealthy: 'ForeignClusterUnhealthy',
  /** Of Restored: this cluster. */
  homeRestored: 'HomeRestored',
  foreignRestored: 'ForeignClusterRestored',
} as const;

/** What Ready says of one that peering has closed to new pods, which stays Ready for those that are there; undefined: it takes them. */
export function closedMessage({ metadata, spec }: VirtualNode): string | undefined {
  if (!(spec.taints ?? []).some(({ key }) => key === TAINT_CLOSED)) return undefined;
  const { [ANNOTATION_CLOSED]: why = `nobody has said why it has the taint ${TAINT_CLOSED}`, ...others } =
    metadata.annotations ?? {};
  const fate =
    others[ANNOTATION_ENDING] === undefined ? 'those that are there run on' : 'those that are there end';
  return `no new pods are sent there: ${why}; ${fate}`;
}

/** Its Ready condition, where its agent says that it is Ready and closed to new pods. */
export const closedCondition = ({ status }: Pick<VirtualNode, 'status'>): Condition | undefined =>
  status?.conditions?.find(
    ({ type, status: is, reason }) =>
      type === VIRTUAL_NODE_CONDITIONS.ready && is === 'True' && reason === VIRTUAL_NODE_REASONS.closed,
  );
