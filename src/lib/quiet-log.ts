import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';

export interface QuietLogOptions {
  log: Logger;
  clock: Clock;
  /** How long the same thing is not said again. Default 10 min. */
  windowMs?: number;
  /** How many different things are said in that time. Default 64. */
  maxKeys?: number;
}

interface Said {
  atMs: number;
  suppressed: number;
}

const OTHERS = '';

/** For what strangers can cause as often as they like: each cause is logged once, then only counted for a while. */
export class QuietLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #maxKeys: number;
  readonly #said = new Map<string, Said>();

  constructor({ log, clock, windowMs = 600_000, maxKeys = 64 }: QuietLogOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#windowMs = windowMs;
    this.#maxKeys = maxKeys;
  }

  /** `key` names the cause and who is behind it; it must not hold anything that changes with each attempt. */
  warn(key: string, message: string, fields: LogFields = {}): void {
    const count = this.#count(key);
    if (count !== undefined) this.#log.warn(message, { ...fields, ...(count > 0 && { suppressed: count }) });
  }

  info(key: string, message: string, fields: LogFields = {}): void {
    const count = this.#count(key);
    if (count !== undefined) this.#log.info(message, { ...fields, ...(count > 0 && { suppressed: count }) });
  }

  /** How often it was not said since it was last said; undefined when it is not to be said now. */
  #count(key: string): number | undefined {
    const now = this.#clock.monotonic();
    if (!this.#said.has(key) && key !== OTHERS && this.#isFull(now)) {
      if (this.#count(OTHERS) !== undefined) this.#log.warn('more causes than are logged one by one');
      return undefined;
    }
    const said = this.#said.get(key);
    if (said !== undefined && now - said.atMs < this.#windowMs) {
      said.suppressed++;
      return undefined;
    }
    this.#said.set(key, { atMs: now, suppressed: 0 });
    return said?.suppressed ?? 0;
  }

  #isFull(now: number): boolean {
    if (this.#said.size < this.#maxKeys) return false;
    for (const [key, { atMs }] of this.#said) if (now - atMs >= this.#windowMs) this.#said.delete(key);
    return this.#said.size >= this.#maxKeys;
  }
}
