/** All that the doctor goes by, as it was at one moment. That something could not be read is a fact, too. */
import type { AcceptancePolicy } from '../api/acceptance-policy.ts';
import type { MutatingWebhookConfiguration } from '../api/admission.ts';
import type { ForeignCluster } from '../api/foreign-cluster.ts';
import type { NamespaceOffloading } from '../api/namespace-offloading.ts';
import type { PolicyRule, Role } from '../api/rbac.ts';
import type { daemonSets, deployments, resourceQuotas } from '../api/resources.ts';
import type { SharingPolicy } from '../api/sharing-policy.ts';
import type { Tunnel } from '../api/tunnel.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { ConfigMap, EndpointSlice, KubeObject, Lease, Namespace, Node, Pod } from '../api/wire.ts';

/** A list, or why there is none. */
export type Seen<T> = { items: readonly T[] } | { problem: ReadProblem };

export interface ReadProblem {
  /** In the words of the API server. */
  message: string;
  /** As `kubectl auth can-i` wants it: `list tunnels.tributary.dev`. */
  wanted: string;
  isForbidden: boolean;
  /** The API server does not know the kind. */
  isKindUnknown: boolean;
}

export type Deployment = NonNullable<(typeof deployments)['__object']>;
export type DaemonSet = NonNullable<(typeof daemonSets)['__object']>;
export type Quota = NonNullable<(typeof resourceQuotas)['__object']>;

/** A Secret without anything that is secret. */
export interface SecretFacts extends KubeObject {
  /** PEM of the certificate in it; public. */
  certificate?: string;
}

/** What each kind of object was read as. */
export interface Lists {
  foreignClusters: Seen<ForeignCluster>;
  tunnels: Seen<Tunnel>;
  virtualNodes: Seen<VirtualNode>;
  offloadings: Seen<NamespaceOffloading>;
  sharingPolicies: Seen<SharingPolicy>;
  acceptancePolicies: Seen<AcceptancePolicy>;
  nodes: Seen<Node>;
  namespaces: Seen<Namespace>;
  pods: Seen<Pod>;
  quotas: Seen<Quota>;
  leases: Seen<TimedLease>;
  /** Of the system namespace. */
  configMaps: Seen<ConfigMap>;
  /** Of kube-system and of our own namespaces. */
  deployments: Seen<Deployment>;
  daemonSets: Seen<DaemonSet>;
  /** Of kube-system. */
  dnsSlices: Seen<EndpointSlice>;
  webhooks: Seen<MutatingWebhookConfiguration>;
  clusterRoles: Seen<Role>;
  roles: Seen<Role>;
  /** Those that hold certificates and credentials of ours. */
  secrets: Seen<SecretFacts>;
}

/** All of them. */
export const LIST_NAMES: readonly (keyof Lists)[] = [
  'foreignClusters',
  'tunnels',
  'virtualNodes',
  'offloadings',
  'sharingPolicies',
  'acceptancePolicies',
  'nodes',
  'namespaces',
  'pods',
  'quotas',
  'leases',
  'configMaps',
  'deployments',
  'daemonSets',
  'dnsSlices',
  'webhooks',
  'clusterRoles',
  'roles',
  'secrets',
];

/** A Lease, and when the API server, by its own clock, took its last change. */
export interface TimedLease extends Lease {
  writtenAt?: string;
}

/** What answered at the endpoint of a ForeignCluster, dialled from where the doctor runs. */
export type Dialled = { endpoint: string } & ({ clusterID: string } | { error: string });

/** The rules that a role of ours must have. */
export interface ExpectedRights {
  kind: 'ClusterRole' | 'Role';
  namespace?: string;
  name: string;
  rules: readonly PolicyRule[];
}

export interface ApiServerFacts {
  url: string;
  /** `v1.36.3`. */
  version?: string;
  /** Of the header Date, and what the clock here said in the middle of the call. */
  dateMs?: number;
  hereMs?: number;
  error?: string;
}

/** A pod that was sent for a trial, and not made. */
export interface WebhookTrial {
  namespace: string;
  /** Absent: it was let in. */
  error?: string;
}

/** What an installer has recorded. */
export interface InstallationFacts {
  /** Deployments and DaemonSets that it has made. */
  roles: readonly { readonly kind: string; readonly namespace: string; readonly name: string }[];
  /** Of a change that has not ended: what to tell people. */
  unfinished?: string;
}

export interface Facts {
  now: number;
  /** Version of this program. */
  software: string;
  apiServer: ApiServerFacts;
  lists: Lists;
  /** By name of the ForeignCluster. */
  dialled: ReadonlyMap<string, Dialled>;
  webhookTrial?: WebhookTrial;
  /** Absent: no installer has made a record, or it cannot be read. */
  installation?: InstallationFacts;
  expectedRights: readonly ExpectedRights[];
}

export const itemsOf = <T>(seen: Seen<T>): readonly T[] => ('items' in seen ? seen.items : []);
