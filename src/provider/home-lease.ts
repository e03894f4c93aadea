import { HOME_LEASE } from '../api/names.ts';
import { leases } from '../api/resources.ts';
import type { Lease } from '../api/wire.ts';
import type { Basics } from '../lib/basics.ts';
import type { KubeClient } from '../kube/client.ts';
import { microTime } from '../kube/lease.ts';
import type { HomeHistory } from './restored/home-history.ts';
import { holderText, isLost, type Mark, markOfForeign, parseHolder } from './restored/marks.ts';
import { type Random, spreadMs, systemRandom } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { errorMessage, hasCode, ignoring } from '../lib/errors.ts';
import { untilMomentMs } from '../lib/grid.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import { Pause } from '../lib/pause.ts';

export interface HomeLeaseOptions extends Basics {
  foreign: KubeClient;
  /** Namespaces in which the Lease may be, in any order. */
  tenantNamespaces: () => readonly string[];
  /** Name of the holder; agents of one home take turns. */
  identity: string;
  /** Whether the home API server answers. While it does not, the home counts as away, although this program runs. */
  homeAnswers: () => boolean;
  /** Of home; what this Lease notes of it, and it of this Lease. Default: nothing is noted. */
  history?: HomeHistory;
  /** The foreign API server has taken a renewal. */
  onRenewed?: () => void;
  /** The foreign cluster was restored from a backup. */
  onRestored?: () => void;
  random?: Random;
}

const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 5_000;
/** After a failure, and while the home does not answer. */
const SOON_MS = 2_500;
/** The Lease is made soon after its namespace; an older foreign cluster has none. Doubles from look to look. */
const FIRST_LOOK_MS = 1_000;
const SLOWEST_LOOK_MS = 60_000;
const DEFAULT_DURATION_S = 40;
const LONGEST_DURATION_S = 3_600;
const SHORTEST_DURATION_S = 3;

/**
 * Shows the foreign cluster's guardian that the home is there, by renewing the Lease that the foreign cluster has made in each
 * tenant namespace; one is enough. Nothing else depends on it: where it cannot be renewed, everything works as without it.
 */
export class HomeLease implements Component {
  readonly name = 'home lease';
  readonly #options: HomeLeaseOptions;
  readonly #return: HomeReturn;
  readonly #background = new Background();
  /** Lets the Lease expire by itself: an update of the agent is no absence. */
  readonly stop: Background['stop'] = this.#background.stop;
  readonly #pause: Pause;
  /** As last read or written. */
  #known: Lease | undefined;
  /** How far its renewals have come, as last read or written, here or by an earlier process. */
  #mark: Mark | undefined;
  /** What was counted in a history that the foreign cluster has lost. */
  #lostCount = 0;
  #looks = 0;
  #failures = 0;

  constructor(options: HomeLeaseOptions) {
    this.#options = options;
    this.#return = new HomeReturn(options.clock);
    this.#pause = new Pause(options.clock);
  }

  /** For how long the loss of a remote pod is not to be believed yet: the guardian may be making it anew. */
  patienceMs(): number {
    return this.#return.patienceMs();
  }

  /** Returns at once; the foreign cluster may be away for long. */
  start(): void {
    this.#background.run(async (signal) => this.#run(signal));
  }

