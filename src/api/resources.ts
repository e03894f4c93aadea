import type {
  CertificateSigningRequest,
  ConfigMap,
  KubeEvent,
  KubeObject,
  Lease,
  Namespace,
  Node,
  Pod,
  Secret,
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
