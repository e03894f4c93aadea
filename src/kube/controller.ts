import { type Random, systemRandom } from '../lib/backoff.ts';
import type { Basics } from '../lib/basics.ts';
import { type Breath, breathOf } from '../lib/breath.ts';
import { type TributaryError, errorCode, errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { KeyedQueue } from '../lib/queue.ts';
import type { ClusterBasics } from './client.ts';

/** The counters of a controller. An adapter to a metrics library is outside of this folder. */
export interface ControllerMetrics {
  reconciled(name: string, outcome: ReconcileOutcome, seconds: number): void;
  depth(name: string, depth: number): void;
}

export const RECONCILE_OUTCOMES = ['ok', 'requeue', 'conflict', 'terminal', 'error'] as const;
export type ReconcileOutcome = (typeof RECONCILE_OUTCOMES)[number];

export interface ReconcileResult {
  /** The controller reconciles the key again after this time, even if nothing changes. */
  requeueAfterMs?: number;
}

/** What a part is given that runs controllers on one cluster. */
export interface ControllerBasics extends ClusterBasics {
  metrics?: ControllerMetrics;
}

export interface ControllerOptions extends Basics {
  name: string;
  /** How many keys are reconciled at the same time; the same key never runs twice at once. */
  concurrency: number;
  /**
   * Makes the objects of one key as they should be. It reads the current state, writes each object at most once, and
   * remembers nothing. If it throws, it is called again; how soon depends on the error's code.
   */
  reconcile: (key: string, context: { signal: AbortSignal }) => Promise<ReconcileResult | void>;
  metrics?: ControllerMetrics;
  random?: Random;
  /** Keys that share what may be slow: they leave some of the workers to others. Default: any key may take any. */
  groupOf?: (key: string) => string;
}

/** An error that no retry can cure is retried so rarely; it is, because something may have changed unnoticed. */
const TERMINAL_RETRY_MS = 5 * 60_000;

/** A queue of keys and workers that reconcile them. Feed it from informers' changes with `add`. */
export class Controller implements Component {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #log: Logger;
  readonly #queue: KeyedQueue;
  readonly #random: Random;
  readonly #breath: Breath;
  readonly #abort = new AbortController();
  /** The last message that was logged for a key, so that an error that lasts is logged only once. */
  readonly #complaints = new Map<string, string>();
  #workers: Promise<void>[] = [];

  constructor(options: ControllerOptions) {
    const { name, clock, log, random = systemRandom, concurrency, groupOf } = options;
    this.name = name;
    this.#options = options;
    this.#random = random;
    this.#breath = breathOf(clock);
    this.#log = log.named(name);
    const share = groupOf && { workers: concurrency, groupOf };
    this.#queue = new KeyedQueue({ clock, random, share });
  }

  /** Numbers of keys that wait, run or are delayed, for metrics and health. */
  get load(): { waiting: number; running: number; delayed: number; oldestAgeMs: number } {
    const { depth, running, delayed, oldestAgeMs } = this.#queue;
    return { waiting: depth, running, delayed, oldestAgeMs };
  }

  add(key: string): void {
    this.#queue.add(key);
    this.#options.metrics?.depth(this.name, this.#queue.depth);
  }

  /** For resyncs: keys that changes have added go first. */
  addSlow(key: string): void {
    this.#queue.addSlow(key);
    this.#options.metrics?.depth(this.name, this.#queue.depth);
  }

  addAfter(key: string, delayMs: number): void {
    this.#queue.addAfter(key, delayMs);
  }

  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#workers = Array.from({ length: this.#options.concurrency }, () => this.#work());
  }

  /** Takes no new key and waits for those that run; their signal fires only when `abandon` is called. */
  async stop(): Promise<void> {
    await this.#queue.close();
    await Promise.all(this.#workers);
    this.#abort.abort(new Error('stopped'));
  }

  /** Fires the signal of running reconciles, for a stop that takes too long or a lost leadership. */
  abandon(reason: Error): void {
    this.#abort.abort(reason);
  }

  async #work(): Promise<void> {
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      this.#options.metrics?.depth(this.name, this.#queue.depth);
      const rest = this.#breath.due('worker');
      if (rest !== undefined) await rest;
      await this.#one(key);
      this.#queue.done(key);
    }
  }

  async #one(key: string): Promise<void> {
    const { clock, metrics, reconcile } = this.#options;
    const began = clock.monotonic();
    let outcome: ReconcileOutcome;
    try {
      const result = await reconcile(key, { signal: this.#abort.signal });
      outcome = this.#succeeded(key, result ?? {});
    } catch (error) {
      outcome = this.#failed(key, error);
    }
    metrics?.reconciled(this.name, outcome, (clock.monotonic() - began) / 1000);
  }

  #succeeded(key: string, { requeueAfterMs }: ReconcileResult): ReconcileOutcome {
    this.#queue.forget(key);
    if (this.#complaints.delete(key)) this.#log.info('reconciled again', { key });
    if (requeueAfterMs === undefined) return 'ok';
    this.#queue.addAfter(key, requeueAfterMs);
    return 'requeue';
  }

  #failed(key: string, error: unknown): ReconcileOutcome {
    switch (errorCode(error)) {
      case 'Aborted':
        if (!this.#abort.signal.aborted) this.#queue.addRateLimited(key);
        return 'error';
      case 'Conflict':
        this.#log.debug('conflict', { key, error: errorMessage(error) });
        // Somebody wrote first; their change reaches our cache within milliseconds. The first delay is at most
        // 100 ms, and it grows, so that a conflict that lasts (a cache that lags) does not spin.
        this.#queue.addRateLimited(key);
        return 'conflict';
      case 'Invalid':
        this.#complain(key, error, TERMINAL_RETRY_MS);
        this.#queue.addAfter(key, TERMINAL_RETRY_MS, 'slow');
        return 'terminal';
      case 'TooManyRequests':
        return this.#patience(key, error as TributaryError);
      default:
        this.#complain(key, error, this.#queue.addRateLimited(key));
        return 'error';
    }
  }

  #patience(key: string, error: TributaryError): ReconcileOutcome {
    const { retryAfterMs = 0 } = error;
    // A server that asks for no wait at all, time and again, is asked ever more rarely all the same.
    this.#complain(key, error, this.#queue.addRateLimited(key, retryAfterMs * (1 + this.#random() / 4)));
    return 'error';
  }

  #complain(key: string, error: unknown, delayMs: number): void {
    const message = errorMessage(error);
    if (this.#complaints.get(key) === message) return;
    this.#complaints.set(key, message);
    // Any other error is a bug, so we also log where in the code it was thrown.
    const stack = errorCode(error) === undefined ? String((error as { stack?: unknown })?.stack) : undefined;
    const fields = { key, error: message, retryInMs: Math.round(delayMs), stack };
    if (stack === undefined) this.#log.warn('reconcile failed', fields);
    else this.#log.error('reconcile failed', fields);
  }
}
