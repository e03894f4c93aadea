/**
 * Bounds and forms of what peers, networks and people may write into our objects. The CRDs enforce them; whoever
 * takes something from a peer checks it against the same ones first, so that nothing is accepted that could not be
 * stored.
 */

/** Lower-case base32 of a hash, see peering/identity. */
export const CLUSTER_ID_PATTERN = '^[a-z2-7]{26}$';

/** How far apart the clocks of two clusters may be, milliseconds. */
export const CLOCK_SKEW_MS = 300_000;

/** A name for people, which terminals show: no control characters, nothing that reorders text. */
export const CLUSTER_NAME_PATTERN = '^[A-Za-z0-9]([-A-Za-z0-9_. ]{0,61}[A-Za-z0-9])?$';

/** What a cluster may call itself: a DNS label, since its virtual node has that name where it is used. */
export const OWN_CLUSTER_NAME_PATTERN = '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$';

const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
/** `host:port`, `1.2.3.4:port`, `[v6]:port`, `[fe80::1%eth0]:port`. */
export const ENDPOINT_PATTERN: string = `^(\\[[0-9a-fA-F:.]{2,45}(%[-_.A-Za-z0-9]{1,15})?\\]|[A-Za-z0-9]([-_.A-Za-z0-9]{0,251}[A-Za-z0-9])?):${PORT}$`;
export const MAX_ENDPOINT_LENGTH = 259;
/** Of one sighting, or of one hello. */
export const MAX_ENDPOINTS = 16;
export const MAX_PROTOCOLS = 16;

/** Without a sign: nobody lends a negative amount. */
export const QUANTITY_PATTERN =
  '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?[0-9]{1,2}))?$';
export const MAX_QUANTITY_LENGTH = 32;
/** Entries of one resource list. */
export const MAX_RESOURCES = 64;

/** Sizes of single nodes that a VirtualNode tells. */
export const MAX_NODE_SIZES = 16;

/** Decimal, not negative. */
export const PRICE_AMOUNT_PATTERN = '^[0-9]{1,12}(\\.[0-9]{1,9})?$';
export const CURRENCY_PATTERN = '^[A-Za-z]{3,8}$';

export const LABEL_VALUE_PATTERN = '^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$';
export const LABEL_KEY_PATTERN =
  '^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$';
/** Of one map; each key at most 317 characters (KEP: prefix/name). */
export const MAX_LABELS = 64;

/** Home namespaces of one peering. */
export const MAX_NAMESPACES = 256;
/** Of them, as many as a provider lends to one peer; more would be refused as a whole. */
export const MAX_LENT_NAMESPACES = 64;

/** ClusterIDs in one list. */
export const MAX_CLUSTER_IDS = 1024;

/** What an offer may hold at most. */
export const OFFER_LIMITS = {
  shapes: 256,
  shapeLabels: 16,
  storageClasses: 64,
  ingressClasses: 64,
  loadBalancerClasses: 64,
  priorityClasses: 32,
  images: 512,
  imageLength: 512,
  declaredFeatures: 64,
  /** Nodes of one shape. */
  count: 100_000,
  /** One year. */
  keepForSeconds: 31_536_000,
} as const;

/** Canonical JSON of a contract. */
export const MAX_CONTRACT_LENGTH = 262_144;
/** Base64 of the 64 bytes of an Ed25519 signature. */
export const SIGNATURE_PATTERN = '^[A-Za-z0-9+/]{86}==$';
/** Reason of a phase: one word. */
export const REASON_PATTERN = '^[A-Za-z][A-Za-z0-9]{0,63}$';
export const MAX_MESSAGE_LENGTH = 4096;

/** A CIDR, by its characters. */
export const CIDR_PATTERN = '^[0-9A-Fa-f.:]+/[0-9]{1,3}$';
export const MAX_CIDR_LENGTH = 49;
/** Base64 of the 32 bytes of a Curve25519 key. */
export const NETWORK_KEY_PATTERN = '^[A-Za-z0-9+/]{43}=$';
/** Ranges in which one peer keeps its own addresses. */
export const MAX_OWN_ADDRESSES = 64;
/** What a tunnel may hold at most. */
export const TUNNEL_LIMITS = {
  /** Prefixes of one peer that are seen. */
  views: 1024,
  pods: 256,
  external: 8,
  transit: 1024,
  /** Of ClusterIPs; a cluster has one for each family, unless people add ServiceCIDRs. */
  services: 8,
  /** As many as a peer may tell. */
  seenAs: 2048,
  /** A peer names more prefixes than are seen; each that is not is told why. */
  refused: 2048,
  /** Addresses and ports that are offered, or used. */
  offered: 4096,
} as const;

/** What a peer may tell of Services that it offers. */
export const SERVICES_LIMITS = {
  services: 128,
  ports: 32,
  /** Of one Service. */
  endpoints: 1000,
} as const;
/** NetworkPolicies that a VirtualNode names as stricter over there. */
export const MAX_STRICTER_POLICIES = 64;
/** What is said of one of them: how many causes, how long each, and all of them. 64 policies are 256 KiB of an object at most. */
export const STRICTER_CAUSES = { most: 32, length: 512, size: 4096 } as const;
/** Services that one policy accepts, entries by which one offers them, and kinds that it lets in. */
export const MAX_POLICY_ENTRIES = 64;
