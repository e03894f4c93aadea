/** What admission over guests, the pods of peers, has to know of the rest. */
import type { StockPod } from '../../api/pod-requests.ts';
import type { ResourceList } from '../../api/wire.ts';

/** A tenant namespace. */
export interface GuestTenant {
  /** Whose pods live there: a ClusterID, or what people call the peer. */
  peer: string;
  /** Made by lending, and not by people: only then anybody knows what is granted over all namespaces. */
  isByContract: boolean;
  annotations: Readonly<Record<string, string>>;
}

export interface GuestTenants {
  /** Undefined: not seen (yet), or nobody's. */
  tenantOf(namespace: string): GuestTenant | undefined;
  /** Those by contract. */
  namespacesOf(peer: string): readonly string[];
  /** What a peer may use over all its namespaces; undefined without a contract. */
  grantOf(peer: string): ResourceList | undefined;
}

type PodChange = (key: string, current: StockPod | undefined, previous: StockPod | undefined) => void;

/** Pods of the cluster that have not finished, by `namespace/name`; filled before the first question. */
export interface LivePods {
  get(key: string): StockPod | undefined;
  list(): Iterable<StockPod>;
  onChange(listener: PodChange): () => void;
  /** `failingSince`: monotonic ms since when we do not hear of changes. */
  readonly contact: { readonly failingSince: number | undefined };
}
