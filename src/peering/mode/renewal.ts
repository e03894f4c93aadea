import type { FenceTerms } from '../../api/cluster-mode.ts';
import type { Basics } from '../../lib/basics.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { Pause } from '../../lib/pause.ts';
import type { PeerLinks } from '../ports.ts';
import type { RenewParams, RenewResult } from '../protocol/documents.ts';

/** Whom to renew with, and on which terms. */
export interface Renewing {
  clusterID: string;
  terms: FenceTerms;
  /** Nothing that was forwarded runs here, or is about to. */
  mayResume: boolean;
}

interface RenewalOptions extends Basics {
  links: () => Pick<PeerLinks, 'view' | 'call'>;
  /** Undefined: nothing is to be renewed. */
  wanted: () => Renewing | undefined;
  /** Called when `agreed` may answer otherwise. */
  changed: () => void;
}

/** What the other cluster has said last. */
interface Held {
  clusterID: string;
  ticket: string;
  /** When it came, monotonic; it was issued earlier. */
  atMs: number;
  terms: FenceTerms;
  /** It holds itself to these terms. */
  isHeld: boolean;
}

const MOST_INTERVAL_MS = 15_000;
const RETRY_MS = 2_500;
const MS = 1000;

const lastsMs = ({ afterSeconds, stopSeconds }: FenceTerms): number => (afterSeconds + stopSeconds) * MS;

/**
 * Shows the other cluster its own tickets, so that it goes on to run what was forwarded. From the last ticket that was shown
 * follows when it has stopped that at the latest, whatever was delayed on the way, and whatever the two clocks say: it counts from
 * the issue of the ticket, and we from its coming, which is later.
 */
export class FenceRenewal implements Component {
  readonly name = 'renewal of the fence';
  readonly #options: RenewalOptions;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;
  readonly #startedMs: number;
  #held: Held | undefined;
  /** By when all that was shown so far has ended, monotonic. */
  #endsMs = -Infinity;
  readonly #pause: Pause;

  constructor(options: RenewalOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonic();
    this.#pause = new Pause(options.clock);
  }

  start(): void {
    this.#background.run(async (signal) => {
      while (!signal.aborted) await this.#pause.for(await this.#turn(signal), signal);
    });
  }

  /** To be called when `wanted` may answer otherwise. */
  wake(): void {
    this.#pause.end();
  }

  /** What that cluster holds itself to, by its own last word in this process. */
  agreed(clusterID: string): FenceTerms | undefined {
    const held = this.#held;
    return held?.clusterID === clusterID && held.isHeld ? held.terms : undefined;
  }

  /**
   * In how many milliseconds the other cluster has stopped everything; zero or less: it has. The process before this one may have
   * shown a ticket right before its end.
   *
   * @param terms as they were agreed on last
   */
  stoppedInMs(terms: FenceTerms): number {
    const endsMs = Math.max(this.#endsMs, this.#startedMs + lastsMs(terms));
    return endsMs - this.#options.clock.monotonic();
  }

  /** Milliseconds until the next. */
  async #turn(signal: AbortSignal): Promise<number> {
    const { links, wanted, log } = this.#options;
    const renewing = wanted();
    if (renewing === undefined) {
      this.#hold(undefined);
      return MOST_INTERVAL_MS;
    }
    const { clusterID, terms } = renewing;
    const intervalMs = Math.min(MOST_INTERVAL_MS, (terms.afterSeconds * MS) / 4);
    if (links().view(clusterID)?.connected !== true) return intervalMs;
    try {
      this.#hold(await this.#renew(renewing, signal));
      return intervalMs;
    } catch (error) {
      if (!signal.aborted) log.debug('not renewed', { peer: clusterID, error: errorMessage(error) });
      return Math.min(RETRY_MS, intervalMs);
    }
  }

  async #renew({ clusterID, mayResume }: Renewing, signal: AbortSignal): Promise<Held> {
    const { links, clock } = this.#options;
    const last = this.#held?.clusterID === clusterID ? this.#held : undefined;
    // Before it is sent: from then on it may count over there.
    if (last !== undefined) this.#endsMs = Math.max(this.#endsMs, last.atMs + lastsMs(last.terms));
    const params: RenewParams = {
      ...(last && { ticket: last.ticket }),
      ...(mayResume && { resume: true }),
    };
    const result: RenewResult = await links().call(clusterID, 'renew', params, signal);
    const { ticket, state, afterSeconds, stopSeconds } = result;
    const atMs = clock.monotonic();
    return { clusterID, ticket, atMs, terms: { afterSeconds, stopSeconds }, isHeld: state === 'Held' };
  }

  #hold(held: Held | undefined): void {
    const before = this.#held;
    this.#held = held;
    const said = (one: Held | undefined): unknown => one && [one.clusterID, one.isHeld, one.terms];
    if (!deepEqual(said(before), said(held))) this.#options.changed();
  }
}
