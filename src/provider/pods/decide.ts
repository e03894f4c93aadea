import { isControlled, isDisruptionTarget, isFinished, isOfDaemonSet } from '../../api/pod.ts';
import {
  ANNOTATION_STRATEGY,
  CONDITION_OFFLOADED,
  LABEL_HOME_UID,
  OFFLOADED_REASONS,
} from '../../api/names.ts';
import { unknownPlacementNews } from '../../api/placement.ts';
import type { EventReason, EventReasons } from '../../api/reasons/events.ts';
import type { OffloadedReason } from '../../api/names.ts';
import type { Draft, Pod, PodStatus } from '../../api/wire.ts';
import { nextChange, type PodChange } from '../forge/change.ts';
import type { ForgeContext } from '../forge/context.ts';
import { asksClusterDns } from '../forge/dns.ts';
import { isEndedThere } from '../forge/ended-status.ts';
import { forgePlacement, placementRefusal } from '../forge/placement.ts';
import { forgePod } from '../forge/pod.ts';
import { isBodyFor } from '../forge/same-body.ts';
import { silentStatus } from '../forge/reach.ts';
import { isResult, isUnfinishedResult, newsOfRecreation, recreatedOf } from '../forge/made-anew.ts';
import type { Reference } from '../forge/references.ts';
import { missingToken } from '../forge/tokens.ts';
import { sameStatus } from '../forge/same-status.ts';
import { forgeStatus, refusedStatus, stayHomeStatus } from '../forge/status.ts';
import { hasRun, withAcceptance } from '../forge/waiting-status.ts';
import type { Refusal } from './refusal.ts';
import { type NodeIdentity, refusalUnmapped } from './unmapped.ts';

/** All that a decision may know; read from caches, never remembered. */
export interface Situation {
  /** The home pod bound to the virtual node. */
  home: Pod | undefined;
  /** The object of that name over there that this agent made, whatever its UID label says. */
  remote: Pod | undefined;
  /** The virtual node. */
  node: NodeIdentity;
  /** Undefined when the home namespace is not offloaded. */
  context: ForgeContext | undefined;
  /** False while the namespace is being taken out: what runs goes on, nothing new is begun. */
  accepting: boolean;
  /** Whether the caches of the tenant namespace are complete and the foreign cluster answers. */
  contact: boolean;
  references: ReferenceState;
  /** The foreign cluster refused a moment ago, and is not asked again yet. */
  held: boolean;
  /** The home pod of the remote one went with a history that home has lost; see KeptBodies. */
  kept: boolean;
  /** RFC 3339. */
  now: string;
}

export interface ReferenceState {
  /** Mandatory objects that do not exist at home. */
  missing: readonly Reference[];
  /** Objects that cannot be brought over there, with the reason. */
  refused: readonly Refusal[];
  /** Some object has not yet arrived over there; the pod is called again when it has. */
  pending: boolean;
  /** Each object that is not there for the pod, as virtual-kubelet tells it. */
  notes: readonly Note[];
}

/** An event, to be told with what is done. */
export interface Note {
  reason: EventReasons['Pod'];
  message: string;
}

/** Exactly one step. The watch brings its result back, and the next step is decided from that. */
export type Action =
  | { do: 'nothing' }
  | { do: 'create'; home: Pod; pod: Draft<Pod>; notes: readonly Note[] }
  | { do: 'change'; home: Pod; remote: Pod; change: PodChange }
  /** `news`: worth an event, once it is written. */
  | { do: 'writeStatus'; home: Pod; status: PodStatus; news?: { reason: EventReason; message: string } }
  | {
      do: 'refuse';
      home: Pod;
      reason: OffloadedReason;
      message: string;
      status: PodStatus;
      notes?: readonly Note[];
    }
  /** The caches hold no remote pod for a home pod that had one: to be confirmed by a live read. */
  | { do: 'confirmLost'; home: Pod; tenantNamespace: string }
  | { do: 'deleteRemote'; remote: Pod; gracePeriodSeconds: number | undefined }
  /** The foreign cluster is ending the remote pod: to be confirmed by a live read. The controller of the home pod makes another now. */
  | { do: 'letGo'; home: Pod; remote: Pod; gracePeriodSeconds: number }
  /**
   * The caches hold no home pod for this remote pod: to be confirmed by a live read. `isInTheWay`: another home pod waits for
   * the name.
   */
  | { do: 'collect'; remote: Pod; isInTheWay: boolean }
  /** The remote pod of a home pod that was lost by a restore is what this one needs. */
  | { do: 'adopt'; home: Pod; remote: Pod }
  /** The remote pod is gone, which it has said itself or a live read confirms: let the home pod's deletion complete. */
  | { do: 'finish'; home: Pod; tenantNamespace: string | undefined };

