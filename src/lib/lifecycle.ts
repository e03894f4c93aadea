import { breathOf } from './breath.ts';
import type { Clock } from './clock.ts';
import { errorMessage } from './errors.ts';
import { Subscriptions } from './listeners.ts';
import type { Logger } from './log.ts';

/** Something with a life: constructed without side effects, started once, stopped once. */
export interface Component {
  readonly name: string;
  /** Returns, or resolves, when the component is ready to be relied on. */
  start?(signal: AbortSignal): void | Promise<void>;
  /** Returns, or resolves, when everything it started is gone. Called at most once, also after a failed start. */
  stop?(): void | Promise<void>;
}

/** Work beside all others: runs from the start of a component to its stop. */
export class Background {
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;

  run(work: (signal: AbortSignal) => Promise<void>): void {
    this.#running = work(this.#abort.signal);
  }

  /** Ends the work and waits for its end. Bound, so that a component can hand it on as its own. */
  readonly stop = async (): Promise<void> => {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
  };
}

/** A component that subscribes when it is started, and ends that when it is stopped. */
export function subscribing(name: string, subscribe: () => readonly (() => void)[]): Component {
  const subscriptions = new Subscriptions();
  return {
    name,
    start: () => subscriptions.add(...subscribe()),
    stop: () => subscriptions.end(),
  };
}

export interface LifecycleOptions {
  clock: Clock;
  log: Logger;
  /** For all stops together; a component that takes longer is left behind and named. */
  stopDeadlineMs: number;
}

/**
 * Starts components in the order given, each one ready before the next, and stops them in reverse under one
 * deadline. A failed start stops what had been started.
 */
export class Lifecycle {
  readonly #components: readonly Component[];
  readonly #options: LifecycleOptions;
  readonly #started: Component[] = [];
  readonly #abort = new AbortController();
  #current: string | undefined;

  constructor(components: readonly Component[], options: LifecycleOptions) {
    this.#components = components;
    this.#options = options;
  }

  /** The component being started, for health answers while starting; undefined when all are up. */
  get starting(): string | undefined {
    return this.#current;
  }

  get order(): string[] {
    return this.#components.map((component) => component.name);
  }

  async start(signal: AbortSignal): Promise<void> {
    const stopAll = (): void => this.#abort.abort(signal.reason);
    // Until it has stopped: the signal may outlive it by far.
    signal.addEventListener('abort', stopAll, { once: true, signal: this.#abort.signal });
    const { clock, log } = this.#options;
    const breath = breathOf(clock);
    for (const component of this.#components) {
      // Many that are ready at once would start in one turn of the event loop, and hold up those that run already.
      const rest = breath.due();
      if (rest !== undefined) await rest;
      signal.throwIfAborted();
      this.#current = component.name;
      this.#started.push(component);
      const began = clock.monotonic();
      await component.start?.(this.#abort.signal);
      log.debug('component started', {
        component: component.name,
        ms: Math.round(clock.monotonic() - began),
      });
    }
    this.#current = undefined;
  }

  async stop(): Promise<void> {
    const { clock, log, stopDeadlineMs } = this.#options;
    const deadline = clock.monotonic() + stopDeadlineMs;
    for (const component of this.#started.toReversed()) {
      const left = Math.max(0, deadline - clock.monotonic());
      try {
        await withDeadline(clock, left, component.stop?.());
      } catch (error) {
        log.warn('component did not stop cleanly', {
          component: component.name,
          error: errorMessage(error),
        });
      }
    }
    this.#started.length = 0;
    this.#abort.abort(new Error('stopped'));
  }
}

async function withDeadline(clock: Clock, ms: number, work: void | Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(new Error(`not stopped within ${Math.round(ms)} ms`)));
  try {
    await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
