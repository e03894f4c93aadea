import { Backoff, type Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { HostNetwork } from '../host/host-config.ts';

export interface StandbyFenceOptions extends Basics {
  host: Pick<HostNetwork, 'cleanUp'>;
  random?: Random;
}

export const RETRY_MS = { baseMs: 500, capMs: 30_000 };

/** Leaves nothing of a gateway on this host when the gateway is active on another one. */
export class StandbyFence implements Component {
  readonly name = 'gateway fence';
  readonly #options: StandbyFenceOptions;
  /** Ends further tries, but not the one that is under way. */
  #giveUp = new AbortController();
  #cleaning: Promise<void> = Promise.resolve();
  #leading = false;
  #holder: string | undefined;

  constructor(options: StandbyFenceOptions) {
    this.#options = options;
  }

  /** For `LeaderElectionOptions.onTaken`. A leader first stops what would set the host again; then `stop` cleans the host. */
  taken(holder: string): void {
    this.#holder = holder;
    if (!this.#leading) this.#cleanUp(holder);
  }

  /** Comes right after the election: we lead, and a clean-up of before is over. */
  async start(): Promise<void> {
    this.#giveUp.abort();
    await this.#cleaning;
    this.#holder = undefined;
    this.#leading = true;
  }

  async stop(): Promise<void> {
    if (this.#leading && this.#holder !== undefined) this.#cleanUp(this.#holder);
    // Role `node` on this host, or the next process here, removes what is left then.
    this.#giveUp.abort();
    await this.#cleaning;
  }

  #cleanUp(holder: string): void {
    this.#giveUp.abort();
    this.#giveUp = new AbortController();
    const { signal } = this.#giveUp;
    this.#cleaning = this.#cleaning.then(async () => this.#untilClean(holder, signal));
  }

  /** Tries at least once. */
  async #untilClean(node: string, signal: AbortSignal): Promise<void> {
    const { host, log, clock, random } = this.#options;
    const backoff = new Backoff({ ...RETRY_MS, random });
    for (;;) {
      try {
        await host.cleanUp('gateway');
        log.info('the gateway is active on another node', { node });
        return;
      } catch (error) {
        log.error('the host was not cleaned', { node, error: errorMessage(error) });
      }
      await clock.sleep(backoff.next(), signal).catch(() => undefined);
      if (signal.aborted) return;
    }
  }
}
