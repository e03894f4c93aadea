/** What a node goes by. Pure. */
import type { Lease } from '../../api/wire.ts';

/**
 * The node of the active gateway. An empty holder is a Lease that was given up: the gateway before goes on forwarding
 * until another has taken it.
 */
export function gatewayNodeOf(lease: Lease | undefined, before: string | undefined): string | undefined {
  const holder = lease?.spec?.holderIdentity;
  return holder === undefined || holder === '' ? before : holder;
}

export interface FenceFacts {
  /** Monotonic. */
  now: number;
  nodeName: string;
  holder: string | undefined;
  /** Since when that one is known to hold the Lease. */
  since: number;
  /** Holder for which this host was cleaned last. */
  cleanedFor: string | undefined;
}

/** So long a gateway process that lives has to clean up itself. Short: until then two hosts bear one key. */
export const FENCE_MS = 300;

/** In how many milliseconds the gateway's things on this host are to be removed; undefined: not at all. */
export function fenceIn({ now, nodeName, holder, since, cleanedFor }: FenceFacts): number | undefined {
  if (holder === undefined || holder === nodeName || holder === cleanedFor) return undefined;
  return Math.max(0, since + FENCE_MS - now);
}
