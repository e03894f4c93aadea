import { type Clock, systemClock } from '../lib/clock.ts';
import { untilAborted } from '../lib/deadline.ts';
import type { Component } from '../lib/lifecycle.ts';
import { type Credentials, tlsTarget } from './credentials.ts';
import { dialLanded, type Landed } from './landed.ts';

/** API servers end a connection on which nothing was asked after 32 s, and one that is about to end must not be taken. */
const WAIT_MS = 20_000;
const DIAL_MS = 10_000;

interface Spare {
  /** Undefined: it failed, or was dropped. */
  readonly dialled: Promise<Landed | undefined>;
  readonly dropped: AbortController;
  /** Ends its wait. */
  leave: () => void;
}

/**
 * At most one connection that waits for the next upgrade, for a while after a stream has ended: people and scripts often use exec more than
 * once. It belongs to one credential, and nothing is sent on it before it is taken.
 */
export class SpareConnection implements Component {
  readonly name = 'spare-connection';
  readonly #clock: Clock;
  #credentials: Credentials | undefined;
  #spare: Spare | undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Those in use from now on; undefined: none. What belongs to other ones is closed. */
  use(credentials: Credentials | undefined): void {
    if (credentials === this.#credentials) return;
    this.#credentials = credentials;
    if (this.#spare !== undefined) this.#drop(this.#spare);
  }

  stop(): void {
    this.use(undefined);
  }

  /**
   * Belongs to the caller alone; also while it is still being dialled, which is sooner done than a dial that begins now. Undefined where
   * there is none.
   */
  async take(credentials: Credentials, signal: AbortSignal): Promise<Landed | undefined> {
    this.use(credentials);
    const spare = this.#spare;
    if (spare === undefined) return undefined;
    this.#spare = undefined;
    spare.leave();
    try {
      return await untilAborted(spare.dialled, signal);
    } catch (error) {
      spare.dropped.abort();
      void spare.dialled.then((connection) => connection?.destroy());
      throw error;
    }
  }

  /** Where there is none yet, and these credentials are still in use. */
  prepare(credentials: Credentials): void {
    if (credentials !== this.#credentials || this.#spare !== undefined) return;
    const dropped = new AbortController();
    const { promise: dialled, resolve } = Promise.withResolvers<Landed | undefined>();
    const spare: Spare = { dialled, dropped, leave: () => undefined };
    this.#spare = spare;
    // Whoever comes next dials, and is told what is wrong.
    this.#dial(credentials, spare).then(resolve, () => {
      this.#drop(spare);
      resolve(undefined);
    });
  }

  async #dial(credentials: Credentials, spare: Spare): Promise<Landed | undefined> {
    const clock = this.#clock;
    const target = tlsTarget(credentials);
    const { signal } = spare.dropped;
    const connection = await dialLanded({ clock, target, timeoutMs: DIAL_MS, signal });
    if (signal.aborted) {
      connection.destroy();
      return undefined;
    }
    // Else somebody has taken it meanwhile.
    if (this.#spare === spare) this.#wait(spare, connection);
    return connection;
  }

  #wait(spare: Spare, connection: Landed): void {
    const drop = (): void => this.#drop(spare);
    const cancel = this.#clock.after(WAIT_MS, drop);
    // A server that speaks before it is asked, or ends the connection, makes it useless.
    connection.once('readable', drop).once('close', drop);
    spare.leave = () => {
      cancel();
      connection.off('readable', drop).off('close', drop);
    };
    spare.dropped.signal.addEventListener('abort', () => connection.destroy(), { once: true });
  }

  #drop(spare: Spare): void {
    if (this.#spare === spare) this.#spare = undefined;
    spare.leave();
    spare.dropped.abort();
  }
}
