/** How the network between the clusters affects the status of a home pod. Pure. */
import { REACH_REASONS } from '../../api/names.ts';
import type { Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import type { ForgeContext } from './context.ts';

interface Unreachable {
  reason: string;
  message: string;
}

/** A fixed text: changing problems of a tunnel must not rewrite every pod. The Node's condition tells them. */
const TUNNEL_DOWN: Unreachable = {
  reason: REACH_REASONS.tunnelDown,
  message:
    'the pod runs, but the tunnel to its cluster does not carry packets; see the condition of the node',
};

/** As fixed; the causes are in the Node's condition, too. */
const AWAY: Unreachable = {
  reason: REACH_REASONS.clusterAway,
  message: 'nothing answers in the cluster of the pod; see the condition of the node',
};

/**
 * Addresses of the remote pod as home sees them, in the same order; those without a view are left out.
 *
 * @param uid of the remote pod
 */
export function viewsOf(
  there: PodStatus,
  uid: string,
  { homeViewOf, returnedTo }: Pick<ForgeContext, 'homeViewOf' | 'returnedTo'>,
): { ip: string }[] {
  return (there.podIPs ?? []).flatMap(({ ip }) => {
    const view = homeViewOf(ip) ?? returnedTo?.(uid, ip);
    return view === undefined ? [] : [{ ip: view }];
  });
}

/**
 * Why nobody at home can reach the pod; undefined where it can be reached, has no address yet, or is not meant to be
 * reached, since no network joins the two clusters.
 *
 * @param uid of the remote pod
 */
export function obstacleToReach(
  uid: string,
  { there, podIPs }: { there: PodStatus; podIPs: readonly { ip: string }[] },
  { network, isReturnedReady }: ForgeContext,
): Unreachable | undefined {
  if (network === 'Off') return undefined;
  if (network === 'Down') {
    const isHere = podIPs.some(({ ip }) => isReturnedReady?.(uid, ip) !== undefined);
    return isHere ? undefined : TUNNEL_DOWN;
  }
  const [first] = there.podIPs ?? [];
  if (first === undefined || podIPs.length > 0) return undefined;
  return {
    reason: REACH_REASONS.noView,
    message: `home has no view of the pod's address ${first.ip} yet`,
  };
}

/** A pod that cannot be reached is not Ready, so that Services leave it out; what its containers do stays as it is. */
export function withNetwork(
  home: Pod,
  conditions: PodCondition[],
  { unreachable, now }: { unreachable: Unreachable | undefined; now: string },
): PodCondition[] {
  if (unreachable === undefined) return conditions;
  const before = home.status?.conditions?.find(({ type }) => type === 'Ready');
  const lastTransitionTime = before?.status === 'False' ? (before.lastTransitionTime ?? now) : now;
  return conditions.map((condition) =>
    condition.type === 'Ready' && condition.status === 'True'
      ? { ...condition, status: 'False', ...unreachable, lastTransitionTime }
      : condition,
  );
}

/**
 * The cause where `kubectl get pods` shows it in place of `Running`, as Kubernetes did with NodeLost: containers are ready and run, so
 * that the other columns look as if all were well. The phase stays, so that nothing is evicted or replaced.
 */
export function networkCause(conditions: readonly PodCondition[]): Pick<PodStatus, 'reason' | 'message'> {
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' && REASONS.has(ready.reason)
    ? present({ reason: ready.reason, message: ready.message })
    : {};
}

const REASONS = new Set<string | undefined>(Object.values(REACH_REASONS));

export const isCutOff = ({ reason }: PodCondition): boolean => REASONS.has(reason);

/** Without the cause that `networkCause` has set. */
function withoutCause({ reason, message, ...rest }: PodStatus): PodStatus {
  return REASONS.has(reason) ? rest : { ...rest, ...present({ reason, message }) };
}

/**
 * The status of a pod while nothing is heard from the foreign cluster; undefined where that changes nothing. A pod that was
 * placed back runs here, so its kubelet is asked, and whoever marks pods of a lost node is overruled. Of others Ready is never
 * set to True: nobody knows. Where the foreign cluster is away they are not Ready at once, as Kubernetes' node lifecycle controller
 * has it within its 5 s.
 */
export function silentStatus(
  home: Pod,
  remote: Pod | undefined,
  { network, isAway, isReturnedReady }: ForgeContext,
  now: string,
): PodStatus | undefined {
  const { podIP } = home.status ?? {};
  const isReady = remote && podIP !== undefined ? isReturnedReady?.(remote.metadata.uid, podIP) : undefined;
  if (isReady !== undefined) return returnedStatus(home, isReady, now);
  if (isAway === true) return cutOffStatus(home, AWAY, now);
  return network === 'Down' ? cutOffStatus(home, TUNNEL_DOWN, now) : undefined;
}

function returnedStatus(home: Pod, isReady: boolean, now: string): PodStatus | undefined {
  const wanted: PodCondition = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    ...(!isReady && {
      reason: 'ContainersNotReady',
      message: 'the pod runs in this cluster, and is not ready',
    }),
    lastTransitionTime: now,
  };
  const conditions = home.status?.conditions ?? [];
  const before = conditions.find(({ type }) => type === 'Ready');
  if (before === undefined || before.status === wanted.status) return undefined;
  return {
    ...withoutCause(home.status ?? {}),
    conditions: conditions.map((one) => (one === before ? wanted : one)),
  };
}

/** The last known status with Ready set to False. */
function cutOffStatus(home: Pod, unreachable: Unreachable, now: string): PodStatus | undefined {
  const conditions = home.status?.conditions ?? [];
  if (!conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return undefined;
  const cutOff = withNetwork(home, conditions, { unreachable, now });
  return { ...home.status, ...networkCause(cutOff), conditions: cutOff };
}
