import type { Clock } from '../lib/clock.ts';
import { abortError, whenAborted } from '../lib/deadline.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { VirtualNodeAgent } from './virtual-node.ts';

const RETRY_MS = 2_000;

interface KeepServingOptions {
  /** Makes the next agent. */
  open: () => VirtualNodeAgent;
  /** The agent that was made last has stopped. */
  close: () => void;
  /** Default: the log. Whoever throws ends it. */
  onFailure?: (error: unknown) => void;
  onStarted?: () => void;
  clock: Clock;
  log: Logger;
}

/**
 * Serves one virtual node of a process that has more to do, until the signal fires: whoever loses it to another agent stands by
 * for it anew. A failed start is tried again, as a pod's would be.
 */
export async function keepServing(options: KeepServingOptions, signal: AbortSignal): Promise<void> {
  const { open, close, onFailure, onStarted, clock, log } = options;
  const failed =
    onFailure ?? ((error: unknown) => log.error('the agent could not start', { error: errorMessage(error) }));
  while (!signal.aborted) {
    let agent: VirtualNodeAgent | undefined;
    try {
      agent = open();
      await agent.start(signal);
      log.info('agent started');
      onStarted?.();
      await whenAborted(AbortSignal.any([signal, agent.lost]));
    } catch (error) {
      if (!signal.aborted && agent?.lost.aborted !== true) failed(error);
    } finally {
      if (agent?.lost.aborted === true)
        log.warn('another agent has taken over', { reason: errorMessage(agent.lost.reason) });
      await agent?.stop();
      close();
    }
    await clock.sleep(RETRY_MS, signal).catch(() => undefined);
  }
}

/** One of several virtual nodes of a process, as that sees it: agents follow one another. */
export class ServedNode implements Component {
  readonly name: string;
  readonly #options: Omit<KeepServingOptions, 'onFailure' | 'onStarted'>;
  readonly #stopped = new AbortController();
  readonly #failed = new AbortController();
  #agent: VirtualNodeAgent | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(name: string, options: Omit<KeepServingOptions, 'onFailure' | 'onStarted'>) {
    this.name = name;
    this.#options = options;
  }

  /** The one that serves now, or stands by; undefined before the start. */
  get agent(): VirtualNodeAgent | undefined {
    return this.#agent;
  }

  /** Fires when it cannot be served at all; the process then ends. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Resolves when it is served for the first time. */
  async start(signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#stopped.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true, signal: this.#stopped.signal });
    if (signal.aborted) onAbort();
    const started = Promise.withResolvers<void>();
    this.#running = keepServing(
      {
        ...this.#options,
        open: () => (this.#agent = this.#options.open()),
        onStarted: started.resolve,
        onFailure: (error) => {
          throw error;
        },
      },
      this.#stopped.signal,
    ).then(
      () => started.reject(abortError(this.#stopped.signal)),
      (error: unknown) => {
        started.reject(error);
        this.#failed.abort(error);
      },
    );
    await started.promise;
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('stopped'));
    await this.#running;
  }
}
