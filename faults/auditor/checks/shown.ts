/**
 * I4: home shows of a pod only what its body was, and never an older state of it again. At the end (I7) it shows what the body is.
 * Pure.
 */
import { LOST, NO_ROOM, UNKNOWN_CONTAINER } from '../contract.ts';
import {
  bodiesByHome,
  type Body,
  first,
  last,
  type Observation,
  type Run,
  type Soul,
  soulsOf,
  wasAway,
} from '../history.ts';
import { type ContainerView, hasEnded, nameOf, type PodView, runs, stateText } from '../pod-view.ts';
import { timeText, type Violation } from '../violation.ts';

/** A state of a body, when it was seen. */
interface State {
  readonly at: number;
  readonly pod: PodView;
}

export function shownFaults(run: Run): Violation[] {
  const bodies = bodiesByHome(run);
  return soulsOf(run).flatMap((soul) => shownFault(run, soul, bodies.get(soul.uid) ?? []));
}

/** The first fault of each home pod: what follows from it would only be said again. */
function shownFault(run: Run, soul: Soul, bodies: readonly Body[]): Violation[] {
  const states = bodies.flatMap(({ life }) => life.map(({ at, pod }): State => ({ at, pod })));
  // What home showed before we looked is nobody's fault that can be seen.
  const start = first(soul.life).pod;
  let reached = start.phase === 'Pending' ? -1 : Math.max(0, indexOf(states, 0, start));
  for (const [index, seen] of soul.life.entries()) {
    const before = soul.life[index - 1];
    const isBack = run.home.isRestored && seen.by === 'list';
    if (isBack) reached = -1;
    if (isBack || !isNews(before, seen)) continue;
    const isBefore = reached < 0 || states[reached]?.pod.phase === 'Pending';
    if (isOfHome(seen.pod, bodies, isBefore) || mayBeUnseen(run, soul, seen)) continue;
    const found = indexOf(states, reached, seen.pod);
    const fault = found === -1 ? notOf(seen, states) : early(run, soul, seen, states[found]);
    if (fault !== undefined) return [fault];
    reached = found;
  }
  return [];
}

/** @param isBefore no body has been shown that has begun */
const isOfHome = (pod: PodView, bodies: readonly Body[], isBefore: boolean): boolean =>
  (isBefore && isWaiting(pod)) || isEndOfHome(pod, bodies);

/** It shows something else of its body than before. */
const isNews = (before: Observation | undefined, { pod, isGone }: Observation): boolean =>
  before !== undefined &&
  !isGone &&
  (stateText(before.pod) !== stateText(pod) || before.pod.isEnding !== pod.isEnding);

function notOf({ at, pod }: Observation, states: readonly State[]): Violation {
  const older = states.findLast((state) => isShownAs(pod, state.pod));
  const now = states.findLast((state) => state.at <= at);
  const what =
    older === undefined
      ? `which its remote pod never was; that was ${now === undefined ? 'not there' : stateText(now.pod)}`
      : `which its remote pod was at ${timeText(older.at)}, before what home has shown since`;
  return {
    invariant: 'I4',
    what: `home pod ${nameOf(pod)} shows at ${timeText(at)} ${stateText(pod)}, ${what}`,
  };
}

/** Home showed it before it was so, by more than two watches can be apart. */
function early(
  run: Run,
  { side }: Soul,
  { at, pod }: Observation,
  state: State | undefined,
): Violation | undefined {
  if (state === undefined || state.at <= at + run.skewMs) return undefined;
  if (wasAway([run.home, side.cluster], at, state.at)) return undefined;
  const what = `home pod ${nameOf(pod)} shows at ${timeText(at)} ${stateText(pod)}, and its remote pod was so only at ${timeText(state.at)}`;
  return { invariant: 'I4', what };
}

/** Its body may have been so while nobody could look, and home may show that for a while. */
const mayBeUnseen = (run: Run, { side }: Soul, { at }: Observation): boolean =>
  side.cluster.absences.some(
    ({ from, to, isGap }) => from <= at && at <= to + (isGap ? run.settleMs : run.skewMs),
  );

/** The first state, from that one on, that may be shown so; -1: none. */
const indexOf = (states: readonly State[], from: number, shown: PodView): number =>
  states.findIndex(({ pod }, index) => index >= from && isShownAs(shown, pod));

/** What home writes of a pod that has no body yet, by its documents. */
const isWaiting = ({ phase, containers, isReady, isOfDaemonSet }: PodView): boolean =>
  phase === 'Pending' &&
  containers.every(({ state, id }) => state !== 'running' && id === undefined) &&
  (!isReady || isOfDaemonSet);

/** What home writes of a pod whose body is no more, or that it ends itself, by its documents. */
function isEndOfHome(pod: PodView, bodies: readonly Body[]): boolean {
  if (pod.phase !== 'Failed' || pod.isReady || runs(pod)) return false;
  if (pod.reason === LOST) return !bodies.some(goesOn);
  // Evictions by Kubernetes at home, ends of pods that nobody could place, and the last status before an object goes.
  return pod.isEnding || pod.isDisrupted || NO_ROOM.test(pod.reason ?? '');
}

const goesOn = ({ life }: Body): boolean => {
  const { pod } = last(life);
  return !life.some(({ isGone }) => isGone) && !pod.isEnding && !hasEnded(pod);
};

/** Whether a body in that state may be shown so. Home may say that it is not ready, for reasons of its own. */
export function isShownAs(home: PodView, body: PodView): boolean {
  if (home.phase !== body.phase || (home.isReady && !body.isReady)) return false;
  return home.containers.every((one) => {
    const its = body.containers.find(({ name }) => name === one.name);
    return its === undefined
      ? one.state !== 'running' && one.id === undefined
      : isShownContainer(one, its, { home, body });
  });
}

function isShownContainer(
  shown: ContainerView,
  its: ContainerView,
  { home, body }: { home: PodView; body: PodView },
): boolean {
  const before = body.restartsBefore?.[shown.name] ?? 0;
  const isOther = shown.id !== undefined && shown.id !== its.id;
  if (isOther || (shown.id === undefined && its.id !== undefined && !home.isCut)) return false;
  if (shown.restarts !== its.restarts + before) return false;
  if (shown.isReady && !its.isReady) return false;
  // The API server lets no container live again that has ended for good, so home keeps its end.
  const isKept =
    shown.state === 'terminated' && (shown.reason === UNKNOWN_CONTAINER || body.restartsBefore !== undefined);
  return isKept || shown.state === its.state;
}

/** Once all is settled, home shows what the body is. */
export function shownDifferences(run: Run): Violation[] {
  const bodies = bodiesByHome(run);
  return soulsOf(run).flatMap(({ uid, life, side }): Violation[] => {
    const { pod, isGone } = last(life);
    const present = (bodies.get(uid) ?? []).filter((body) => !last(body.life).isGone);
    const body = present[0];
    if (isGone || body === undefined || present.length > 1) return [];
    const there = last(body.life).pod;
    if (isShownAs(pod, there) || isEndOfHome(pod, present) || there.isResult) return [];
    const what = `home pod ${nameOf(pod)} shows ${stateText(pod)}, and its remote pod in ${side.name} is ${stateText(there)}`;
    return [{ invariant: 'I7', what }];
  });
}
