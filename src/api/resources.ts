import type * as models from '@kubernetes/client-node';
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

function resource<T extends KubeObject>(
  gvk: `${string}/${string}`,
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster',
): ResourceType<T> {
  const [group, version] = gvk.split('/') as [string, string];
  return { group, version, kind, plural, namespaced: scope === 'Namespaced' };
}

export { resource as defineResource };

export const pods: ResourceType<Pod> = resource('/v1', 'Pod', 'pods', 'Namespaced');
export const nodes: ResourceType<Node> = resource('/v1', 'Node', 'nodes', 'Cluster');
export const configMaps: ResourceType<ConfigMap> = resource('/v1', 'ConfigMap', 'configmaps', 'Namespaced');
export const secrets: ResourceType<Secret> = resource('/v1', 'Secret', 'secrets', 'Namespaced');
export const namespaces: ResourceType<Namespace> = resource('/v1', 'Namespace', 'namespaces', 'Cluster');
export const events: ResourceType<KubeEvent> = resource('/v1', 'Event', 'events', 'Namespaced');
export const leases: ResourceType<Lease> = resource(
  'coordination.k8s.io/v1',
  'Lease',
  'leases',
  'Namespaced',
);
export const serviceAccountTokens: ResourceType<TokenRequest> = resource(
  '/v1',
  'TokenRequest',
  'serviceaccounts',
  'Namespaced',
);
export const certificateSigningRequests: ResourceType<CertificateSigningRequest> = resource(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  'Cluster',
);
export const tokenReviews: ResourceType<TokenReview> = resource(
  'authentication.k8s.io/v1',
  'TokenReview',
  'tokenreviews',
  'Cluster',
);
export const subjectAccessReviews: ResourceType<SubjectAccessReview> = resource(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
  'subjectaccessreviews',
  'Cluster',
);
export const selfSubjectRulesReviews: ResourceType<Stored<models.V1SelfSubjectRulesReview>> = resource(
  'authorization.k8s.io/v1',
  'SelfSubjectRulesReview',
  'selfsubjectrulesreviews',
  'Cluster',
);
export const serviceAccounts: ResourceType<Stored<models.V1ServiceAccount>> = resource(
  '/v1',
  'ServiceAccount',
  'serviceaccounts',
  'Namespaced',
);
export const services: ResourceType<Service> = resource('/v1', 'Service', 'services', 'Namespaced');
export const resourceQuotas: ResourceType<Stored<models.V1ResourceQuota>> = resource(
  '/v1',
  'ResourceQuota',
  'resourcequotas',
  'Namespaced',
);
export const limitRanges: ResourceType<Stored<models.V1LimitRange>> = resource(
  '/v1',
  'LimitRange',
  'limitranges',
  'Namespaced',
);
export const deployments: ResourceType<Stored<models.V1Deployment>> = resource(
  'apps/v1',
  'Deployment',
  'deployments',
  'Namespaced',
);
export const roles: ResourceType<Stored<models.V1Role>> = resource(
  'rbac.authorization.k8s.io/v1',
  'Role',
  'roles',
  'Namespaced',
);
export const roleBindings: ResourceType<Stored<models.V1RoleBinding>> = resource(
  'rbac.authorization.k8s.io/v1',
  'RoleBinding',
  'rolebindings',
  'Namespaced',
);
export const clusterRoles: ResourceType<Stored<models.V1ClusterRole>> = resource(
  'rbac.authorization.k8s.io/v1',
  'ClusterRole',
  'clusterroles',
  'Cluster',
);
export const clusterRoleBindings: ResourceType<Stored<models.V1ClusterRoleBinding>> = resource(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  'Cluster',
);
export const admissionPolicies: ResourceType<Stored<models.V1ValidatingAdmissionPolicy>> = resource(
  'admissionregistration.k8s.io/v1',
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
  'Cluster',
);
export const admissionPolicyBindings: ResourceType<Stored<models.V1ValidatingAdmissionPolicyBinding>> =
  resource(
    'admissionregistration.k8s.io/v1',
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
    'Cluster',
  );
export const flowSchemas: ResourceType<Stored<models.V1FlowSchema>> = resource(
  'flowcontrol.apiserver.k8s.io/v1',
  'FlowSchema',
  'flowschemas',
  'Cluster',
);
export const priorityLevelConfigurations: ResourceType<Stored<models.V1PriorityLevelConfiguration>> =
  resource(
    'flowcontrol.apiserver.k8s.io/v1',
    'PriorityLevelConfiguration',
    'prioritylevelconfigurations',
    'Cluster',
  );
export const storageClasses: ResourceType<Stored<models.V1StorageClass>> = resource(
  'storage.k8s.io/v1',
  'StorageClass',
  'storageclasses',
  'Cluster',
);
export const persistentVolumeClaims: ResourceType<Stored<models.V1PersistentVolumeClaim>> = resource(
  '/v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  'Namespaced',
);
export const persistentVolumes: ResourceType<Stored<models.V1PersistentVolume>> = resource(
  '/v1',
  'PersistentVolume',
  'persistentvolumes',
  'Cluster',
);
export const networkPolicies: ResourceType<Stored<models.V1NetworkPolicy>> = resource(
  'networking.k8s.io/v1',
  'NetworkPolicy',
  'networkpolicies',
  'Namespaced',
);
export const runtimeClasses: ResourceType<Stored<models.V1RuntimeClass>> = resource(
  'node.k8s.io/v1',
  'RuntimeClass',
  'runtimeclasses',
  'Cluster',
);
export const ingressClasses: ResourceType<Stored<models.V1IngressClass>> = resource(
  'networking.k8s.io/v1',
  'IngressClass',
  'ingressclasses',
  'Cluster',
);
export const endpointSlices: ResourceType<EndpointSlice> = resource(
  'discovery.k8s.io/v1',
  'EndpointSlice',
  'endpointslices',
  'Namespaced',
);
export const ingresses: ResourceType<Ingress> = resource(
  'networking.k8s.io/v1',
  'Ingress',
  'ingresses',
  'Namespaced',
);
export const serviceCidrs: ResourceType<ServiceCidr> = resource(
  'networking.k8s.io/v1',
  'ServiceCIDR',
  'servicecidrs',
  'Cluster',
);
