import type { Clock } from '../../lib/clock.ts';
import { Pace, type PaceOptions } from '../../lib/pace.ts';
import type { ForeignClusterFacts } from './conditions.ts';
import { isDiscovered } from './foreign-cluster.ts';

/**
 * Links that come and go, and other names and endpoints in each hello, would each be a write. Of a peer that a person knows, what
 * is shown is half a minute old at most, also where somebody peers and parts with it again and again.
 */
export const STATUS_PACES: Record<'known' | 'strangers', Omit<PaceOptions, 'clock'>> = {
  known: { free: 120, baseMs: 1_000, quietMs: 5_000 },
  // Identities cost nothing, so all strangers share one rate besides.
  strangers: { free: 12, baseMs: 2_000, quietMs: 60_000, all: { burst: 500, perSecond: 2 } },
};

/** How often the status of each ForeignCluster may be written. */
export class StatusPaces {
  readonly #known: Pace;
  readonly #strangers: Pace;

  constructor(clock: Clock) {
    this.#known = new Pace({ clock, ...STATUS_PACES.known });
    this.#strangers = new Pace({ clock, ...STATUS_PACES.strangers });
  }

  /** How long to wait before its status may be written, in milliseconds; 0: it may be now, and counts as written. */
  turn(seen: ForeignClusterFacts): number {
    const pace = isStranger(seen) ? this.#strangers : this.#known;
    return pace.turn(seen.cluster.metadata.uid);
  }
}

/**
 * Nobody here wants anything of it, and it was not let in. Until that is written it was: the end of a peering is shown at the pace of
 * a peer.
 */
function isStranger({ cluster, intent, outgoing, incoming }: ForeignClusterFacts): boolean {
  const { status } = cluster;
  const phases = [outgoing, incoming, status?.outgoing, status?.incoming].map(
    (side) => side?.phase ?? 'None',
  );
  const isLetIn = phases.some((phase) => !UNDECIDED.has(phase));
  return isDiscovered(cluster) && intent?.wanted !== true && !isLetIn;
}

const UNDECIDED: ReadonlySet<string> = new Set(['None', 'Pending', 'Denied']);