const NOTHING: Action = { do: 'nothing' };

/** A forced deletion at home gives the containers this long, as the kubelet does. Seconds. */
export const FORCED_GRACE_SECONDS = 1;

const DAEMON_SET_MESSAGE =
  'DaemonSet pods stay on real nodes, and nothing runs here; to have no such pod, exclude virtual nodes by node affinity (tributary.dev/node-type NotIn [virtual-node])';

export function decide(situation: Situation): Action {
  const { home, remote, contact } = situation;
  if (home === undefined) return remote === undefined || !contact ? NOTHING : collect(remote);
  if (remote !== undefined && remote.metadata.labels?.[LABEL_HOME_UID] !== home.metadata.uid) {
    return contact ? decideOther(situation, home, remote) : NOTHING;
  }
  if (home.metadata.deletionTimestamp !== undefined) return decideDeletion(situation, home);
  if (isFinished(home)) return decideTerminal(situation, home);
  if (remote !== undefined) return decideRunning(situation, home, remote);
  return decideAbsent(situation, home);
}

/** The remote pod of an earlier home pod of that name; the new one waits until the name is free. */
function decideOther(situation: Situation, home: Pod, remote: Pod): Action {
  const { context, kept } = situation;
  if (kept && context !== undefined && isBodyFor(home, remote, context)) return { do: 'adopt', home, remote };
  const isEnded = home.metadata.deletionTimestamp !== undefined || isFinished(home);
  const isInTheWay = !isEnded && !hasRun(home);
  const collecting = collect(remote, isInTheWay);
  if (collecting !== NOTHING && (!kept || isInTheWay)) return collecting;
  // One that is kept is in nobody's way: what home shows can be put right meanwhile.
  const action = decideWaiting(situation, home);
  return action === NOTHING ? collecting : action;
}

function collect(remote: Pod, isInTheWay = false): Action {
  const left = remote.metadata.deletionGracePeriodSeconds;
  const isEnding = remote.metadata.deletionTimestamp !== undefined;
  return isEnding && left !== undefined && left <= FORCED_GRACE_SECONDS
    ? NOTHING
    : { do: 'collect', remote, isInTheWay };
}

/** A remote pod that is ending holds the name: the home pod says what it waits for. */
function decideWaiting({ now, context }: Situation, home: Pod): Action {
  if (context === undefined) return NOTHING;
  const { tenantNamespace } = context;
  if (home.metadata.deletionTimestamp !== undefined) return { do: 'finish', home, tenantNamespace };
  if (isFinished(home)) return NOTHING;
  if (hasRun(home)) return { do: 'confirmLost', home, tenantNamespace };
  const message = `the pod that had the name "${home.metadata.name}" before is still ending over there`;
  return refuse(home, { reason: OFFLOADED_REASONS.nameTaken, message }, now);
}

function decideDeletion(situation: Situation, home: Pod): Action {
  const { remote, context, contact } = situation;
  if (!contact && context !== undefined) return NOTHING;
  if (remote === undefined) return { do: 'finish', home, tenantNamespace: context?.tenantNamespace };
  const asked = home.metadata.deletionGracePeriodSeconds;
  // 0 would remove the object before its containers have ended, and with it the proof that they have.
  const grace = asked === undefined ? undefined : Math.max(FORCED_GRACE_SECONDS, asked);
  const left = remote.metadata.deletionGracePeriodSeconds;
  const isEnding = remote.metadata.deletionTimestamp !== undefined;
  if (!isEnding || (grace !== undefined && left !== undefined && grace < left)) {
    return { do: 'deleteRemote', remote, gracePeriodSeconds: grace };
  }
  return isFinished(home) ? NOTHING : mirror(situation, home, remote);
}

