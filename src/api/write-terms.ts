/** How much a peer may write into this cluster; `writes` of a SharingPolicy. */
export interface WriteTerms {
  /** The largest object, KiB. A pod may have half of it. */
  objectKiB?: number;
  /** How many objects there may be in all its namespaces, besides pods that run. */
  objects?: number;
  /** KiB a minute over all its namespaces, as etcd stores them. Four times as much at once, after a rest. */
  kibPerMinute?: number;
}

/**
 * What holds where nobody says otherwise. An etcd of default size (2 GiB) keeps what was written in the last five to ten minutes,
 * and all that is there. A quarter of it is 512 MiB: 4,000 objects of 128 KiB, or all peers' writes in ten minutes (420 MiB). What we make of
 * a peer's objects comes on top: 64 MiB of EndpointSlices and 64 MiB of NetworkPolicies at most, and its journal while its home is away.
 */
export const DEFAULT_WRITES: Readonly<Required<WriteTerms>> = {
  objectKiB: 128,
  objects: 4000,
  kibPerMinute: 15_360,
};

export const WRITE_BOUNDS: Readonly<Record<keyof WriteTerms, { minimum: number; maximum: number }>> = {
  // The API server takes a mebibyte and a half in one object.
  objectKiB: { minimum: 8, maximum: 1024 },
  objects: { minimum: 10, maximum: 1_000_000 },
  kibPerMinute: { minimum: 64, maximum: 10_485_760 },
};
