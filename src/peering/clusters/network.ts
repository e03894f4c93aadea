/** What a ForeignCluster shows of its network: the Tunnel's own words, calmed down. Pure. */
import type { WantedCondition } from '../../api/conditions.ts';
import { FOREIGN_CLUSTER_CONDITIONS, type ForeignCluster } from '../../api/foreign-cluster.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import { type Tunnel, TUNNEL_CONDITIONS, TUNNEL_REASONS } from '../../api/tunnel.ts';
import type { Condition } from '../../api/wire.ts';

/** Part of ForeignClusterFacts. */
interface NetworkFacts {
  cluster: ForeignCluster;
  tunnel?: Tunnel | undefined;
  duplicateOf: string | undefined;
  now: number;
}

/** A condition without its type. */
export type Judged = Pick<WantedCondition, 'status' | 'reason' | 'message'>;

/** A tunnel that fails for less than this is not told here: a change of the gateway is none of the peering's business. */
export const CALM_MS = 10_000;

const BEING_SET_UP: Judged = {
  status: 'Unknown',
  reason: TUNNEL_REASONS.starting,
  message: 'the tunnel is being set up',
};

/**
 * True as soon as packets go through; anything else when it has lasted for CALM_MS. So a tunnel that comes and goes costs one write
 * each way in that time. Undefined: there is no tunnel, and so nothing to say.
 */
export function networkOf({ cluster, tunnel, duplicateOf, now }: NetworkFacts): Judged | undefined {
  if (tunnel === undefined || duplicateOf !== undefined) return undefined;
  const wanted = judged(tunnel);
  const before = cluster.status?.conditions?.find(({ type }) => type === FOREIGN_CLUSTER_CONDITIONS.network);
  if (wanted.status === 'True' || calmAt(tunnel, now) <= now) return wanted;
  const { status, reason, message } = (before as Judged | undefined) ?? BEING_SET_UP;
  return { status, reason, message };
}

/** When time alone changes what `networkOf` says; undefined: it does not. */
export function networkSettlesAt({ tunnel, now }: Pick<NetworkFacts, 'tunnel' | 'now'>): number | undefined {
  if (tunnel === undefined || judged(tunnel).status === 'True') return undefined;
  const at = calmAt(tunnel, now);
  return at > now ? at : undefined;
}

/** A moment that lies ahead comes from a clock that is wrong, and is not waited for. */
function calmAt(tunnel: Tunnel, now: number): number {
  const since = Date.parse(readyOf(tunnel)?.lastTransitionTime ?? '');
  return since <= now ? since + CALM_MS : now;
}

const readyOf = ({ status }: Tunnel): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready);

function judged(tunnel: Tunnel): Judged {
  const ready = readyOf(tunnel);
  const name = tunnel.metadata.name;
  if (ready === undefined) {
    const message = 'the gateway has not reported on the tunnel yet';
    return { status: 'Unknown', reason: TUNNEL_REASONS.starting, message };
  }
  const { status, reason } = ready as Judged;
  if (status === 'True') return { status, reason, message: ready.message ?? '' };
  // Without the other side's network there is none to be down: pods go on as with a provider that has no gateway.
  if (tunnel.spec.peer === undefined && reason !== TUNNEL_REASONS.keyTaken) {
    const message = 'it has told no network of its own: it runs no gateway, or the link is down';
    return { status: 'Unknown', reason: TUNNEL_REASONS.peerSilent, message };
  }
  const what =
    status === 'False'
      ? 'its pods run on, but cannot be reached from here, nor ours from there'
      : 'whether packets go through is not known';
  const message = `${what}: ${ready.message ?? reason}; see kubectl describe tunnel ${name}`;
  return { status, reason, message: message.slice(0, MAX_MESSAGE_LENGTH) };
}