/** A finished pod never runs again; its remote pod stays for its logs until the home pod is deleted. */
function decideTerminal(situation: Situation, home: Pod): Action {
  const { remote, contact } = situation;
  if (remote === undefined || !contact || isFinished(remote) || isResult(remote)) return NOTHING;
  if (remote.metadata.deletionTimestamp !== undefined) return NOTHING;
  return {
    do: 'deleteRemote',
    remote,
    gracePeriodSeconds: home.spec?.terminationGracePeriodSeconds,
  };
}

function decideRunning(situation: Situation, home: Pod, remote: Pod): Action {
  const { context, contact, held, accepting } = situation;
  // Out of contact the cached status is outdated; whoever marks pods of a lost node must not be overruled.
  if (!contact || context === undefined) return outOfContact(situation, home);
  if (isUnfinishedResult(remote)) return NOTHING;
  // It was asked for before the namespace began to leave. What runs goes on; this does not run yet.
  if (!accepting && isUnbegun(home, remote)) {
    return { do: 'deleteRemote', remote, gracePeriodSeconds: FORCED_GRACE_SECONDS };
  }
  if (!held && remote.metadata.deletionTimestamp === undefined && !isFinished(remote)) {
    const change = nextChange(home, remote, context);
    if (change !== undefined) return { do: 'change', home, remote, change };
  }
  return isEndedThere(home, remote) && isControlled(home)
    ? decideEndedThere(situation, home, remote)
    : mirror(situation, home, remote);
}

/**
 * As with an eviction at home: the pod goes at once, with its grace period, and whoever made it replaces it meanwhile. That it is not
 * at fault (DisruptionTarget) is said before. A pod that nobody would replace stays until its containers have ended, and is shown as lost.
 */
function decideEndedThere(situation: Situation, home: Pod, remote: Pod): Action {
  const saying = isDisruptionTarget(home) ? NOTHING : mirror(situation, home, remote);
  if (saying !== NOTHING) return saying;
  const { deletionGracePeriodSeconds: left = FORCED_GRACE_SECONDS } = remote.metadata;
  return { do: 'letGo', home, remote, gracePeriodSeconds: Math.max(FORCED_GRACE_SECONDS, left) };
}

const isUnbegun = (home: Pod, remote: Pod): boolean =>
  !hasRun(home) &&
  !isFinished(home) &&
  remote.status?.startTime === undefined &&
  !isFinished(remote) &&
  remote.metadata.deletionTimestamp === undefined;

/** That packets do not get there is known here, even when the foreign cluster is silent, and so are pods that run here. */
function outOfContact({ remote, context, now }: Situation, home: Pod): Action {
  const status = context && silentStatus(home, remote, context, now);
  return status === undefined ? NOTHING : { do: 'writeStatus', home, status };
}

function mirror({ context, now }: Situation, home: Pod, remote: Pod): Action {
  if (context === undefined || isUnfinishedResult(remote) || !isWorthShowing(home, remote)) return NOTHING;
  const status = forgeStatus(home, remote, context, now);
  if (sameStatus(status, home.status ?? {})) return NOTHING;
  const news = newsOfRecreation(home, status);
  return { do: 'writeStatus', home, status, ...(news !== undefined && { news }) };
}

/**
 * Until a kubelet or a scheduler has written to the remote pod, it has nothing that home does not know. That a place was found
 * after all is shown at once, since home counts how long there has been none.
 */
function isWorthShowing(home: Pod, remote: Pod): boolean {
  if (remote.status?.startTime !== undefined || isFinished(remote)) return true;
  // Home still shows an earlier remote pod: its address, and that it is ready.
  if (hasRun(home) && recreatedOf(remote) !== undefined) return true;
  const scheduled = remote.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.status;
  return scheduled === 'False' || (scheduled === 'True' && isSaidToBeRefused(home));
}

const isSaidToBeRefused = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type }) => type === CONDITION_OFFLOADED) === true;

/** `waiting`: by container, what keeps it from starting. */
type WaitingRefusal = Refusal & { waiting?: Map<string, string> };

