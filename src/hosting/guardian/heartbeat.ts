import type { Clock } from '../../lib/clock.ts';

/**
 * Whether a home is there. `Unknown`: it has never renewed its Lease, or we have not watched for long enough to say. `Late`:
 * half of the time of its Lease has passed; nothing may be done for it yet, but whoever waits for more learns too late.
 */
export type HomeState = 'Unknown' | 'Present' | 'Late' | 'Away';

/** What a Lease shows of its holder. */
export interface Pulse {
  /** Another one at each renewal; undefined: never renewed. */
  mark: string | undefined;
  /** How long it lasts. */
  seconds: number;
}

/** Whatever a home writes: it is neither given up in a moment nor believed for ever. */
const SECONDS = { least: 10, most: 300 };

/** A home renews at a third of the duration at the latest: one renewal is overdue. */
const LATE = 1 / 2;

/** When the Leases of one home, together, have not moved for too long. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #changed: () => void;
  /** By namespace; empty: not renewed yet. */
  readonly #marks = new Map<string, string>();
  #durationMs = SECONDS.least * 1000;
  /** Monotonic. */
  #movedAt = 0;
  #state: HomeState = 'Unknown';
  #cancel: (() => void) | undefined;
  #isStopped = false;

  /** `changed` is called when the state is another one. */
  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get state(): HomeState {
    return this.#state;
  }

  /** What each Lease shows, by namespace; without those that were never renewed. */
  get marks(): Record<string, string> {
    return Object.fromEntries([...this.#marks].filter(([, mark]) => mark !== ''));
  }

  /** What was first seen may be old; what changes before our eyes is alive. */
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

  /** One timer for all renewals: it looks how long ago the last one was, and waits for the rest. */
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
