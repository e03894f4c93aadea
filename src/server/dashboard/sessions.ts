/** Who is signed in. In memory only: a restart of the role signs everybody out. */
import { createHash, randomBytes } from 'node:crypto';

import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { DashboardVisitor } from './ports.ts';

export interface SessionLimits {
  /** At once; who comes when there are more takes the place of the one that was quiet the longest. */
  sessions: number;
  /** Without a request or an open stream. */
  idleMs: number;
  totalMs: number;
}

export const SESSION_LIMITS: SessionLimits = {
  sessions: 32,
  idleMs: 30 * 60_000,
  totalMs: 8 * 3_600_000,
};

export interface Session {
  readonly visitor: DashboardVisitor;
  /** Fires when the session ends. */
  readonly ended: AbortSignal;
}

interface Held extends Session {
  readonly abort: AbortController;
  readonly began: number;
  usedAt: number;
  streams: number;
}

/** Only the hash is kept: who reads the memory of a lookup table by its timing learns nothing of an ID. */
const hashOf = (id: string): string => createHash('sha256').update(id).digest('base64');

export class Sessions {
  readonly #options: Basics & { limits: SessionLimits };
  readonly #held = new Map<string, Held>();

  constructor(options: Basics & { limits: SessionLimits }) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Returns the ID for the cookie. */
  begin(visitor: DashboardVisitor): string {
    this.sweep();
    if (this.#held.size >= this.#options.limits.sessions) this.#end(this.#quietest());
    const id = randomBytes(32).toString('base64url');
    const now = this.#options.clock.monotonic();
    const abort = new AbortController();
    this.#held.set(hashOf(id), { visitor, abort, ended: abort.signal, began: now, usedAt: now, streams: 0 });
    return id;
  }

  find(id: string | undefined): Session | undefined {
    this.sweep();
    const session = id === undefined ? undefined : this.#held.get(hashOf(id));
    if (session !== undefined) session.usedAt = this.#options.clock.monotonic();
    return session;
  }

  /** While a stream is open its session is not idle. The returned function says that it is closed. */
  streaming(session: Session): (() => void) | undefined {
    const held = [...this.#held.values()].find((one) => one === session);
    if (held === undefined || held.streams >= MOST_STREAMS) return undefined;
    held.streams++;
    return () => {
      held.streams--;
      held.usedAt = this.#options.clock.monotonic();
    };
  }

  end(session: Session): void {
    for (const [key, held] of this.#held) if (held === session) this.#end(key);
  }

  endAll(): void {
    for (const key of this.#held.keys()) this.#end(key);
  }

  /** Ends those whose time is over. */
  sweep(): void {
    const { clock, limits } = this.#options;
    const now = clock.monotonic();
    for (const [key, { began, usedAt, streams }] of this.#held) {
      if (now - began >= limits.totalMs || (streams === 0 && now - usedAt >= limits.idleMs)) this.#end(key);
    }
  }

  #quietest(): string {
    const order = [...this.#held].toSorted(([, a], [, b]) => a.streams - b.streams || a.usedAt - b.usedAt);
    return order[0]?.[0] ?? '';
  }

  #end(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    held.abort.abort();
    held.visitor.close().catch((error: unknown) => {
      this.#options.log.warn('a session of the dashboard did not close', { error: errorMessage(error) });
    });
  }
}

/** Of one session: pages that are open at the same time. */
const MOST_STREAMS = 6;