  /** To be called when it may now be possible to find or renew the Lease. */
  wake(): void {
    this.#looks = 0;
    this.#pause.end();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = await this.#turn(signal);
      await this.#pause.for(waitMs, signal);
    }
  }

  /** Milliseconds until the next. */
  async #turn(signal: AbortSignal): Promise<number> {
    const { clock, log, random = systemRandom, homeAnswers, history } = this.#options;
    // What home notes of this Lease is read before it is written.
    if (!homeAnswers() || history?.isRead === false) return SOON_MS;
    using deadline = startDeadline(clock, TIMEOUT_MS, this.name, signal);
    try {
      const lease = await this.#renew(deadline.signal);
      this.#failures = 0;
      if (lease !== undefined) {
        this.#options.onRenewed?.();
        return untilMomentMs(clock, Math.min(INTERVAL_MS, durationMs(lease) / 3));
      }
      this.#return.unguarded();
      return spreadMs(Math.min(SLOWEST_LOOK_MS, FIRST_LOOK_MS * 2 ** Math.min(this.#looks++, 10)), random);
    } catch (error) {
      this.#known = undefined;
      if (!signal.aborted) {
        // It will not pass by itself: the foreign cluster will take this cluster for away.
        const isRefused = this.#failures === 0 && hasCode(error, 'Forbidden', 'Invalid');
        const message = 'cannot renew the Lease that shows the foreign cluster that this cluster is there';
        log[isRefused ? 'warn' : 'debug'](message, { error: errorMessage(error) });
      }
      return this.#failures++ === 0 ? SOON_MS : INTERVAL_MS;
    }
  }

  /** Undefined when there is none. */
  async #renew(signal: AbortSignal): Promise<Lease | undefined> {
    const known = this.#known;
    const again = known && (await this.#renewKnown(known, signal));
    if (again !== undefined) return again;
    const found = await this.#find(signal);
    this.#known = found;
    const wasRestored = await this.#compare(found, signal);
    if (found === undefined) return undefined;
    this.#looks = 0;
    const wasAway = this.#return.isAway;
    this.#return.seen(found, durationMs(found));
    // Another agent of this home was faster: that is as good.
    const isSame = found.metadata.uid === known?.metadata.uid;
    const isDone = isSame && !wasAway && !wasRestored && found.spec?.renewTime !== known?.spec?.renewTime;
    return isDone ? found : this.#write(found, signal);
  }

  /** Undefined when somebody else has written it, or it is gone or no more ours. */
  async #renewKnown(known: Lease, signal: AbortSignal): Promise<Lease | undefined> {
    if (!this.#namespaces().includes(known.metadata.namespace ?? '')) return undefined;
    return this.#write(known, signal).catch(ignoring('Conflict', 'NotFound', 'Forbidden'));
  }

  async #write(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { foreign, identity, history, clock } = this.#options;
    const now = microTime(clock.now());
    const before = lease.spec;
    const holderIdentity = holderText(identity, history?.mark);
    const leaseTransitions = Math.max(markOfForeign(lease).count, this.#lostCount) + 1;
    const acquireTime = this.#return.isAway ? now : (before?.acquireTime ?? now);
    // The foreign cluster says how long it lasts.
    const counted = history === undefined ? {} : { leaseTransitions };
    const spec = { ...before, holderIdentity, renewTime: now, acquireTime, ...counted };
    const written = await foreign.replace(leases, { ...lease, spec }, { signal });
    this.#known = written;
    this.#lostCount = 0;
    this.#note(written);
    this.#return.renewed();
    return written;
  }

  /** Whether the foreign cluster has lost what was written; and whether home has, of which this Lease tells. */
  async #compare(found: Lease | undefined, signal: AbortSignal): Promise<boolean> {
    const { history, onRestored } = this.#options;
    if (history === undefined) return false;
    await history.compare(parseHolder(found?.spec?.holderIdentity), signal);
    if (found === undefined) return false;
    const known = this.#mark ?? history.foreign;
    const wasRestored = isLost(known, markOfForeign(found));
    if (wasRestored) {
      this.#lostCount = Math.max(this.#lostCount, known?.count ?? 0);
      onRestored?.();
    }
    this.#note(found);
    return wasRestored;
  }

  #note(lease: Lease): void {
    this.#mark = markOfForeign(lease);
    const { history } = this.#options;
    // Until it is counted on, home still knows more than this Lease.
    if (history !== undefined && this.#lostCount === 0) history.foreign = this.#mark;
  }

  /** The Lease in the first namespace that has one: all agents of this home look in the same order. */
  async #find(signal: AbortSignal): Promise<Lease | undefined> {
    for (const namespace of this.#namespaces()) {
      try {
        return await this.#options.foreign.get(leases, { namespace, name: HOME_LEASE }, { signal });
      } catch (error) {
        if (!hasCode(error, 'NotFound', 'Forbidden')) throw error;
      }
    }
    return undefined;
  }

  #namespaces(): string[] {
    return [...new Set(this.#options.tenantNamespaces())].toSorted();
  }
}

