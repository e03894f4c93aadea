/** Which sizes of packets are worth trying. Sizes are those of inner IP packets, in bytes. */
import { isIPv6 } from 'node:net';

/** Every path carries packets of this size (RFC 791 asks hosts for 576), so smaller ones are not tried. */
export const SMALLEST_MTU = 576;
/** WireGuard fills packets up to a multiple of this, or to the MTU of its link. */
const PADDING = 16;
/** How many sizes are tried at once. */
const AT_ONCE = 8;

/** What WireGuard adds: 32 bytes of its own, UDP, IP. */
const overhead = (endpoint: string): number => 32 + 8 + (isIPv6(endpoint) ? 40 : 20);

/** The largest inner packet that fits whole into outer packets of that size, to that outer address. */
export function innerMtu(outer: number, endpoint: string): number {
  const room = outer - overhead(endpoint);
  return Math.max(SMALLEST_MTU, room - (room % PADDING));
}

/** Bytes of UDP payload that make an inner packet of that size, to that inner address. */
export const payloadOf = (size: number, address: string): number => size - 8 - (isIPv6(address) ? 40 : 20);

/** What is known while sizes are tried. */
export interface SearchState {
  /** The largest size that is known to go through. */
  fits: number;
  /** The smallest size that is known not to. */
  over: number;
}

/** The sizes in between to try next. Empty: the search has ended. WireGuard fills packets of other sizes up to these. */
export function nextSizes({ fits, over }: SearchState): number[] {
  const first = fits - (fits % PADDING) + PADDING;
  const sizes = Array.from(
    { length: Math.max(0, Math.ceil((over - first) / PADDING)) },
    (_, i) => first + i * PADDING,
  );
  if (sizes.length <= AT_ONCE) return sizes;
  // They are spread evenly, and the largest is among them.
  return sizes.filter(
    (_, i) => Math.floor(((i + 1) * AT_ONCE) / sizes.length) > Math.floor((i * AT_ONCE) / sizes.length),
  );
}

/** After these sizes were tried and those were answered. A larger one that was answered speaks for all smaller ones. */
export function narrowed(
  state: SearchState,
  tried: readonly number[],
  answered: readonly number[],
): SearchState {
  const fits = Math.max(state.fits, ...answered);
  return { fits, over: Math.min(state.over, ...tried.filter((size) => size > fits)) };
}
