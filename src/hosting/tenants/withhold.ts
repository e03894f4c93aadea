/**
 * What this cluster does to the endpoints of a peer while packets do not get through to it: it marks them, so that
 * nothing is sent into a hole even when the peer's own agent cannot say so. Pure.
 */
import { ANNOTATION_WITHHELD } from '../../api/names.ts';
import { TUNNEL_CONDITIONS, type Tunnel } from '../../api/tunnel.ts';
import type { Endpoint, EndpointSlice } from '../../api/wire.ts';

/** A tunnel may be down for so long before its endpoints are withheld: the peer's agent usually says so first. */
export const HOLD_MS = 5_000;

/** Where the tunnel carries packets; else how long to wait before its endpoints are withheld, milliseconds. */
export function withholdIn(tunnel: Tunnel | undefined, nowMs: number): number | 'Ready' {
  const ready = tunnel?.status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready);
  if (ready?.status === 'True') return 'Ready';
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  // Clocks of two processes may be apart: never longer than that.
  return Number.isNaN(since) ? 0 : Math.min(HOLD_MS, Math.max(0, since + HOLD_MS - nowMs));
}

/** The prefixes in which a peer's endpoints may be: as what we see it. The annotation's value; empty for none. */
export const peerPrefixes = (tunnel: Tunnel | undefined): string =>
  [...new Set((tunnel?.status?.views ?? []).map(({ as }) => as))].toSorted().join(',');

/** The slice with nothing ready, and marked; undefined where it is so. */
export function withheld(slice: EndpointSlice): EndpointSlice | undefined {
  const { metadata, endpoints } = slice;
  const isMarked = metadata.annotations?.[ANNOTATION_WITHHELD] !== undefined;
  if (isMarked && (endpoints ?? []).every(isOut)) return undefined;
  return {
    ...slice,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATION_WITHHELD]: 'TunnelDown' } },
    endpoints: (endpoints ?? []).map((endpoint) => ({
      ...endpoint,
      conditions: { ...endpoint.conditions, ready: false, serving: false },
    })),
  };
}

/** The mark taken away; whose slice it is then says what is ready. Undefined where there is none. */
export function released(slice: EndpointSlice): EndpointSlice | undefined {
  const { [ANNOTATION_WITHHELD]: mark, ...annotations } = slice.metadata.annotations ?? {};
  return mark === undefined ? undefined : { ...slice, metadata: { ...slice.metadata, annotations } };
}

const isOut = ({ conditions }: Endpoint): boolean =>
  conditions?.ready === false && conditions.serving === false;
