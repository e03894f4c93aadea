/** Histories of pods, in few words. Times are seconds. */
import type { Absence, ClusterHistory, Observation, Run } from '../../../../faults/auditor/history.ts';
import { type Pod, podView } from '../../../../faults/auditor/pod-view.ts';

export const NODE = 'milan';
const SECOND = 1000;

export interface Shape {
  phase?: string;
  restarts?: number;
  /** Of its one container. */
  id?: string;
  isReady?: boolean;
  isEnding?: boolean;
  reason?: string;
  node?: string;
  homeUid?: string;
  namespace?: string;
  generation?: number;
  conditions?: { type: string; status: string; reason?: string }[];
  annotations?: Record<string, string>;
}

/** `by` a list, or gone. */
export interface How {
  readonly by?: 'list' | 'event';
  readonly isGone?: boolean;
}

/** What was seen of a pod, at second `at`. */
export function seen(
  at: number,
  uid: string,
  shape: Shape,
  { by = 'event', isGone = false }: How = {},
): Observation {
  return { at: at * SECOND, by, isGone, pod: podView(podOf(uid, shape, at)) };
}

function podOf(uid: string, shape: Shape, version: number): Pod {
  const { homeUid, namespace = homeUid === undefined ? 'shop' : 'tenant', generation = 1 } = shape;
  const { annotations = {}, node = homeUid === undefined ? NODE : 'worker' } = shape;
  return {
    metadata: {
      uid,
      name: uid,
      namespace,
      resourceVersion: String(version),
      generation,
      labels: homeUid === undefined ? {} : { 'tributary.dev/home-uid': homeUid },
      annotations,
      ...(shape.isEnding === true && { deletionTimestamp: 'now' }),
    },
    spec: { nodeName: node },
    status: statusOf(shape),
  };
}

function statusOf(shape: Shape): NonNullable<Pod['status']> {
  const {
    phase = 'Running',
    restarts = 0,
    id,
    isReady = phase === 'Running',
    conditions = [],
    reason,
  } = shape;
  const kind = phase === 'Running' ? 'running' : phase === 'Pending' ? 'waiting' : 'terminated';
  const state = { [kind]: {} };
  const container = {
    name: 'main',
    restartCount: restarts,
    ready: isReady,
    state,
    ...(id && { containerID: id }),
  };
  return {
    phase,
    ...(reason !== undefined && { reason }),
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }, ...conditions],
    containerStatuses: phase === 'Pending' && id === undefined ? [] : [container],
  };
}

export const home = (at: number, uid: string, shape: Shape = {}, how: How = {}): Observation =>
  seen(at, uid, shape, how);
/** `b1 of h1`. */
export function body(at: number, names: string, shape: Shape = {}, how: How = {}): Observation {
  const [uid = '', homeUid = ''] = names.split(' of ');
  return seen(at, uid, { ...shape, homeUid }, how);
}

interface Circumstances {
  lost?: string[];
  isRestored?: 'home' | 'milan';
  /** Of the provider, in seconds. */
  absences?: Absence[];
}

export function runOf(
  ofHome: readonly Observation[],
  ofProvider: readonly Observation[],
  { lost = [], isRestored, absences = [] }: Circumstances = {},
): Run {
  const cluster = (name: 'home' | 'milan', all: readonly Observation[]): ClusterHistory => ({
    name,
    lives: Map.groupBy(all, ({ pod }) => pod.uid),
    absences:
      name === 'home'
        ? []
        : absences.map((one) => ({ ...one, from: one.from * SECOND, to: one.to * SECOND })),
    isRestored: isRestored === name,
  });
  const namespaces = [{ home: 'shop', tenant: 'tenant' }];
  return {
    home: cluster('home', ofHome),
    sides: [{ name: 'milan', node: NODE, namespaces, cluster: cluster('milan', ofProvider) }],
    lost: new Set(lost),
    skewMs: 2 * SECOND,
    settleMs: 10 * SECOND,
  };
}

export const GONE: How = { isGone: true };
export const LISTED: How = { by: 'list' };
