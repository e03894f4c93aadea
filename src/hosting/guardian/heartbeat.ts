import type { Clock } from '../../lib/clock.ts';

/**
 * Whether a home is there. `Unknown`: it has never renewed its Lease, or we have not watched for long enough to say. `Late`: half
 * of the duration of its Lease has passed. Nothing may be done for it yet, but its pods must be watched from now on.
 */
export type HomeState = 'Unknown' | 'Present' | 'Late' | 'Away';

/** What a Lease shows of its holder. */
export interface Pulse {
  /** Changes with each renewal; undefined: never renewed. */
  mark: string | undefined;
  /** The duration of the Lease. */
  seconds: number;
}

/** Bounds of the duration, whatever a home writes: it is neither given up at once nor believed for ever. */
const SECONDS = { least: 10, most: 300 };

/** The part of the duration after which a home is late. It renews after a third, so one renewal is overdue. */
const LATE = 1 / 2;

/** Whether one home is there, by the renewals of all its Leases together. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #changed: () => void;
  /** By namespace; empty for a Lease that was not renewed yet. */
  readonly #marks = new Map<string, string>();
  #durationMs = SECONDS.least * 1000;
  /** When a Lease was last renewed, monotonic milliseconds. */
  #movedAt = 0;
  #state: HomeState = 'Unknown';
  #cancel: (() => void) | undefined;
  #isStopped = false;

  /** `changed` is called when the state changes. */
  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get state(): HomeState {
    return this.#state;
  }

  /** The mark of each Lease that was ever renewed, by namespace. */
  get marks(): Record<string, string> {
    return Object.fromEntries([...this.#marks].filter(([, mark]) => mark !== ''));
  }

  /** What a Lease shows now. The first that we see may be old; only a change shows that the home is there. */
  heard(namespace: string, { mark, seconds }: Pulse): void {
    const known = this.#marks.get(namespace);
    if (known === (mark ?? '') || this.#isStopped) return;
    this.#marks.set(namespace, mark ?? '');
    if (mark === undefined) return;
    this.#durationMs = bounded(seconds) * 1000;
    this.#movedAt = this.#clock.monotonic();
    if (known !== undefined) this.#become('Present');
    if (this.#cancel === undefined) this.#arm(this.#durationMs * LATE);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(delayMs: number): void {
    this.#cancel = this.#clock.after(delayMs, () => this.#look());
  }

  /** One timer serves all renewals: it looks how long ago the last was, and waits for the rest of the time. */
  #look(): void {
    const silentMs = this.#clock.monotonic() - this.#movedAt;
    const lateMs = this.#durationMs * LATE;
    this.#cancel = undefined;
    if (silentMs >= this.#durationMs) {
      this.#become('Away');
      return;
    }
    this.#arm(silentMs < lateMs ? lateMs - silentMs : this.#durationMs - silentMs);
    if (silentMs >= lateMs && this.#state !== 'Away') this.#become('Late');
  }

  #become(state: HomeState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#changed();
  }
}

const bounded = (seconds: number): number =>
  Number.isFinite(seconds) ? Math.min(SECONDS.most, Math.max(SECONDS.least, seconds)) : SECONDS.least;
