import type * as models from '@kubernetes/client-node';

/**
 * What is really on the wire. The model types are borrowed from `@kubernetes/client-node`, types only:
 * loading its code costs about 85 MB of memory, and its serialiser drops every field it does not know.
 * Here an object is plain JSON in one shape, whether listed, watched or read: timestamps are RFC 3339 strings
 * and fields we have no type for travel along untouched.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T;

export type OwnerReference = Wire<models.V1OwnerReference>;

/** Metadata of an object that an API server has returned. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid: string;
  /** Opaque; compare for equality only (KEP-5504 permits ordering, older servers do not promise it). */
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

/** Metadata of an object still to be created. */
export type DraftMeta = Partial<ObjectMeta> & { generateName?: string };

/** Anything an API server stores. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** An object as the API server returned it. */
export type Stored<T> = Omit<Wire<T>, 'metadata'> & KubeObject;
/** An object as we send it for creation. */
export type Draft<T extends KubeObject> = Omit<T, 'metadata' | 'status'> & { metadata: DraftMeta };

export type Pod = Stored<models.V1Pod>;
export type PodSpec = Wire<models.V1PodSpec>;
export type PodStatus = Wire<models.V1PodStatus>;
export type PodCondition = Wire<models.V1PodCondition>;
export type Container = Wire<models.V1Container>;
export type ContainerStatus = Wire<models.V1ContainerStatus>;
export type EphemeralContainer = Wire<models.V1EphemeralContainer>;
export type Volume = Wire<models.V1Volume>;
export type VolumeProjection = Wire<models.V1VolumeProjection>;
export type Toleration = Wire<models.V1Toleration>;
export type PodAffinityTerm = Wire<models.V1PodAffinityTerm>;
export type WeightedPodAffinityTerm = Wire<models.V1WeightedPodAffinityTerm>;
export type TopologySpreadConstraint = Wire<models.V1TopologySpreadConstraint>;
export type Taint = Wire<models.V1Taint>;
export type EnvVar = Wire<models.V1EnvVar>;
export type Node = Stored<models.V1Node>;
export type NodeStatus = Wire<models.V1NodeStatus>;
export type NodeCondition = Wire<models.V1NodeCondition>;
export type ConfigMap = Stored<models.V1ConfigMap>;
export type Secret = Stored<models.V1Secret>;
export type ServiceCidr = Stored<models.V1ServiceCIDR>;
export type Namespace = Stored<models.V1Namespace>;
export type KubeEvent = Stored<models.CoreV1Event>;
export type Service = Stored<models.V1Service>;
export type EndpointSlice = Stored<models.V1EndpointSlice>;
export type Endpoint = Wire<models.V1Endpoint>;
export type Ingress = Stored<models.V1Ingress>;
export type Lease = Stored<models.V1Lease>;
export type CertificateSigningRequest = Stored<models.V1CertificateSigningRequest>;
export type TokenReview = Stored<models.V1TokenReview>;
export type SubjectAccessReview = Stored<models.V1SubjectAccessReview>;
export type TokenRequest = Stored<models.AuthenticationV1TokenRequest>;
/** Kubernetes condition as in `metav1.Condition`. */
export type Condition = Wire<models.V1Condition>;
/** Resource amounts by name, as Kubernetes quantities. */
export type ResourceList = Record<string, string>;
