import type * as models from '@kubernetes/client-node';

import { APP_NAME, LABEL_APP_NAME, type Manifest, type ManifestOf } from '../../api/manifest.ts';
import { ANNOTATION_HOME_NAMESPACE, TAINT_DEVICE, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import { type Contract, POD_SECURITY_LEVELS } from '../../api/offer.ts';
import { CLUSTER_ACCOUNT, forgeBinding, forgeGrant, type Grant } from '../../api/rbac.ts';
import type { ReflectableKind } from '../../api/reflection.ts';
import type { SharingPolicySpec } from '../../api/sharing-policy.ts';
import { LABEL_PEER, LABEL_TENANCY, PEERS_NAMESPACE, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import type { ResourceList, Stored, Toleration } from '../../api/wire.ts';
import {
  ANNOTATION_EXTENDED,
  ANNOTATION_INGRESS_CLASSES,
  ANNOTATION_INGRESS_HOSTS,
  ANNOTATION_KEEP_FOR,
  ANNOTATION_MAX_PRIORITY,
  ANNOTATION_ON_END,
  annotationsOfTerms,
  annotationsOfWrites,
  DEFAULT_KEEP_FOR_SECONDS,
  extendedResources,
} from '../annotations.ts';
import { KIND_VERBS } from '../policies/kinds.ts';
import type { IsolationFacts } from './isolation.ts';
import { forgeAccount, forgeTenantNamespace } from './objects.ts';
import { boundsOfKinds } from './quota.ts';

/** The one ClusterRole of peers, bound in each tenant namespace. */
export const TENANT_ROLE = 'tributary-tenant';
/** The ClusterRole by which role `cluster` reads logs, bound in each tenant namespace and nowhere else; also the name of the RoleBinding. */
export const TENANT_LOGS_ROLE = 'tributary-tenant-logs';
/** Name of the RoleBinding in each tenant namespace. */
const TENANT_BINDING = 'tributary-peer';
/** Name of the Role for further kinds in a tenant namespace, and of its RoleBinding. */
export const TENANT_KINDS_ROLE = 'tributary-peer-kinds';
/** The priority level that all peers share, each with queues of its own. */
export const PEERS_PRIORITY_LEVEL = 'tributary-peers';
export const FLOW_SCHEMA_PREFIX = 'tributary-peer-';
/** Before Kubernetes' own `service-accounts` (9000), after whatever keeps the cluster itself alive. */
const FLOW_PRECEDENCE = 2000;

type FlowSchema = Stored<models.V1FlowSchema>;

export interface ContractTenant {
  /** ClusterID. */
  consumer: string;
  contract: Contract;
  /** What may be used today; no more than the contract says. */
  amounts: ResourceList;
  policy: SharingPolicySpec;
  /** Those of the kinds that the policy names that may be granted. */
  kinds?: readonly ReflectableKind[];
  /** VirtualNodes that stand for the peer itself, and to which its pods may go. */
  returnsTo?: readonly string[];
  /** What the network knows of the peer's addresses and of ours. */
  network?: Pick<IsolationFacts, 'prefixes' | 'own'>;
}

const contractTenantLabels = (consumer: string): Record<string, string> => ({
  [LABEL_APP_NAME]: APP_NAME,
  [LABEL_PEER]: consumer,
  [LABEL_TENANCY]: TENANCY_CONTRACT,
});

interface ContractTenantObjects {
  shared: Manifest[];
  /** One list for each namespace; they do not depend on each other. */
  tenants: Manifest[][];
  /** Rights to further kinds; the tenant works without them. */
  kinds: Manifest[];
  /** Comes last: nobody can come in before it is there. */
  account: Manifest[];
}

/**
 * All objects that a contract puts in place, in the order in which they must be applied: the quota is there before the peer may
 * create a pod. A quota bounds one namespace. Each bears the whole amount, since a split would leave room unused in one while
 * pods are refused in another; the ledger bounds the sum over all.
 */
export function forgeContractTenant(tenant: ContractTenant): ContractTenantObjects {
  const { consumer, contract, kinds = [] } = tenant;
  const labels = contractTenantLabels(consumer);
  const account = { namespace: PEERS_NAMESPACE, name: consumer };
  return {
    shared: [forgeFlowSchema(consumer)],
    tenants: contract.namespaces.map((names) => forgeTenantObjects(tenant, { ...names, labels })),
    kinds: contract.namespaces.flatMap(({ tenantNamespace }) =>
      forgeKinds(kinds, { name: TENANT_KINDS_ROLE, namespace: tenantNamespace, labels, account }),
    ),
    account: [forgeAccount(consumer, PEERS_NAMESPACE, labels)],
  };
}

/** The Role first, then its binding. */
const forgeKinds = (kinds: readonly ReflectableKind[], grant: Omit<Grant, 'rules'>): Manifest[] =>
  kinds.length === 0
    ? []
    : forgeGrant({
        ...grant,
        rules: kinds.map(({ group, resource }) => ({
          apiGroups: [group],
          resources: [resource],
          verbs: [...KIND_VERBS],
        })),
      });

function forgeTenantObjects(
  { consumer, contract, amounts, policy, kinds = [], returnsTo = [], network }: ContractTenant,
  names: { homeNamespace: string; tenantNamespace: string; labels: Record<string, string> },
): Manifest[] {
  const { homeNamespace, tenantNamespace: namespace, labels } = names;
  const quota = quotaOf(amounts);
  const levels = new Set([policy.podSecurity ?? 'baseline', contract.podSecurity]);
  // The stricter of the two: the policy may have changed since the contract.
  const podSecurity = POD_SECURITY_LEVELS.find((level) => levels.has(level)) ?? 'restricted';
  const { imagePullPolicy = 'Always' } = policy;
  const annotations = {
    ...annotationsOf(quota, { ...withWayBack(policy, returnsTo), podSecurity, imagePullPolicy }),
    [ANNOTATION_HOME_NAMESPACE]: homeNamespace,
    [ANNOTATION_KEEP_FOR]: String(contract.keepForSeconds),
  };
  return [
    ...forgeTenantNamespace({
      name: namespace,
      labels,
      annotations,
      podSecurity,
      quota: { ...boundsOfKinds(kinds), ...quota },
      defaultRequests: policy.defaultRequests,
      containerLimits: policy.containerLimits,
      isolation: isIsolated(policy)
        ? { prefixes: [], own: undefined, ...network, peer: consumer }
        : undefined,
    }),
    forgeBinding(
      { kind: 'ClusterRole', name: TENANT_ROLE },
      { name: TENANT_BINDING, namespace, labels, account: { namespace: PEERS_NAMESPACE, name: consumer } },
    ),
    forgeBinding(
      { kind: 'ClusterRole', name: TENANT_LOGS_ROLE },
      { name: TENANT_LOGS_ROLE, namespace, labels, account: CLUSTER_ACCOUNT },
    ),
  ];
}

/** By their names: other virtual nodes are no place for what a peer brings. */
function withWayBack(policy: SharingPolicySpec, returnsTo: readonly string[]): SharingPolicySpec {
  if (returnsTo.length === 0) return policy;
  const tolerations: Toleration[] = [
    ...(policy.tolerations ?? []),
    { key: TAINT_DEVICE, operator: 'Exists', effect: 'NoSchedule' },
    ...returnsTo.map((value) => ({ key: TAINT_VIRTUAL_NODE, operator: 'Equal', value })),
  ];
  return { ...policy, tolerations };
}

export const isIsolated = ({ isolation = 'Tenant' }: Pick<SharingPolicySpec, 'isolation'>): boolean =>
  isolation === 'Tenant';

/** Persistent storage counts as `requests.storage`. Cpu, memory and pods are bounded even where nobody named them. */
function quotaOf({ storage, ...amounts }: ResourceList): ResourceList {
  const floor = { cpu: '0', memory: '0', pods: '0' };
  return { ...floor, ...amounts, ...(storage !== undefined && { 'requests.storage': storage }) };
}

function annotationsOf(quota: ResourceList, policy: SharingPolicySpec): Record<string, string> {
  const { maxPriority = 0, onEnd = 'Delete', keepForSeconds = DEFAULT_KEEP_FOR_SECONDS } = policy;
  const { ingressClasses = [], ingressHosts = [] } = policy;
  return {
    [ANNOTATION_MAX_PRIORITY]: String(maxPriority),
    [ANNOTATION_EXTENDED]: extendedResources(quota),
    [ANNOTATION_INGRESS_CLASSES]: ingressClasses.toSorted().join(','),
    [ANNOTATION_INGRESS_HOSTS]: ingressHosts.toSorted().join(','),
    [ANNOTATION_ON_END]: onEnd === 'Keep' ? `Keep=${keepForSeconds}` : 'Delete',
    ...annotationsOfWrites(policy.writes),
    ...annotationsOfTerms(policy),
  };
}

/** API Priority and Fairness (KEP-1040): all requests of a peer to the API server wait in queues for peers. */
function forgeFlowSchema(consumer: string): ManifestOf<FlowSchema> {
  const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
  return {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: { name: `${FLOW_SCHEMA_PREFIX}${consumer}`, labels: contractTenantLabels(consumer) },
    spec: {
      priorityLevelConfiguration: { name: PEERS_PRIORITY_LEVEL },
      matchingPrecedence: FLOW_PRECEDENCE,
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [
            { kind: 'ServiceAccount', serviceAccount: { namespace: PEERS_NAMESPACE, name: consumer } },
          ],
          resourceRules: [{ ...everything, clusterScope: true, namespaces: ['*'] }],
          nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        },
      ],
    },
  };
}
