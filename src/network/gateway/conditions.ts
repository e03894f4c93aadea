import type { WantedCondition } from '../../api/conditions.ts';
import { type Tunnel, TUNNEL_CONDITIONS, TUNNEL_REASONS, type TunnelReason } from '../../api/tunnel.ts';
import { notPermitted, ownAddressesOf } from '../ipam/own-addresses.ts';
import type { HostReport } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/peer-probe.ts';

export interface TunnelObservation {
  /** Milliseconds since 1970. */
  now: number;
  /** Prefixes that the peer should see. */
  exported: readonly string[];
  /** The report of the host, as far as it concerns this tunnel. Absent: nothing is known yet. */
  host?: HostReport;
  /** Absent: there was no handshake, or WireGuard does not know the peer. */
  handshakeMs?: number;
  /** When bytes from the peer were last seen, in milliseconds since 1970. Absent: not since this process began. */
  receivedMs?: number;
  /** Where the peer is dialled. */
  endpoint?: string;
  /** Whether peers can dial us. */
  dialable: boolean;
  /** Absent: not measured yet, as after a start. */
  probe?: ProbeResult;
  /** Why the gateway leaves this peer out; see peers.ts. */
  refused?: string;
}

export type TunnelConditionType = (typeof TUNNEL_CONDITIONS)[keyof typeof TUNNEL_CONDITIONS];
type Finding = Pick<WantedCondition<TunnelConditionType, TunnelReason>, 'status' | 'reason' | 'message'>;

const { ok, starting, peerSilent, keyTaken, peerViews, prefixRefused, poolExhausted } = TUNNEL_REASONS;
const { noWireGuard, hostRefused, noEndpoint, noHandshake, noAnswer, lossy } = TUNNEL_REASONS;
const { notChosen, seenElsewhere, oneWay, ownNotAllowed } = TUNNEL_REASONS;

/** WireGuard forgets a session after 180 s (REJECT_AFTER_TIME). */
const SESSION_MS = 180_000;
/** Whoever receives our probes sends a keepalive every 10 s at least (WireGuard's KEEPALIVE_TIMEOUT), answered or not. */
const QUIET_MS = 25_000;
/** WireGuard is asked when a probe was missed at the latest, so bytes are seen later than the answer that they belong to. */
const SEEN_LATE_MS = 5500;
/** In percent. CALM is lower, so that a loss near LOSSY does not make the condition change again and again. */
const LOSSY = 10;
const CALM = 5;

/**
 * The conditions of a tunnel, in the order of the status. What this process does not know yet stays as it was said before: the host
 * goes on without this process.
 */
export function tunnelConditions(
  tunnel: Tunnel,
  seen: TunnelObservation,
): WantedCondition<TunnelConditionType, TunnelReason>[] {
  const addresses = addressesOf(tunnel, seen);
  const configured = configuredOf(seen) ?? formerOf(tunnel, TUNNEL_CONDITIONS.configured);
  const connected = connectedOf(tunnel, seen) ?? formerOf(tunnel, TUNNEL_CONDITIONS.connected);
  const types = TUNNEL_CONDITIONS;
  const observedGeneration = tunnel.metadata.generation;
  return (
    [
      [types.ready, readyOf([addresses, configured, connected])],
      [types.addresses, addresses],
      [types.configured, configured],
      [types.connected, connected],
      [types.services, servicesOf(tunnel)],
      [types.ownAddresses, ownAddressesFound(tunnel)],
    ] as const
  ).map(([type, finding]) => ({
    type,
    ...finding,
    ...(observedGeneration !== undefined && { observedGeneration }),
  }));
}

/** The first part that is not in order gives the cause. */
function readyOf(parts: readonly Finding[]): Finding {
  const cause =
    parts.find(({ status }) => status === 'False') ?? parts.find(({ status }) => status !== 'True');
  if (cause !== undefined) return cause;
  const remark = parts.find(({ reason }) => reason !== ok);
  return remark ?? { status: 'True', reason: ok, message: 'packets go through in both directions' };
}

function addressesOf({ spec, status }: Tunnel, { exported }: TunnelObservation): Finding {
  const { peer, seenAs = [] } = spec;
  if (peer === undefined) return saidNothing(spec);
  // A transit prefix without a view costs the way to a third cluster, not this tunnel.
  const needed = [...peer.pods, ...peer.external];
  const refused = status?.refused?.find(({ prefix }) => needed.includes(prefix));
  if (refused !== undefined) {
    const reason = refused.reason === poolExhausted ? poolExhausted : prefixRefused;
    return no(reason, `${refused.prefix} of the peer: ${refused.message}`);
  }
  const views = status?.views ?? [];
  const unseen = needed.find((prefix) => !views.some((view) => view.prefix === prefix));
  if (unseen !== undefined) return unknown(`${unseen} of the peer has no view yet`);
  const untold = exported.find((prefix) => !seenAs.some((view) => view.prefix === prefix));
  if (untold !== undefined) return no(peerViews, `the peer has not told as what it sees our ${untold}`);
  const transit = status?.refused?.[0];
  const remark =
    transit === undefined ? '' : `; ${transit.prefix}, through the peer, has none: ${transit.message}`;
  return yes(`all prefixes are seen${remark}`);
}

const saidNothing = ({ keyOf }: Tunnel['spec']): Finding =>
  keyOf === undefined
    ? no(peerSilent, 'the peer has not told its network yet')
    : no(keyTaken, `the peer announces a WireGuard key that belongs to the cluster ${keyOf}`);

