import type * as models from '@kubernetes/client-node';
import type { NetworkPolicy } from './network-policy.ts';
import type {
  CertificateSigningRequest,
  ConfigMap,
  EndpointSlice,
  Ingress,
  KubeEvent,
  KubeObject,
  Lease,
  Namespace,
  Node,
  Pod,
  Secret,
  Service,
  ServiceCidr,
  Stored,
  SubjectAccessReview,
  TokenRequest,
  TokenReview,
} from './wire.ts';

/** Where a kind lives in the API; the type parameter is the shape of its objects. */
export interface ResourceType<T extends KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never set; ties the descriptor to the type of its objects. */
  readonly __object?: T;
}

/** A kind of Kubernetes itself. */
type BuiltIn<T extends models.KubernetesObject> = ResourceType<Stored<T>>;

type Define = <T extends KubeObject>(
  groupVersion: `${string}/${string}`,
  kind: string,
  plural?: string,
) => ResourceType<T>;

const defined =
  (isNamespaced: boolean): Define =>
  (groupVersion, kind, plural = pluralOf(kind)) => {
    const [group, version] = groupVersion.split('/') as [string, string];
    return { group, version, kind, plural, namespaced: isNamespaced };
  };

/** As the API server itself derives it. */
function pluralOf(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular.endsWith('s')) return `${singular}es`;
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}

export const namespaced: Define = defined(true);
export const clusterScoped: Define = defined(false);

export const pods: ResourceType<Pod> = namespaced('/v1', 'Pod');
export const nodes: ResourceType<Node> = clusterScoped('/v1', 'Node');
export const configMaps: ResourceType<ConfigMap> = namespaced('/v1', 'ConfigMap');
export const secrets: ResourceType<Secret> = namespaced('/v1', 'Secret');
export const namespaces: ResourceType<Namespace> = clusterScoped('/v1', 'Namespace');
export const events: ResourceType<KubeEvent> = namespaced('/v1', 'Event');
export const leases: ResourceType<Lease> = namespaced('coordination.k8s.io/v1', 'Lease');
export const serviceAccountTokens: ResourceType<TokenRequest> = namespaced(
  '/v1',
  'TokenRequest',
  'serviceaccounts',
);
export const certificateSigningRequests: ResourceType<CertificateSigningRequest> = clusterScoped(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
);
export const tokenReviews: ResourceType<TokenReview> = clusterScoped(
  'authentication.k8s.io/v1',
  'TokenReview',
);
export const subjectAccessReviews: ResourceType<SubjectAccessReview> = clusterScoped(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
);
/** What these two ask, whoever is authenticated may ask about themselves. */
export const selfSubjectReviews: BuiltIn<models.V1SelfSubjectReview> = clusterScoped(
  'authentication.k8s.io/v1',
  'SelfSubjectReview',
);
export const selfSubjectAccessReviews: BuiltIn<models.V1SelfSubjectAccessReview> = clusterScoped(
  'authorization.k8s.io/v1',
  'SelfSubjectAccessReview',
);
export const selfSubjectRulesReviews: BuiltIn<models.V1SelfSubjectRulesReview> = clusterScoped(
  'authorization.k8s.io/v1',
  'SelfSubjectRulesReview',
);
export const serviceAccounts: BuiltIn<models.V1ServiceAccount> = namespaced('/v1', 'ServiceAccount');
export const services: ResourceType<Service> = namespaced('/v1', 'Service');
export const resourceQuotas: BuiltIn<models.V1ResourceQuota> = namespaced('/v1', 'ResourceQuota');
export const limitRanges: BuiltIn<models.V1LimitRange> = namespaced('/v1', 'LimitRange');
export const deployments: BuiltIn<models.V1Deployment> = namespaced('apps/v1', 'Deployment');
export const daemonSets: BuiltIn<models.V1DaemonSet> = namespaced('apps/v1', 'DaemonSet');
export const roles: BuiltIn<models.V1Role> = namespaced('rbac.authorization.k8s.io/v1', 'Role');
export const roleBindings: BuiltIn<models.V1RoleBinding> = namespaced(
  'rbac.authorization.k8s.io/v1',
  'RoleBinding',
);
export const clusterRoles: BuiltIn<models.V1ClusterRole> = clusterScoped(
  'rbac.authorization.k8s.io/v1',
  'ClusterRole',
);
export const clusterRoleBindings: BuiltIn<models.V1ClusterRoleBinding> = clusterScoped(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
);
export const admissionPolicies: BuiltIn<models.V1ValidatingAdmissionPolicy> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'ValidatingAdmissionPolicy',
);
export const admissionPolicyBindings: BuiltIn<models.V1ValidatingAdmissionPolicyBinding> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'ValidatingAdmissionPolicyBinding',
);
export const flowSchemas: BuiltIn<models.V1FlowSchema> = clusterScoped(
  'flowcontrol.apiserver.k8s.io/v1',
  'FlowSchema',
);
export const priorityLevelConfigurations: BuiltIn<models.V1PriorityLevelConfiguration> = clusterScoped(
  'flowcontrol.apiserver.k8s.io/v1',
  'PriorityLevelConfiguration',
);
export const storageClasses: BuiltIn<models.V1StorageClass> = clusterScoped(
  'storage.k8s.io/v1',
  'StorageClass',
);
export const persistentVolumeClaims: BuiltIn<models.V1PersistentVolumeClaim> = namespaced(
  '/v1',
  'PersistentVolumeClaim',
);
export const persistentVolumes: BuiltIn<models.V1PersistentVolume> = clusterScoped('/v1', 'PersistentVolume');
export const networkPolicies: ResourceType<NetworkPolicy> = namespaced(
  'networking.k8s.io/v1',
  'NetworkPolicy',
);
export const runtimeClasses: BuiltIn<models.V1RuntimeClass> = clusterScoped('node.k8s.io/v1', 'RuntimeClass');
export const ingressClasses: BuiltIn<models.V1IngressClass> = clusterScoped(
  'networking.k8s.io/v1',
  'IngressClass',
);
export const endpointSlices: ResourceType<EndpointSlice> = namespaced('discovery.k8s.io/v1', 'EndpointSlice');
export const ingresses: ResourceType<Ingress> = namespaced('networking.k8s.io/v1', 'Ingress');
export const serviceCidrs: ResourceType<ServiceCidr> = clusterScoped('networking.k8s.io/v1', 'ServiceCIDR');

export const definitions: BuiltIn<models.V1CustomResourceDefinition> = clusterScoped(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
);
export const priorityClasses: BuiltIn<models.V1PriorityClass> = clusterScoped(
  'scheduling.k8s.io/v1',
  'PriorityClass',
);
export const podDisruptionBudgets: BuiltIn<models.V1PodDisruptionBudget> = namespaced(
  'policy/v1',
  'PodDisruptionBudget',
);
export const mutatingWebhookConfigurations: ResourceType<KubeObject> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'MutatingWebhookConfiguration',
);
export const validatingWebhookConfigurations: ResourceType<KubeObject> = clusterScoped(
  'admissionregistration.k8s.io/v1',
  'ValidatingWebhookConfiguration',
);
/** Kinds of the Prometheus operator. */
export const podMonitors: ResourceType<KubeObject> = namespaced('monitoring.coreos.com/v1', 'PodMonitor');
export const prometheusRules: ResourceType<KubeObject> = namespaced(
  'monitoring.coreos.com/v1',
  'PrometheusRule',
);
