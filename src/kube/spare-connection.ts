import { type Clock, systemClock } from '../lib/clock.ts';
import type { Component } from '../lib/lifecycle.ts';
import { type Credentials, tlsTarget } from './credentials.ts';
import { dialLanded, type Landed } from './landed.ts';

/** API servers end a connection on which nothing was asked after 32 s, and one that is about to end must not be taken. */
const WAIT_MS = 20_000;
const DIAL_MS = 10_000;

interface Spare {
  /** Absent while it is being dialled. */
  connection?: Landed;
  readonly given: AbortController;
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

  /** Belongs to the caller alone. Undefined where none waits. */
  take(credentials: Credentials): Landed | undefined {
    this.use(credentials);
    const { connection, given } = this.#spare ?? {};
    if (connection === undefined) return undefined;
    this.#spare = undefined;
    given?.abort();
    return connection;
  }

  /** Where there is none yet, and these credentials are still in use. */
  prepare(credentials: Credentials): void {
    if (credentials !== this.#credentials || this.#spare !== undefined) return;
    const spare: Spare = { given: new AbortController() };
    this.#spare = spare;
    // Whoever comes next dials, and is told what is wrong.
    this.#dial(credentials, spare).catch(() => this.#drop(spare));
  }

  async #dial(credentials: Credentials, spare: Spare): Promise<void> {
    const clock = this.#clock;
    const target = tlsTarget(credentials);
    const connection = await dialLanded({ clock, target, timeoutMs: DIAL_MS, signal: spare.given.signal });
    if (spare.given.signal.aborted) return void connection.destroy();
    spare.connection = connection;
    const drop = (): void => this.#drop(spare);
    const cancel = clock.after(WAIT_MS, drop);
    // A server that speaks before it is asked, or ends the connection, makes it useless.
    connection.once('readable', drop).once('close', drop);
    const leave = (): void => {
      cancel();
      connection.off('readable', drop).off('close', drop);
    };
    spare.given.signal.addEventListener('abort', leave, { once: true });
  }

  #drop(spare: Spare): void {
    if (this.#spare === spare) this.#spare = undefined;
    spare.given.abort();
    spare.connection?.destroy();
  }
}
