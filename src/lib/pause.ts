import type { Clock } from './clock.ts';

/**
 * The waits between the turns of one loop; each may be ended early. (`AbortSignal.any` with a signal that lives as long as the process
 * would do, but leaves something behind for each wait.)
 */
export class Pause {
  readonly #clock: Pick<Clock, 'after'>;
  #resolve: (() => void) | undefined;

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** Ends the present wait; between two of them it does nothing. */
  end(): void {
    this.#resolve?.();
  }

  /** Resolves after `ms` milliseconds, when it is ended, or when the signal fires. One at a time. */
  async for(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    const cancel = this.#clock.after(ms, resolve);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#resolve = resolve;
    await promise;
    this.#resolve = undefined;
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}
