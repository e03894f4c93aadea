import type { RemoteEvent } from '../events/remote-events.ts';
import type { Clock } from '../../lib/clock.ts';
import { remember } from '../../lib/remember.ts';
import type { Outlook } from './decide.ts';

/** By then a class that binds at once has bound, or has said why not; a class that waits says so at once. */
const PATIENCE_MS = 5_000;
const MAX_REMEMBERED = 4096;

const FAILED = 'ProvisioningFailed';
const WAITS = 'WaitForFirstConsumer';

/**
 * What is to be expected of remote claims that are not bound yet. Home cannot read the foreign cluster's classes: it only sees
 * what the volume controller there says of a claim, or that nothing happens. What is forgotten is found out again.
 */
export class Outlooks {
  readonly #clock: Clock;
  /** By the UID of the remote claim, the oldest first. */
  readonly #known = new Map<string, { since: number; said?: Outlook }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heard({ podUid: uid, reason }: RemoteEvent): void {
    const said = reason === FAILED ? 'failed' : reason === WAITS ? 'waits' : undefined;
    if (said !== undefined) this.#remember(uid, { ...this.#since(uid), said });
  }

  of(uid: string): Outlook {
    const { since, said } = this.#since(uid);
    if (said !== undefined) return said;
    return this.#clock.monotonic() - since >= PATIENCE_MS ? 'waits' : 'unknown';
  }

  /** After this time at the latest `of` has an answer. */
  waitMs(uid: string): number {
    return Math.max(1, this.#since(uid).since + PATIENCE_MS - this.#clock.monotonic());
  }

  #since(uid: string): { since: number; said?: Outlook } {
    const known = this.#known.get(uid);
    return known ?? this.#remember(uid, { since: this.#clock.monotonic() });
  }

  #remember<T extends { since: number; said?: Outlook }>(uid: string, what: T): T {
    remember(this.#known, uid, what, MAX_REMEMBERED);
    return what;
  }
}
