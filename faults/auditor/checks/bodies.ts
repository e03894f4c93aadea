/** I1: each home pod has exactly one body, and never had two. I2: no body without a home pod. Pure. */
import {
  bodiesByHome,
  bodiesOf,
  type Body,
  first,
  isAnnounced,
  last,
  type Life,
  type Run,
  type Soul,
  soulsOf,
  vanishedByRestore,
} from '../history.ts';
import { hasEnded, nameOf } from '../pod-view.ts';
import { timeText, type Violation } from '../violation.ts';

const isThere = (life: Life): boolean => !last(life).isGone;

/** Home pods that must have a body now, as far as home itself does not say that they have none. */
export const liveSouls = (run: Run): Soul[] =>
  soulsOf(run).filter(({ life, side }) => {
    const { pod } = last(life);
    return isThere(life) && !pod.isEnding && !hasEnded(pod) && !pod.isOfDaemonSet && pod.node === side.node;
  });

export const presentBodies = (run: Run): Body[] => bodiesOf(run).filter(({ life }) => isThere(life));

/** What must not be so once all is settled. */
export function bodyDifferences(run: Run): Violation[] {
  const bodies = Map.groupBy(presentBodies(run), ({ homeUid }) => homeUid);
  const missing = liveSouls(run).flatMap(({ uid, life, side }): Violation[] => {
    const { pod } = last(life);
    const own = bodies.get(uid) ?? [];
    if (own.length === 1 || (own.length === 0 && pod.isRefused && pod.phase === 'Pending')) return [];
    const found = own.length === 0 ? 'none' : own.map(({ life: its }) => nameOf(last(its).pod)).join(', ');
    const what = `home pod ${nameOf(pod)} on node ${side.node} must have one remote pod in ${side.name}, and has: ${found}`;
    return [{ invariant: 'I1', what }];
  });
  return [...missing, ...orphans(run)];
}

function orphans(run: Run): Violation[] {
  return presentBodies(run).flatMap(({ homeUid, life, side }): Violation[] => {
    const soul = run.home.lives.get(homeUid);
    const why = whyNoHome(soul, side.node);
    if (why === undefined) return [];
    const { pod } = last(life);
    const since = timeText(first(life).at);
    return [
      { invariant: 'I2', what: `remote pod ${nameOf(pod)} in ${side.name}, there since ${since}, ${why}` },
    ];
  });
}

function whyNoHome(soul: Life | undefined, node: string): string | undefined {
  if (soul === undefined) return 'says that it belongs to a home pod that nobody has seen';
  const { pod, isGone, at } = last(soul);
  if (isGone) return `belongs to home pod ${nameOf(pod)}, which went at ${timeText(at)}`;
  return pod.node === node
    ? undefined
    : `belongs to home pod ${nameOf(pod)}, which is on node ${pod.node ?? 'none'}`;
}

/** What must never have been so. */
export function bodyFaults(run: Run): Violation[] {
  return [...bodiesByHome(run)].flatMap(([, bodies]) =>
    bodies
      .slice(1)
      .flatMap((body, index): Violation[] => [
        ...atOnce(run, body, bodies.slice(0, index + 1)),
        ...secondBody(run, body, bodies.slice(0, index + 1)),
      ]),
  );
}

/** From when to when it was there, by each time that it came. */
function stays(life: Life): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  let from: number | undefined;
  for (const { at, isGone } of life) {
    if (isGone && from !== undefined) found.push({ from, to: at });
    from = isGone ? undefined : (from ?? at);
  }
  return from === undefined ? found : [...found, { from, to: Infinity }];
}

/** One watch tells things in their order; two watches may be apart. A home that was restored may have bound the pod anew. */
function atOnce(run: Run, body: Body, earlier: readonly Body[]): Violation[] {
  const { pod } = last(body.life);
  return earlier.flatMap((other): Violation[] => {
    const isOneWatch = other.side === body.side && last(other.life).pod.namespace === pod.namespace;
    if (other.side !== body.side && run.home.isRestored) return [];
    const slack = isOneWatch ? 0 : run.skewMs;
    const both = stays(body.life).flatMap((mine) =>
      stays(other.life).flatMap((its) => {
        const [from, to] = [Math.max(mine.from, its.from), Math.min(mine.to, its.to)];
        return to - from > slack ? [{ from, to }] : [];
      }),
    )[0];
    if (both === undefined) return [];
    const until = both.to === Infinity ? 'now' : timeText(both.to);
    const what = `two remote pods of home pod ${body.homeUid} at once, from ${timeText(both.from)} to ${until}: ${nameOf(last(other.life).pod)} in ${other.side.name} and ${nameOf(pod)} in ${body.side.name}`;
    return [{ invariant: 'I1', what }];
  });
}

function secondBody(run: Run, body: Body, earlier: readonly Body[]): Violation[] {
  const unexcused = earlier.find((other) => !isAnnounced(run, other) && !vanishedByRestore(other));
  if (unexcused === undefined || run.home.isRestored) return [];
  const [old, pod] = [last(unexcused.life).pod, last(body.life).pod];
  const what = `home pod ${body.homeUid} got another remote pod at ${timeText(first(body.life).at)}, ${nameOf(pod)} in ${body.side.name}, after ${nameOf(old)}, whose loss nobody has announced`;
  return [{ invariant: 'I1', what }];
}
