/** Finds the ForeignCluster that a person means, follows it, and says what its state means to a person who waits. */
import {
  type Direction,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  foreignClusters,
  peerIDOf,
  type PeeringPhase,
  type PeeringState,
  takesNoNewPods,
} from '../../api/foreign-cluster.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Session } from './environment.ts';

export async function listClusters({ client, signal }: Session): Promise<ForeignCluster[]> {
  const { items } = await client.list(foreignClusters, { signal });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** What people call it. */
export const labelOf = ({ metadata, status }: ForeignCluster): string => status?.clusterName ?? metadata.name;

const NOBODY_KNOWN =
  'no other cluster is known here. Make it known with a ForeignCluster (spec.clusterID, spec.endpoint), or peer with it: ' +
  'tributary peer ENDPOINT';

/** By its name, else by its ClusterID, else by the name that the cluster gives itself, if only one does. Throws NotFound. */
export function findCluster(clusters: readonly ForeignCluster[], wanted: string): ForeignCluster {
  const named = clusters.find(({ metadata }) => metadata.name === wanted);
  const found = named ?? clusters.find((cluster) => peerIDOf(cluster) === wanted);
  if (found !== undefined) return found;
  const called = clusters.filter(({ status }) => status?.clusterName === wanted);
  const [only] = called;
  if (only !== undefined && called.length === 1) return only;
  if (called.length > 1) {
    const names = called.map(({ metadata }) => metadata.name).join(', ');
    throw new TributaryError(
      'NotFound',
      `several clusters call themselves "${wanted}"; give one of: ${names}`,
    );
  }
  const advice = clusters.length === 0 ? NOBODY_KNOWN : 'see: tributary peerings';
  throw new TributaryError('NotFound', `no ForeignCluster has the name or ClusterID "${wanted}"; ${advice}`);
}

/** How often an object is read while its state is waited for. */
const POLL_MS = 250;

interface Following<T, Result> {
  read: () => Promise<T>;
  /** On the monotonic clock. */
  untilMs: number;
  look: (object: T) => Result | undefined;
}

/** Reads the ForeignCluster until `look` returns something; see `followObject`. */
export const follow = async <Result>(
  name: string,
  session: Session,
  more: Omit<Following<ForeignCluster | undefined, Result>, 'read'>,
): Promise<Result | undefined> =>
  followObject(session, { ...more, read: async () => readCluster(name, session) });

/**
 * Reads an object until `look` returns something, or until the time is up: then undefined. An API server that does
 * not answer for a moment is no error.
 */
export async function followObject<T, Result>(
  { clock, signal }: Pick<Session, 'clock' | 'signal'>,
  { read, untilMs, look }: Following<T, Result>,
): Promise<Result | undefined> {
  for (;;) {
    try {
      const result = look(await read());
      if (result !== undefined) return result;
    } catch (error) {
      if (!hasCode(error, 'Unreachable', 'Unavailable', 'TooManyRequests')) throw error;
    }
    const leftMs = untilMs - clock.monotonic();
    if (leftMs <= 0) return undefined;
    await clock.sleep(Math.min(POLL_MS, leftMs), signal);
  }
}

/** For a wait: who interrupts it is told what goes on, and how to end that. */
export const orTell =
  ({ io, signal }: Pick<Session, 'io' | 'signal'>, text: string) =>
  (error: unknown): never => {
    if (signal.aborted) io.err(text);
    throw error;
  };

async function readCluster(
  name: string,
  { client, signal }: Pick<Session, 'client' | 'signal'>,
): Promise<ForeignCluster | undefined> {
  return client.get(foreignClusters, { name }, { signal }).catch(ignoring('NotFound'));
}

/**
 * One line, in plain words: what is done, what is waited for and since when. What is normal does not look like a failure: a peering is
 * one-way, so the other direction is usually None. The same line again is not worth showing.
 */
export function stateLine(cluster: ForeignCluster | undefined, directions: readonly Direction[]): string {
  if (cluster === undefined) return 'gone';
  const { link } = cluster.status ?? {};
  const linked = link?.connected === true ? 'link up' : 'no link at the moment';
  return [
    linked,
    ...directions.map(
      (direction) =>
        closedText(direction, cluster.status?.[direction]) ??
        stateText(direction, cluster.status?.[direction]),
    ),
  ].join('; ');
}

const WHO: Readonly<Record<Direction, string>> = {
  outgoing: 'our pods over there',
  incoming: 'its pods here',
};

/** What stands after WHO. */
const SAID: Readonly<Record<PeeringPhase, string>> = {
  None: 'not asked for',
  Pending: 'asked for, no answer yet',
  Offered: 'offered, not decided yet',
  Accepted: 'agreed, being set up',
  Established: 'yes',
  Denied: 'denied',
  Ending: 'being ended',
};

/** Reasons for which nothing is to be done. The consumer of a one-way peering is not used by its provider. */
const NORMAL = new Set<string | undefined>([undefined, REASONS.ok, REASONS.noPolicy, REASONS.notWanted]);

const closedText = (direction: Direction, state: PeeringState | undefined): string | undefined =>
  takesNoNewPods(state) ? `${WHO[direction]}: closed: ${state?.message ?? ''}` : undefined;

function stateText(direction: Direction, state: Partial<PeeringState> = {}): string {
  const { phase = 'None', reason, message = '', since } = state;
  if (phase === 'None' && NORMAL.has(reason)) {
    if (reason === REASONS.notWanted) return `${WHO[direction]}: no`;
    return `${WHO[direction]}: ${direction === 'incoming' ? 'no, this cluster lends it nothing' : 'not yet'}`;
  }
  const about = [
    ...(since === undefined || phase === 'Established' ? [] : [`since ${since.slice(11)}`]),
    ...(NORMAL.has(reason) ? [] : [reason]),
  ].join(', ');
  const why = message === '' || phase === 'Established' ? '' : `: ${message}`;
  return `${WHO[direction]}: ${SAID[phase]}${about === '' ? '' : ` (${about})`}${why}`;
}

/**
 * `token`: the provider wants one, and we have none to show. `another`: who answers is not the one that is wanted. `impossible`: only
 * a person can correct it.
 */
export type Outcome = 'established' | 'denied' | 'approval' | 'token' | 'another' | 'impossible';

const IMPOSSIBLE = new Set<string | undefined>([REASONS.invalid, REASONS.duplicate]);

/**
 * How a wish to peer has ended, or undefined while it has not. A state that is older than the wish says nothing: the
 * controller must have seen the spec, and a denial that was there before (`before`) may be about to be overcome.
 */
export function outcomeOf(
  cluster: ForeignCluster,
  { before, isPatient }: { before: PeeringState | undefined; isPatient: boolean },
): Outcome | undefined {
  const { spec, status } = cluster;
  if (isStale(cluster)) return undefined;
  // What answered at an earlier endpoint may still be shown.
  if (!isPatient && isAnother(cluster)) return 'another';
  if (spec?.outgoing === 'Disabled') {
    const isThere = status?.link?.connected === true || spec.incoming === 'Disabled';
    return isThere ? 'established' : undefined;
  }
  if (lacksToken(cluster)) return 'token';
  return outcomeOfState(status?.outgoing, isPatient ? before : undefined);
}

/** Where discovery has found the wanted one, or it has come by itself, the endpoint may be corrected yet. */
const isAnother = ({ spec, status }: ForeignCluster): boolean =>
  spec?.clusterID !== undefined &&
  status?.answeredBy !== undefined &&
  status.answeredBy !== spec.clusterID &&
  status.link?.connected !== true &&
  (status.foundBy ?? '').split(',').every((source) => source === '' || source === 'Manual');

/** With a token, the provider may only not have read it yet. */
const lacksToken = ({ spec, status }: ForeignCluster): boolean =>
  spec?.joinTokenSecretRef === undefined && status?.outgoing?.reason === REASONS.tokenRequired;

function outcomeOfState(
  state: PeeringState | undefined,
  before: PeeringState | undefined,
): Outcome | undefined {
  if (state?.phase === 'Established') return 'established';
  if (state?.phase === 'Denied') {
    const isOld = before?.phase === 'Denied' && before.since === state.since;
    return isOld ? undefined : 'denied';
  }
  if (state?.phase === 'None' && IMPOSSIBLE.has(state.reason)) return 'impossible';
  return state?.reason === REASONS.waitingForApproval ? 'approval' : undefined;
}

/** The controller has not seen the spec yet. */
const isStale = ({ metadata, status }: ForeignCluster): boolean =>
  (status?.observedGeneration ?? 0) < (metadata.generation ?? 0);

/** Who has to do what when a person has to decide. */
export function approvalHint(cluster: ForeignCluster, ownClusterID: string | undefined): string {
  return cluster.status?.outgoing?.phase === 'Offered'
    ? `You have to take its offer: tributary approve advertisement ${peerIDOf(cluster) ?? ''}`
    : `Its administrator has to approve, over there: tributary approve peeringrequest ${usAs(ownClusterID)}`;
}

const usAs = (ownClusterID: string | undefined): string =>
  ownClusterID ?? 'OUR_CLUSTER_ID; the ClusterID is shown by tributary id';

/** What ends a denial, and who can do that; empty where only its message can tell. */
export function denialHint(cluster: ForeignCluster, ownClusterID: string | undefined): string {
  const us = usAs(ownClusterID);
  const { reason } = cluster.status?.outgoing ?? {};
  if (reason === REASONS.noPolicy) {
    return `Its administrator has to say what it lends to this cluster, over there: tributary policy share NAME --peers ${us}`;
  }
  if (reason === REASONS.denied) {
    return `Only its administrator can change that. If a person has denied it, over there: tributary approve peeringrequest ${us}`;
  }
  return '';
}

/** Nothing of it is left, as far as this side can tell. A peer that we refuse may go on asking. */
export function isEnded(cluster: ForeignCluster | undefined, directions: readonly Direction[]): boolean {
  if (cluster === undefined) return true;
  const { status } = cluster;
  if (isStale(cluster)) return false;
  return directions.every((direction) => {
    const phase = status?.[direction]?.phase ?? 'None';
    return phase === 'None' || (direction === 'incoming' && phase === 'Denied');
  });
}