function refuse(home: Pod, refusal: WaitingRefusal, now: string): Extract<Action, { do: 'refuse' }> {
  const { reason, message } = refusal;
  return { do: 'refuse', home, reason, message, status: refusedStatus(home, refusal, now) };
}

function decideAbsent(situation: Situation, home: Pod): Action {
  const { context, accepting, contact, references, held, now } = situation;
  if (isOfDaemonSet(home)) {
    const reason = OFFLOADED_REASONS.daemonSet;
    const message = DAEMON_SET_MESSAGE;
    return { do: 'refuse', home, reason, message, status: stayHomeStatus(home, message, now) };
  }
  if (context === undefined || (!accepting && !hasRun(home))) {
    // An unknown namespace says nothing about a pod that runs over there.
    if (hasRun(home)) return NOTHING;
    return refuse(home, refusalUnmapped(home, situation.node, context !== undefined), now);
  }
  if (!contact) return outOfContact(situation, home);
  if (hasRun(home)) return { do: 'confirmLost', home, tenantNamespace: context.tenantNamespace };
  const { missing, refused, pending, notes } = references;
  const wanting = missing.filter((one) => holdsUp(one, home));
  const refusal = wanting.length > 0 ? missingRefusal(wanting) : refused[0];
  if (refusal !== undefined) {
    const action = refuse(home, refusal, now);
    if (refusal.reason !== OFFLOADED_REASONS.missingReference) return action;
    return { ...action, status: withAcceptance(home, action.status, context, now), notes };
  }
  const apart = placementRefusal(forgePlacement(home, context));
  if (apart !== undefined) return refuse(home, apart, now);
  if (pending || held) return NOTHING;
  return { do: 'create', home, pod: forgePod(home, context), notes: [...notes, ...otherwise(home, context)] };
}

/**
 * A kubelet starts no container without the pod's volumes, while a missing environment holds up only the container that names it: another
 * one may be what makes the object. A single container would wait over there, too, so it waits here.
 */
const holdsUp = ({ usage }: Reference, { spec }: Pod): boolean =>
  usage !== 'environment' || (spec?.containers.length ?? 0) + (spec?.initContainers?.length ?? 0) === 1;

/** What is not as its owner may expect, although the pod is made. */
function otherwise(home: Pod, context: ForgeContext): Note[] {
  const notes: Note[] = [];
  const token = missingToken(home, context);
  if (token !== undefined) notes.push({ reason: 'NoTokenForHome', message: token });
  const unknown = unknownPlacementNews(home);
  // Of a pod that the webhook has let in, role `cluster` says it.
  if (unknown !== undefined && home.metadata.annotations?.[ANNOTATION_STRATEGY] === undefined) {
    notes.push({ reason: 'PlacementUnknown', message: unknown });
  }
  const { left } = forgePlacement(home, context);
  if (left.length > 0) notes.push({ reason: 'PlacementNotCarried', message: left.join('; ') });
  const { noHomeDns } = context;
  if (noHomeDns !== undefined && asksClusterDns(home)) {
    notes.push({
      reason: 'ForeignDNS',
      message: `the pod asks the DNS of the foreign cluster: ${noHomeDns}`,
    });
  }
  return notes;
}

const missingRefusal = (missing: readonly Reference[]): WaitingRefusal => ({
  reason: OFFLOADED_REASONS.missingReference,
  message: missingMessage(missing),
  waiting: waitingContainers(missing),
});

/** In the kubelet's words (pkg/kubelet/kubelet_pods.go, pkg/volume). */
function missingMessage(missing: readonly Reference[]): string {
  return missing
    .map(({ kind, name, usage, user }) =>
      usage === 'volume'
        ? `MountVolume.SetUp failed for volume "${user}": ${kind.toLowerCase()} "${name}" not found`
        : `${kind.toLowerCase()} "${name}" not found`,
    )
    .join('; ');
}

/** Containers that the kubelet would hold in CreateContainerConfigError for a missing object. */
function waitingContainers(missing: readonly Reference[]): Map<string, string> {
  return new Map(
    missing
      .filter(({ usage }) => usage === 'environment')
      .map(({ kind, name, user }) => [user, `${kind.toLowerCase()} "${name}" not found`]),
  );
}
