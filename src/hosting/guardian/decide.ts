/** What to do now for one pod of a peer whose home is away. Pure. */
import { isFinished } from '../../api/pod.ts';
import { TAINT_OUT_OF_SERVICE } from '../../api/taints.ts';
import type { Node, Pod } from '../../api/wire.ts';
import { type JournalEntry, isResultPod, recreatedOf, whenLostOf } from './journal-entry.ts';
import { isDisrupted } from './result.ts';

/** `Fenced`: it is certain that nothing runs there any more. `Silent`: it does not answer, but pods may still run there. */
export type NodeState = 'Answers' | 'Silent' | 'Fenced';

export interface Facts {
  entry: JournalEntry;
  /** The pod that exists under its name. */
  pod: Pod | undefined;
  /** State of the node of a pod that is being deleted. */
  node: NodeState;
  /** How long ago we first saw that it is being deleted, milliseconds of our own monotonic clock. */
  terminatingForMs: number;
  /** Milliseconds since the epoch. */
  nowMs: number;
}

export type Action =
  /** Make it anew. */
  | 'Recreate'
  /** Delete a failed one, so that it can be made anew. */
  | 'Clear'
  /** Delete the object although its node does not say that the pod has ended. */
  | 'ForceDelete'
  /** Make a pod that bears the result. */
  | 'PutBack'
  /** Write the result into that pod, which has none yet. */
  | 'WriteResult'
  /** Take its loss for its result. */
  | 'GiveUp';

export type Decision =
  | { do: 'Nothing' }
  /** Look again after `forMs`; without it, when something changes. */
  | { do: 'Wait'; why: string; forMs?: number }
  | { do: Action; why: string };

/** How much longer than its grace to wait: the kubelet may have ended the pod, but not said so yet. */
const FORCE_MARGIN_MS = 30_000;
const LOOK_AGAIN_MS = 10_000;
/** A pod that is lost again and again is made anew less and less often. */
const PACE = { freely: 2, baseMs: 10_000, capMs: 300_000 };

const NOTHING: Decision = { do: 'Nothing' };

export function decide(facts: Facts): Decision {
  const { entry, pod } = facts;
  if (entry.leaving === true) return NOTHING;
  if (pod === undefined) return decideGone(facts);
  if (isResultPod(pod)) return decideResult(entry, pod);
  if (pod.metadata.deletionTimestamp !== undefined) return decideTerminating(facts, pod);
  // A program that has ended stays ended, whatever happened to its pod afterwards.
  if (entry.result !== undefined || !isFinished(pod) || !isDisrupted(pod)) return NOTHING;
  if (whenLostOf(entry) === 'Leave') return NOTHING;
  return paced(facts, { do: 'Clear', why: `it failed here without being at fault (${reasonOf(pod)})` });
}

function decideGone(facts: Facts): Decision {
  const { entry } = facts;
  if (entry.result !== undefined) return { do: 'PutBack', why: 'it had finished, and was removed' };
  if (whenLostOf(entry) === 'Leave')
    return { do: 'GiveUp', why: 'it was removed, and its home wants no other' };
  return paced(facts, { do: 'Recreate', why: 'it was removed' });
}

function decideResult(entry: JournalEntry, pod: Pod): Decision {
  if (pod.metadata.deletionTimestamp !== undefined) return { do: 'Wait', why: 'its result is being removed' };
  if (isFinished(pod) || entry.result === undefined) return NOTHING;
  return { do: 'WriteResult', why: 'its result is not written yet' };
}

function decideTerminating({ entry, node, terminatingForMs }: Facts, pod: Pod): Decision {
  const whenLost = whenLostOf(entry);
  if (node === 'Answers') return { do: 'Wait', why: 'it is being removed', forMs: LOOK_AGAIN_MS };
  if (whenLost === 'Leave') return { do: 'Wait', why: 'its node may still run it', forMs: LOOK_AGAIN_MS };
  if (node === 'Fenced') return { do: 'ForceDelete', why: 'its node is gone or fenced' };
  if (whenLost === 'WhenFenced' && entry.result === undefined) {
    return { do: 'Wait', why: 'its node does not answer and may still run it', forMs: LOOK_AGAIN_MS };
  }
  const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  const leftMs = graceMs + FORCE_MARGIN_MS - terminatingForMs;
  if (leftMs > 0) return { do: 'Wait', why: 'its node does not answer; its grace runs', forMs: leftMs };
  return { do: 'ForceDelete', why: 'its node does not answer, and it may be replaced all the same' };
}

function paced({ entry, nowMs }: Facts, decision: Decision): Decision {
  const { count } = recreatedOf(entry);
  if (count < PACE.freely) return decision;
  const pauseMs = Math.min(PACE.capMs, PACE.baseMs * 2 ** Math.min(count - PACE.freely, 20));
  const made = Date.parse(entry.created);
  // abs: a clock that was set back must not make it wait for ever.
  const livedMs = Number.isNaN(made) ? pauseMs : Math.abs(nowMs - made);
  if (livedMs >= pauseMs) return decision;
  return { do: 'Wait', why: `it was lost ${count} times before`, forMs: pauseMs - livedMs };
}

const reasonOf = ({ status }: Pod): string => status?.reason ?? 'DisruptionTarget';

const UNREACHABLE = 'node.kubernetes.io/unreachable';

/** `undefined`: there is no such Node. A node that is not ready but reports that itself ends its pods like any other. */
export function nodeStateOf(node: Node | undefined): NodeState {
  if (node === undefined) return 'Fenced';
  const taints = node.spec?.taints ?? [];
  if (taints.some(({ key }) => key === TAINT_OUT_OF_SERVICE)) return 'Fenced';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'Unknown' || taints.some(({ key }) => key === UNREACHABLE)) return 'Silent';
  return 'Answers';
}