/** Bounded: what a foreign cluster says must make us neither too fast nor too slow. */
function durationMs({ spec }: Lease): number {
  const seconds: unknown = spec?.leaseDurationSeconds;
  const isGood = typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds > 0;
  const bounded = isGood
    ? Math.min(LONGEST_DURATION_S, Math.max(SHORTEST_DURATION_S, seconds))
    : DEFAULT_DURATION_S;
  return bounded * 1000;
}

/** So long after the home's return, the guardian may still be making a missing remote pod anew. */
const SETTLE_MS = 15_000;
/** At most so long anybody waits for a Lease that cannot be renewed. */
const UNSURE_MS = 30_000;
/** Whoever has to wait for the first renewal asks again after so long. */
const ASK_AGAIN_MS = 1_000;

/**
 * Whether the home counts as away over there, and since when it has been back. When the home returns, the guardian may be
 * between the deletion of a pod and its re-creation, so for a while after a gap in the renewals no loss is believed.
 */
class HomeReturn {
  readonly #clock: Clock;
  #durationMs = DEFAULT_DURATION_S * 1000;
  /** False where there is no Lease, and so no guardian; undefined before the first look. */
  #isGuarded: boolean | undefined;
  /** Monotonic, as all times here. */
  #renewedAt = -Infinity;
  /** The first renewal after the last gap. */
  #backSince = -Infinity;
  /** When somebody first asked in vain during the present gap. */
  #askedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isAway(): boolean {
    return this.#clock.monotonic() - this.#renewedAt >= this.#durationMs;
  }

  /** The Lease was read: another agent of this home, or an earlier process, may have renewed it. */
  seen(lease: Lease, durationMs: number): void {
    const { renewedMs, hereForMs } = presenceOf(lease, this.#clock.now());
    const now = this.#clock.monotonic();
    this.#durationMs = durationMs;
    this.#isGuarded = true;
    if (renewedMs >= durationMs || now - renewedMs <= this.#renewedAt) return;
    if (this.isAway) this.#backSince = now - hereForMs;
    this.#renewedAt = now - renewedMs;
    this.#askedAt = undefined;
  }

  /** We have renewed it. */
  renewed(): void {
    const now = this.#clock.monotonic();
    if (this.isAway) this.#backSince = now;
    this.#renewedAt = now;
    this.#isGuarded = true;
    this.#askedAt = undefined;
  }

  /** There is no Lease: nothing is made anew over there. */
  unguarded(): void {
    this.#isGuarded = false;
  }

  /** For how long a loss is not to be believed yet; bounded, whatever happens to the Lease. */
  patienceMs(): number {
    if (this.#isGuarded === false) return 0;
    const now = this.#clock.monotonic();
    if (!this.isAway) return Math.max(0, Math.ceil(this.#backSince + SETTLE_MS - now));
    this.#askedAt ??= now;
    return now - this.#askedAt >= UNSURE_MS ? 0 : ASK_AGAIN_MS;
  }
}

/**
 * How long ago the Lease was renewed, and for how long without a gap (`acquireTime` is kept from one renewal to the next): by
 * wall clocks, since only this home writes it. Impossible times, such as one in the future, count as never renewed, or as just
 * begun, so that one rather waits.
 */
function presenceOf({ spec }: Lease, nowMs: number): { renewedMs: number; hereForMs: number } {
  const age = (time: string | undefined): number => {
    const ms = nowMs - Date.parse(time ?? '');
    return Number.isFinite(ms) && ms >= 0 ? ms : Number.NaN;
  };
  const renewedMs = age(spec?.renewTime);
  const hereForMs = age(spec?.acquireTime);
  return {
    renewedMs: Number.isNaN(renewedMs) ? Infinity : renewedMs,
    hereForMs: Number.isNaN(hereForMs) ? 0 : hereForMs,
  };
}
