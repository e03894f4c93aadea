import type { Lease } from '../api/wire.ts';
import type { Clock } from '../lib/clock.ts';

/** So long after the home's return a remote pod that is not there may still be one that the guardian is making anew. */
const SETTLE_MS = 15_000;
/** For longer than this nobody waits for a Lease that cannot be renewed. */
const UNSURE_MS = 30_000;
/** How soon somebody who has to wait for the first renewal asks again. */
const ASK_AGAIN_MS = 1_000;
const DEFAULT_DURATION_MS = 40_000;

/**
 * Whether the home counts as away over there, and since when it has been back. The guardian may be between the deletion of a
 * pod and its re-creation when the home returns, so for a while after a gap in the renewals losses are not believed.
 */
export class HomeReturn {
  readonly #clock: Clock;
  #durationMs = DEFAULT_DURATION_MS;
  /** False where no Lease is, and so no guardian; undefined before the first look. */
  #isGuarded: boolean | undefined;
  /** Monotonic, as all times here. */
  #renewedAt = -Infinity;
  /** The first renewal after the last gap. */
  #backSince = -Infinity;
  /** When somebody first asked in vain in the gap that lasts. */
  #askedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isAway(): boolean {
    return this.#clock.monotonic() - this.#renewedAt >= this.#durationMs;
  }

  /** The Lease as it was read: another agent of this home, or an earlier process, may have renewed it. */
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

  /** How long a loss is not to be believed yet; bounded, whatever becomes of the Lease. */
  patienceMs(): number {
    if (this.#isGuarded === false) return 0;
    const now = this.#clock.monotonic();
    if (!this.isAway) return Math.max(0, Math.ceil(this.#backSince + SETTLE_MS - now));
    this.#askedAt ??= now;
    return now - this.#askedAt >= UNSURE_MS ? 0 : ASK_AGAIN_MS;
  }
}

/**
 * How long ago the Lease was renewed, and for how long it has been without a gap (`acquireTime` is kept from one renewal to the
 * next): by wall clocks, for all who write it are of this home. What cannot be, such as a time to come, counts
 * as never renewed, or as just begun: the side on which one waits.
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
