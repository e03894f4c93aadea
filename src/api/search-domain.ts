import type { PeeringWish } from './foreign-cluster.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject } from './wire.ts';

export interface SearchDomainSpec {
  /** Browsed for `_tributary._tcp.<domain>` (RFC 6763, section 4). */
  domain: string;
  /** `address` or `address:port` of DNS servers; default: those of the host. */
  servers?: string[];
  /** Longest time between two looks; shorter where a TTL says so. Default 300. */
  intervalSeconds?: number;
  /** Written into `spec.outgoing` of the ForeignClusters found. Default Auto. */
  outgoing?: PeeringWish;
}

export interface SearchDomainStatus {
  observedGeneration?: number;
  /** ClusterIDs listed at the last look. */
  clusters?: string[];
  lastLook?: string;
  conditions?: Condition[];
}

export interface SearchDomain extends KubeObject {
  spec: SearchDomainSpec;
  status?: SearchDomainStatus;
}

export const searchDomains: ResourceType<SearchDomain> = clusterScoped(
  'tributary.dev/v1alpha1',
  'SearchDomain',
);

export const SEARCH_DOMAIN_CONDITIONS = { browsed: 'Browsed' } as const;
export const SEARCH_DOMAIN_REASONS = {
  ok: 'AsExpected',
  noServer: 'NoServerAnswered',
  invalid: 'InvalidSpec',
  malformed: 'MalformedAnswer',
  tooMany: 'TooManyClusters',
} as const;