/** ClusterIPs are handed on as they are, so only the range itself counts. */
function servicesOf({ spec: { peer, seenAs = [], services = [] } }: Tunnel): Finding {
  if (services.length === 0) {
    const todo =
      'services: OffloadedPods under spec.network of the ForeignCluster opens them, where their range is known ' +
      '(--service-cidr)';
    return no(
      notChosen,
      `our pods over there reach Services by name, and no ClusterIP of this cluster: ${todo}`,
    );
  }
  if (peer === undefined) return no(peerSilent, 'the peer has not told its network yet');
  const views = new Map(seenAs.map(({ prefix, as }) => [prefix, as]));
  for (const range of services) {
    const as = views.get(range);
    if (as === range) continue;
    if (as === undefined) {
      return no(
        peerViews,
        `the peer has not told as what it sees our ClusterIPs ${range}: its Tunnel says why`,
      );
    }
    return no(seenElsewhere, `the peer sees our ClusterIPs ${range} as ${as}: ${ELSEWHERE}`);
  }
  return yes(`our pods over there reach the ClusterIPs ${services.join(', ')}, where endpoints are pods`);
}

const ELSEWHERE =
  'it uses that range, or has not allowed it (ownAddresses under spec.network of its ForeignCluster for this cluster). ' +
  'Let it be allowed there, give one of the clusters another range of Services, or use their names';

/** A view from before this had to be allowed stays, since connections would end. */
function ownAddressesFound({ spec, status }: Tunnel): Finding {
  const open = notPermitted(status?.views ?? [], ownAddressesOf(spec.ownAddresses));
  if (open.length === 0) return yes('the peer is seen as itself in no range that is not allowed');
  const some = open.slice(0, MOST_NAMED).map(({ prefix }) => prefix);
  const more = open.length > some.length ? ` and ${open.length - some.length} more` : '';
  return no(
    ownNotAllowed,
    `the peer keeps ${some.join(', ')}${more} from before this had to be allowed, and packets of this cluster to them ` +
      'go to it. Name these ranges as ownAddresses under spec.network of its ForeignCluster to allow that; or set ' +
      'ownAddresses: [], and the peer gets other addresses: connections to it end once',
  );
}

const MOST_NAMED = 8;

function configuredOf({ host, refused }: TunnelObservation): Finding | undefined {
  if (refused !== undefined) return no(hostRefused, refused);
  if (host === undefined) return undefined;
  const problem = host.problems.find(({ reason }) => reason === 'NoWireGuard') ?? host.problems[0];
  if (problem === undefined) return yes('links, routes and rules are as wanted');
  return no(problem.reason === 'NoWireGuard' ? noWireGuard : hostRefused, problem.message);
}

function connectedOf({ spec, status }: Tunnel, seen: TunnelObservation): Finding | undefined {
  const { probe } = seen;
  if (probe?.alive === true) {
    const before = status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.connected);
    return aliveOf(probe.lossPercent, before?.reason === lossy ? CALM : LOSSY);
  }
  if (spec.peer === undefined) return unknown('the peer has not told its network yet');
  // The first probes of this process are still under way.
  return probe === undefined ? undefined : unansweredOf(seen);
}

/** Probes do not come back. */
function unansweredOf(seen: TunnelObservation): Finding {
  const { handshakeMs, receivedMs, now, endpoint, dialable } = seen;
  if (handshakeMs !== undefined && isQuiet(seen)) {
    // Without a number, so that the condition does not change each second.
    const message = 'nothing comes from the peer any more: is UDP let through, and does its gateway run?';
    return no(noHandshake, message);
  }
  if (handshakeMs !== undefined && now - handshakeMs < SESSION_MS) {
    return no(
      noAnswer,
      'packets come from the peer, but no answer to probes: its rules or routes, or the MTU',
    );
  }
  // Whoever cannot complete a handshake with us goes on asking for one.
  if (receivedMs !== undefined && !isQuiet(seen)) {
    const message =
      'packets of the peer arrive, and no handshake: ours do not arrive there. Is UDP let through to it?';
    return no(oneWay, message);
  }
  return silentOf(endpoint !== undefined, dialable);
}

/**
 * Whether nothing comes from the peer any more: nothing since its last answer, or nothing for longer than a keepalive takes. This shows
 * long before WireGuard forgets the session.
 */
function isQuiet({ now, receivedMs, probe }: TunnelObservation): boolean {
  if (receivedMs === undefined) return true;
  if (receivedMs <= (probe?.lastAnswerMs ?? -Infinity) + SEEN_LATE_MS) return true;
  return now - receivedMs >= QUIET_MS;
}

function silentOf(isDialled: boolean, dialable: boolean): Finding {
  if (isDialled) {
    return no(noHandshake, 'no handshake: is UDP let through to the peer’s endpoints, and has it our key?');
  }
  if (dialable) return no(noHandshake, 'the peer cannot be dialled and has not dialled us');
  return no(
    noEndpoint,
    'neither side can be dialled: name an endpoint with --tunnel-endpoint on one of them',
  );
}

function aliveOf(lossPercent: number, limit: number): Finding {
  if (lossPercent < limit) return yes('probes come back');
  // Without a number, so that the message does not change with the probes.
  const message = 'many probes are lost: see status.connection.lossPercent';
  return { status: 'True', reason: lossy, message };
}

function formerOf(tunnel: Tunnel, wanted: TunnelConditionType): Finding {
  const before = tunnel.status?.conditions?.find(({ type }) => type === wanted);
  if (before === undefined) return unknown('nothing is measured yet');
  const { status, reason, message } = before as Finding;
  return { status, reason, message };
}

const yes = (message: string): Finding => ({ status: 'True', reason: ok, message });
const no = (reason: TunnelReason, message: string): Finding => ({ status: 'False', reason, message });
const unknown = (message: string): Finding => ({ status: 'Unknown', reason: starting, message });
