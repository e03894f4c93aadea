/** What the state of a ForeignCluster means to a person who waits; pure. */
import type { ForeignCluster, PeeringState } from '../../api/foreign-cluster.ts';
import { FOREIGN_CLUSTER_REASONS as REASONS } from '../../api/foreign-cluster.ts';
import { idOf } from './foreign-clusters.ts';

export type Direction = 'outgoing' | 'incoming';
export const DIRECTIONS: readonly Direction[] = ['outgoing', 'incoming'];

/** One line; the same line again is not worth showing. */
export function stateLine(cluster: ForeignCluster | undefined, directions: readonly Direction[]): string {
  if (cluster === undefined) return 'gone';
  const link = cluster.status?.link?.connected === true ? 'link up' : 'no link';
  return [link, ...directions.map((direction) => `${direction} ${text(cluster.status?.[direction])}`)].join(
    '; ',
  );
}

function text({ phase = 'None', reason, message }: Partial<PeeringState> = {}): string {
  const why = reason === undefined || reason === REASONS.ok ? '' : ` (${reason})`;
  return `${phase}${why}${message === undefined || message === '' ? '' : `: ${message}`}`;
}

/** `token`: the provider wants one, and we have none to show. `impossible`: only a person can correct it. */
export type Outcome = 'established' | 'denied' | 'approval' | 'token' | 'impossible';

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
  if (spec?.outgoing === 'Disabled') {
    const isThere = status?.link?.connected === true || spec.incoming === 'Disabled';
    return isThere ? 'established' : undefined;
  }
  if (lacksToken(cluster)) return 'token';
  return outcomeOfState(status?.outgoing, isPatient ? before : undefined);
}

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
    ? `its offer waits for your word: tributary approve advertisement ${idOf(cluster) ?? ''}`
    : `its administrator has to approve, over there: tributary approve peeringrequest ${ownClusterID ?? 'OUR_CLUSTER_ID (see: tributary id)'}`;
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
