/** I3: what has ended never runs again. I5: bodies that ran go on as they are, unless home asked for their end. Pure. */
import {
  bodiesByHome,
  bodiesOf,
  type Body,
  type ClusterHistory,
  isAnnounced,
  last,
  type Life,
  type Observation,
  type Run,
  type Soul,
  soulsOf,
  vanishedByRestore,
  wasAway,
} from '../history.ts';
import { LOST } from '../contract.ts';
import { type ContainerView, hasEnded, nameOf, type PodView, runs, stateText } from '../pod-view.ts';
import { timeText, type Violation } from '../violation.ts';

export function endFaults(run: Run): Violation[] {
  const bodies = bodiesByHome(run);
  return [
    ...soulsOf(run).flatMap(({ life }) => revived(run.home, life)),
    ...bodiesOf(run).flatMap(({ side, life }) => revived(side.cluster, life)),
    ...soulsOf(run).flatMap((soul) => ranAfterHome(run, soul, bodies.get(soul.uid) ?? [])),
  ];
}

/** A restored etcd shows old states, once; who wrote the new ones writes them again. */
function revived({ name, isRestored }: ClusterHistory, life: Life): Violation[] {
  let end: Observation | undefined;
  for (const seen of life) {
    const { pod, at, by } = seen;
    if (end === undefined || hasEnded(pod)) {
      if (hasEnded(pod)) end ??= seen;
      continue;
    }
    if (isRestored && by === 'list') {
      end = undefined;
      continue;
    }
    const what = `pod ${nameOf(pod)} in ${name} had ended at ${timeText(end.at)} (${end.pod.phase}), and at ${timeText(at)} is ${stateText(pod)}`;
    return [{ invariant: 'I3', what }];
  }
  return [];
}

/** Its body began to run, or to run again, after the home pod had ended. */
function ranAfterHome(run: Run, { life, side }: Soul, bodies: readonly Body[]): Violation[] {
  const end = life.find(({ pod }) => hasEnded(pod));
  if (end === undefined || run.home.isRestored) return [];
  return bodies.flatMap((body): Violation[] => {
    const start = body.life.find(({ pod }) => runs(pod));
    if (start === undefined || start.at <= end.at + run.skewMs) return [];
    if (wasAway([run.home, side.cluster], end.at, start.at)) return [];
    const what = `home pod ${nameOf(end.pod)} had ended at ${timeText(end.at)} (${end.pod.phase}), and its remote pod ${nameOf(start.pod)} in ${body.side.name} began to run at ${timeText(start.at)}`;
    return [{ invariant: 'I3', what }];
  });
}

/** What must not be so once all is settled: home shows an end, and the body runs. */
export function endDifferences(run: Run): Violation[] {
  return bodiesOf(run).flatMap(({ life, homeUid, side }): Violation[] => {
    const soul = run.home.lives.get(homeUid);
    if (soul === undefined || last(soul).isGone || last(life).isGone) return [];
    const [home, body] = [last(soul).pod, last(life).pod];
    if (!hasEnded(home) || !runs(body)) return [];
    const what = `home pod ${nameOf(home)} has ended (${home.phase}), and its remote pod ${nameOf(body)} in ${side.name} is ${stateText(body)}`;
    return [{ invariant: 'I3', what }];
  });
}

export function bodyChanges(run: Run): Violation[] {
  return bodiesOf(run).flatMap((body) =>
    isAnnounced(run, body) ? [] : [...endings(run, body), ...restarts(run, body)],
  );
}

/** Since when home has wanted the pod to end, by itself; undefined: it never has. */
function wantedSince(run: Run, homeUid: string): number | undefined {
  const soul = run.home.lives.get(homeUid);
  // A body without any home pod is an orphan from the start, and may be taken away.
  if (soul === undefined) return 0;
  return soul.find(({ pod, isGone }) => isGone || pod.isEnding || (hasEnded(pod) && pod.reason !== LOST))?.at;
}

function endings(run: Run, body: Body): Violation[] {
  const { life, side, homeUid } = body;
  const end = life.find(({ pod, isGone }) => isGone || pod.isEnding);
  const before = end === undefined ? undefined : life.slice(0, life.indexOf(end)).at(-1);
  if (end === undefined || before === undefined || !runs(before.pod) || hasEnded(end.pod)) return [];
  if (vanishedByRestore(body) || run.home.isRestored) return [];
  const wanted = wantedSince(run, homeUid);
  if (wanted !== undefined && wanted <= end.at + run.skewMs) return [];
  // In that time home may have asked, and nobody has seen it yet.
  if (wanted !== undefined && wasAway([run.home], end.at, wanted)) return [];
  const how = end.isGone ? 'went' : 'was deleted';
  const what = `remote pod ${nameOf(end.pod)} in ${side.name} ran, and ${how} at ${timeText(end.at)}, though home did not ask for the end of home pod ${homeUid} and its loss was not announced`;
  return [{ invariant: 'I5', what }];
}

function restarts(run: Run, { life, side, homeUid }: Body): Violation[] {
  return life.slice(1).flatMap((seen, index): Violation[] => {
    const before = life[index];
    if (before === undefined || seen.isGone || before.isGone) return [];
    if (side.cluster.isRestored && seen.by === 'list') return [];
    if (wasChangedAtHome(run, homeUid, seen)) return [];
    const changed = seen.pod.containers.flatMap((now) => restarted(before.pod, now));
    if (changed.length === 0) return [];
    const what = `remote pod ${nameOf(seen.pod)} in ${side.name} at ${timeText(seen.at)}: ${changed.join('; ')}`;
    return [{ invariant: 'I5', what }];
  });
}

function restarted(before: PodView, now: ContainerView): string[] {
  const old = before.containers.find(({ name }) => name === now.name);
  if (old === undefined) return [];
  const { name, id, restarts } = now;
  if (restarts !== old.restarts)
    return [`container ${name} had ${old.restarts} restarts and has ${restarts}`];
  const isOther = old.id !== undefined && id !== undefined && id !== old.id;
  return isOther ? [`container ${name} was ${old.id} and is ${id}`] : [];
}

/** A new image or a resize restarts containers: the generation of the home pod says that its spec was changed a while before. */
function wasChangedAtHome(run: Run, homeUid: string, { at }: Observation): boolean {
  const soul = run.home.lives.get(homeUid) ?? [];
  return soul.some((now, index) => {
    const before = soul[index - 1];
    const isChange = before !== undefined && now.pod.generation > before.pod.generation;
    return isChange && now.at <= at + run.skewMs && now.at >= at - run.settleMs;
  });
}
