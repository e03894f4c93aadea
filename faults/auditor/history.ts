/** What was seen of the pods of one cluster, as a value. */
import type { PodView } from './pod-view.ts';

export interface Observation {
  /** When it was seen, milliseconds since 1970. */
  readonly at: number;
  readonly pod: PodView;
  readonly isGone: boolean;
  /** An event of a watch says what happened; a list only says what is, and what was in between is not known. */
  readonly by: 'event' | 'list';
}

/** The pod of one UID, in the order in which it was seen; never empty. */
export type Life = readonly Observation[];

/** A time in which a cluster could not be read. */
export interface Absence {
  readonly from: number;
  /** Infinity: until now. */
  readonly to: number;
  /** What happened in it was never told; otherwise it was told late. */
  readonly isGap: boolean;
}

export interface ClusterHistory {
  readonly name: string;
  readonly lives: ReadonlyMap<string, Life>;
  readonly absences: readonly Absence[];
  /** The caller has said that its etcd was restored. */
  readonly isRestored: boolean;
}

/** A provider, with what belongs to it. */
export interface Side {
  readonly name: string;
  /** The virtual node at home. */
  readonly node: string;
  readonly namespaces: readonly { readonly home: string; readonly tenant: string }[];
  readonly cluster: ClusterHistory;
}

/** All that the checks of pods look at. */
export interface Run {
  readonly home: ClusterHistory;
  readonly sides: readonly Side[];
  /** UIDs of bodies, or of their home pods, that the caller has announced as lost. */
  readonly lost: ReadonlySet<string>;
  /** How far apart two clusters may tell of things that happened in this order, milliseconds. */
  readonly skewMs: number;
  /** For how long after a gap its unseen states may still come to light, milliseconds. */
  readonly settleMs: number;
}

export const last = (life: Life): Observation => {
  const found = life.at(-1);
  if (found === undefined) throw new Error('a life without an observation');
  return found;
};
export const first = (life: Life): Observation => {
  const found = life[0];
  if (found === undefined) throw new Error('a life without an observation');
  return found;
};

/** A home pod that was bound to the virtual node of a side, in one of its namespaces. */
export interface Soul {
  readonly side: Side;
  readonly life: Life;
  readonly uid: string;
}

export function soulsOf({ home, sides }: Run): Soul[] {
  return sides.flatMap((side) => {
    const namespaces = new Set(side.namespaces.map((pair) => pair.home));
    return [...home.lives].flatMap(([uid, life]) => {
      const isOurs = life.some(({ pod }) => pod.node === side.node && namespaces.has(pod.namespace));
      return isOurs ? [{ side, life, uid }] : [];
    });
  });
}

/** A remote pod that says whose body it is. */
export interface Body {
  readonly side: Side;
  readonly life: Life;
  readonly uid: string;
  readonly homeUid: string;
}

export function bodiesOf({ sides }: Run): Body[] {
  return sides.flatMap((side) => {
    const namespaces = new Set(side.namespaces.map((pair) => pair.tenant));
    return [...side.cluster.lives].flatMap(([uid, life]) => {
      const { namespace, homeUid } = last(life).pod;
      return homeUid !== undefined && namespaces.has(namespace) ? [{ side, life, uid, homeUid }] : [];
    });
  });
}

/** The bodies of each home pod, in the order in which they were seen. */
export const bodiesByHome = (run: Run): Map<string, Body[]> =>
  Map.groupBy(
    bodiesOf(run).toSorted((a, b) => first(a.life).at - first(b.life).at),
    ({ homeUid }) => homeUid,
  );

export const isAnnounced = ({ lost }: Run, { uid, homeUid }: Pick<Body, 'uid' | 'homeUid'>): boolean =>
  lost.has(uid) || lost.has(homeUid);

/** Whether one of these clusters could not be read at some moment of that time. */
export const wasAway = (clusters: readonly ClusterHistory[], from: number, to: number): boolean =>
  clusters.some(({ absences }) => absences.some((absence) => absence.from <= to && absence.to >= from));

/** It vanished without an event, from a cluster whose etcd was restored. */
export const vanishedByRestore = ({ side, life }: Body): boolean =>
  side.cluster.isRestored && life.some(({ isGone, by }) => isGone && by === 'list');
