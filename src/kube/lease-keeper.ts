import { type Random, spreadMs, systemRandom } from '../lib/backoff.ts';
import { startDeadline } from '../lib/deadline.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { untilMomentMs } from '../lib/grid.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { Pause } from '../lib/pause.ts';
import { type LeaseOptions, LeaseRecord } from './lease.ts';

export interface LeaseKeeperOptions extends LeaseOptions {
  log: Logger;
  /** Default a quarter of the duration. */
  intervalMs?: number;
  random?: Random;
  /** Called before each renewal. While it returns false, the lease is not renewed. */
  healthy?: () => boolean;
}

/**
 * Renews a Lease that nobody competes for, as a kubelet does for its node: whoever watches it sees that we live.
 * Errors are retried at the next turn, sooner after the first.
 */
export class LeaseKeeper implements Component {
  readonly name: string;
  readonly #options: LeaseKeeperOptions;
  readonly #record: LeaseRecord;
  readonly #background = new Background();
  /** Does not give up the lease: the node is not gone just because its agent restarts. */
  readonly stop: Background['stop'] = this.#background.stop;
  #renewedAt = -Infinity;
  readonly #pause: Pause;

  constructor(options: LeaseKeeperOptions) {
    this.name = `lease ${options.namespace}/${options.name}`;
    this.#options = options;
    this.#record = new LeaseRecord(options);
    this.#pause = new Pause(options.clock);
  }

  /** Monotonic ms of the last successful renewal. */
  get renewedAt(): number {
    return this.#renewedAt;
  }

  /** What kept it from being renewed is over: the next turn is now. */
  wake(): void {
    this.#pause.end();
  }

  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    this.#background.run(async (signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, durationMs, intervalMs = durationMs / 4, random = systemRandom } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      const renewed = await this.#renew(signal, intervalMs);
      failures = renewed ? 0 : failures + 1;
      const waitMs = failures === 1 ? spreadMs(intervalMs / 4, random) : untilMomentMs(clock, intervalMs);
      await this.#pause.for(waitMs, signal);
    }
  }

  async #renew(signal: AbortSignal, timeoutMs: number): Promise<boolean> {
    const { clock, log, healthy } = this.#options;
    if (healthy?.() === false) return true;
    using deadline = startDeadline(clock, timeoutMs, this.name, signal);
    try {
      if (this.#record.view().state !== 'held') await this.#record.look(deadline.signal);
      await this.#record.write(deadline.signal);
      this.#renewedAt = clock.monotonic();
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      // Somebody else wrote it, or it is gone: what we know is stale, and the next turn reads it first.
      await this.#record.look(deadline.signal).catch(() => undefined);
      if (!hasCode(error, 'Conflict'))
        log.debug('lease not renewed', { lease: this.name, error: errorMessage(error) });
      return false;
    }
  }
}
