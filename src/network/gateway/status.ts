import { timestamp, type WantedCondition, withCondition } from '../../api/conditions.ts';
import type { Tunnel, TunnelConnection, WireGuardKind } from '../../api/tunnel.ts';
import type { Condition } from '../../api/wire.ts';
import type { WireGuardPeerState } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/peer-probe.ts';

/** Numbers alone are written no more often. */
export const NUMBERS_MS = 10_000;
/** Every node hears of each write, and a peer that roams may have another endpoint with every packet. */
export const ENDPOINT_MS = 5000;
/** Numbers are written only when one of them has changed by this share of itself. */
const NOTICEABLE = 0.2;
/** A round trip of less varies by more than that from probe to probe. */
const NOTICEABLE_RTT_MS = 2;
/** What a tunnel at rest carries in two minutes; after these its handshake is written anyway. */
const NOTICEABLE_BYTES = 16_384;
/** In points of percent. */
const NOTICEABLE_LOSS = 3;

export interface ConnectionFacts {
  gateway: string;
  /** As which the link is set. */
  linkMtu?: number;
  /** Whose WireGuard it is. */
  by?: WireGuardKind;
  endpoint?: string;
  wireguard?: WireGuardPeerState;
  probe?: ProbeResult;
}

export function connectionOf({
  gateway,
  linkMtu,
  by,
  endpoint,
  wireguard,
  probe,
}: ConnectionFacts): TunnelConnection {
  const at = wireguard?.endpoint ?? endpoint;
  return {
    gateway,
    ...(linkMtu !== undefined && { linkMtu }),
    ...(by !== undefined && { wireguard: by }),
    ...(at !== undefined && { endpoint: at }),
    ...(wireguard?.handshakeMs !== undefined && { handshake: timestamp(wireguard.handshakeMs) }),
    ...(probe?.rttMs !== undefined && { rttMs: Math.round(probe.rttMs * 10) / 10 }),
    ...(probe !== undefined && { lossPercent: Math.round(probe.lossPercent) }),
    ...(wireguard !== undefined && {
      receivedBytes: wireguard.receivedBytes,
      sentBytes: wireguard.sentBytes,
    }),
    ...(probe?.mtu !== undefined && { mtu: probe.mtu }),
  };
}

export interface StatusFacts {
  tunnel: Tunnel;
  connection: TunnelConnection;
  conditions: readonly WantedCondition[];
  /** Milliseconds since 1970. */
  now: number;
  /** Since this process last wrote it. */
  sinceWriteMs: number;
}

export interface StatusPatch {
  connection?: Record<string, unknown>;
  conditions?: Condition[];
}

/** A merge patch of our own keys. Undefined: nothing has changed that is worth a write. */
export function statusPatch(facts: StatusFacts): StatusPatch | undefined {
  const { tunnel, now, sinceWriteMs } = facts;
  const before = tunnel.status?.conditions ?? [];
  let conditions: readonly Condition[] = before;
  for (const wanted of facts.conditions) conditions = withCondition(conditions, wanted, now);
  const known = tunnel.status?.connection ?? {};
  // The MTU that the gateway before us has measured holds until we have measured it ourselves.
  const connection = { ...(known.mtu !== undefined && { mtu: known.mtu }), ...facts.connection };
  const urgent = conditions !== before || isDue(known, connection, sinceWriteMs);
  if (!urgent && (sinceWriteMs < NUMBERS_MS || !hasChanged(known, connection))) return undefined;
  const changed = differences(known, connection);
  return {
    ...(Object.keys(changed).length > 0 && { connection: changed }),
    ...(conditions !== before && { conditions: [...conditions] }),
  };
}

function isDue(known: TunnelConnection, now: TunnelConnection, sinceWriteMs: number): boolean {
  const settings = ['gateway', 'mtu', 'linkMtu', 'wireguard'] as const;
  if (settings.some((key) => known[key] !== now[key])) return true;
  return known.endpoint !== now.endpoint && sinceWriteMs >= ENDPOINT_MS;
}

function hasChanged(known: TunnelConnection, now: TunnelConnection): boolean {
  if (known.handshake !== now.handshake) return true;
  if (Math.abs((known.lossPercent ?? 0) - (now.lossPercent ?? 0)) >= NOTICEABLE_LOSS) return true;
  if (differsMuch(known.rttMs, now.rttMs, NOTICEABLE_RTT_MS)) return true;
  return (['receivedBytes', 'sentBytes'] as const).some((key) =>
    differsMuch(known[key], now[key], NOTICEABLE_BYTES),
  );
}

function differsMuch(known: number | undefined, now: number | undefined, least: number): boolean {
  if (known === undefined || now === undefined) return known !== now;
  return Math.abs(now - known) > Math.max(least, NOTICEABLE * Math.max(Math.abs(known), Math.abs(now)));
}

/** A key that is gone becomes null (RFC 7396). */
function differences(known: object, now: object): Record<string, unknown> {
  const before = Object.entries(known) as [string, unknown][];
  const gone = before.filter(([key]) => !Object.hasOwn(now, key)).map(([key]) => [key, null] as const);
  const old = new Map(before);
  const changed = Object.entries(now).filter(([key, value]) => old.get(key) !== value);
  return Object.fromEntries([...changed, ...gone]) as Record<string, unknown>;
}
