import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';

export interface QuietLogOptions {
  log: Logger;
  clock: Clock;
  /** How long the same thing is not said again. Default 10 min. */
  windowMs?: number;
  /** Of how many something is said in that time. Default 64. */
  maxSubjects?: number;
  /** How many different things are said of each. Default 16. */
  maxCauses?: number;
}

interface Said {
  atMs: number;
  suppressed: number;
}

/** Long enough to tell causes apart, and short enough to leave out times and ports. */
const CAUSE_LENGTH = 40;
const OTHERS = '';
type Level = 'info' | 'warn' | 'error';

/**
 * For what strangers can cause as often as they like: each cause is logged once for whoever is behind it, then only
 * counted for a while. A cause is the sentence and the beginning of its field `error`, `problem` or `reason`.
 */
export class QuietLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #limits: { windowMs: number; maxSubjects: number; maxCauses: number };
  readonly #subjects = new Map<string, Map<string, Said>>();

  constructor({ log, clock, windowMs = 600_000, maxSubjects = 64, maxCauses = 16 }: QuietLogOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#limits = { windowMs, maxSubjects, maxCauses };
  }

  warn(subject: string, message: string, fields: LogFields = {}): void {
    this.#say((...line) => this.#log.warn(...line), { subject, message, fields });
  }

  info(subject: string, message: string, fields: LogFields = {}): void {
    this.#say((...line) => this.#log.info(...line), { subject, message, fields });
  }

  /** The subject is in order again: its next problem is logged at once. */
  forget(subject: string): void {
    this.#subjects.delete(subject);
  }

  /** A logger for what concerns one subject. */
  logger(subject: string, name: string, fields: LogFields = {}): Logger {
    const target = this.#log.named(name, fields);
    const at =
      (level: Level) =>
      (message: string, more: LogFields = {}): void =>
        this.#say((...line) => target[level](...line), { subject, message, fields: more });
    return {
      debug: (...line) => target.debug(...line),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      named: (child, more = {}) => this.logger(subject, `${name}.${child}`, { ...fields, ...more }),
    };
  }

  #say(write: Logger['warn'], line: { subject: string; message: string; fields: LogFields }): void {
    const { message, fields } = line;
    const cause = String(fields['error'] ?? fields['problem'] ?? fields['reason'] ?? '');
    const suppressed = this.#count(line.subject, `${message} ${cause.slice(0, CAUSE_LENGTH)}`);
    if (suppressed === undefined) return;
    write(message, { ...fields, ...(suppressed > 0 && { suppressed }) });
  }

  /** How often it was not said since it was last said; undefined when it is not to be said now. */
  #count(subject: string, cause: string): number | undefined {
    const now = this.#clock.monotonic();
    const causes = this.#causesOf(subject, now);
    if (causes === undefined) return this.#others();
    if (!causes.has(cause) && causes.size >= this.#limits.maxCauses) {
      this.#forget(causes, now);
      if (causes.size >= this.#limits.maxCauses) return this.#others();
    }
    const said = causes.get(cause);
    if (said !== undefined && now - said.atMs < this.#limits.windowMs) {
      said.suppressed++;
      return undefined;
    }
    causes.set(cause, { atMs: now, suppressed: 0 });
    return said?.suppressed ?? 0;
  }

  #causesOf(subject: string, now: number): Map<string, Said> | undefined {
    const known = this.#subjects.get(subject);
    if (known !== undefined) return known;
    if (this.#subjects.size >= this.#limits.maxSubjects) {
      for (const [other, causes] of this.#subjects) {
        this.#forget(causes, now);
        if (causes.size === 0) this.#subjects.delete(other);
      }
    }
    // The place of OTHERS is kept free for it.
    if (this.#subjects.size >= this.#limits.maxSubjects && subject !== OTHERS) return undefined;
    const causes = new Map<string, Said>();
    this.#subjects.set(subject, causes);
    return causes;
  }

  #forget(causes: Map<string, Said>, now: number): void {
    for (const [cause, { atMs }] of causes) {
      if (now - atMs >= this.#limits.windowMs) causes.delete(cause);
    }
  }

  #others(): undefined {
    if (this.#count(OTHERS, OTHERS) !== undefined) {
      this.#log.warn('there are more causes than are logged one by one');
    }
    return undefined;
  }
}
