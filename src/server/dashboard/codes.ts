/** One-time codes: a program that holds a token lets a browser in without ever handing it the token. */
import { randomBytes } from 'node:crypto';

import type { Clock } from '../../lib/clock.ts';

const VALID_MS = 60_000;
const MOST = 8;

export class SignInCodes {
  readonly #clock: Clock;
  readonly #tokens = new Map<string, { token: string; until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  make(token: string): string {
    this.#sweep();
    // The oldest makes room: a Map keeps the order in which keys were set.
    if (this.#tokens.size >= MOST) this.#tokens.delete(this.#tokens.keys().next().value ?? '');
    const code = randomBytes(24).toString('base64url');
    this.#tokens.set(code, { token, until: this.#clock.monotonic() + VALID_MS });
    return code;
  }

  /** The token, once. */
  take(code: string): string | undefined {
    this.#sweep();
    const found = this.#tokens.get(code);
    this.#tokens.delete(code);
    return found?.token;
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [code, { until }] of this.#tokens) if (now >= until) this.#tokens.delete(code);
  }
}
