import { HOME_LEASE } from '../api/names.ts';
import { leases } from '../api/resources.ts';
import type { Lease } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { microTime } from '../kube/lease.ts';
import { type Random, spreadMs, systemRandom } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { HomeReturn } from './home-return.ts';

export interface HomeLeaseOptions {
  foreign: KubeClient;
  /** Where the Lease may be; in any order. */
  tenantNamespaces: () => readonly string[];
  /** Who renews; agents of one home take turns. */
  identity: string;
  /** Whether the home's own API server answers. While it does not, the home is away, though this program lives. */
  homeAnswers: () => boolean;
  clock: Clock;
  log: Logger;
  random?: Random;
}

const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 5_000;
/** After a failure, and while the home does not answer. */
const SOON_MS = 2_500;
/** The Lease is made soon after its namespace; an older provider has none. Doubled from look to look. */
const FIRST_LOOK_MS = 1_000;
const SLOWEST_LOOK_MS = 60_000;
const DEFAULT_DURATION_S = 40;
const LONGEST_DURATION_S = 3_600;
const SHORTEST_DURATION_S = 3;

/**
 * Shows the provider's guardian that the home is there, by renewing the Lease that the provider has made in each tenant
 * namespace; one is enough. Nothing else depends on it: where it cannot be renewed, all goes on as without.
 */
export class HomeLease implements Component {
  readonly name = 'home lease';
  readonly #options: HomeLeaseOptions;
  readonly #return: HomeReturn;
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  /** As last read or written. */
  #known: Lease | undefined;
  #looks = 0;
  #failures = 0;

  constructor(options: HomeLeaseOptions) {
    this.#options = options;
    this.#return = new HomeReturn(options.clock);
  }

  /** How long the loss of a remote pod is not to be believed yet: the guardian may be making it anew. */
  patienceMs(): number {
    return this.#return.patienceMs();
  }

  /** Returns at once; the foreign cluster may be away for long. */
  async start(): Promise<void> {
    this.#running = this.#run(this.#abort.signal);
    await Promise.resolve();
  }

  /** Leaves the Lease to lapse: an update of the agent is no absence. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
  }

  /** Something has changed that may let it be found or renewed now. */
  wake(): void {
    this.#looks = 0;
    this.#wake?.();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = await this.#turn(signal);
      await this.#pause(waitMs, signal);
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort(new Error('renew now'));
    try {
      await this.#options.clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
    } catch {
      // Woken or stopped: either way the loop decides.
    }
  }

  /** Milliseconds until the next. */
  async #turn(signal: AbortSignal): Promise<number> {
    const { clock, log, random = systemRandom, homeAnswers } = this.#options;
    if (!homeAnswers()) return SOON_MS;
    const deadline = startDeadline(clock, TIMEOUT_MS, this.name, signal);
    try {
      const lease = await this.#renew(deadline.signal);
      this.#failures = 0;
      if (lease !== undefined) return Math.min(INTERVAL_MS, durationMs(lease) / 3);
      this.#return.unguarded();
      return spreadMs(Math.min(SLOWEST_LOOK_MS, FIRST_LOOK_MS * 2 ** Math.min(this.#looks++, 10)), random);
    } catch (error) {
      this.#known = undefined;
      if (!signal.aborted) {
        // What time does not heal: the provider will take this cluster for away.
        const isRefused = this.#failures === 0 && hasCode(error, 'Forbidden', 'Invalid');
        log[isRefused ? 'warn' : 'debug'](
          'the Lease that shows the provider that this cluster is there is not renewed',
          {
            error: errorMessage(error),
          },
        );
      }
      return this.#failures++ === 0 ? SOON_MS : INTERVAL_MS;
    } finally {
      deadline.dispose();
    }
  }

  /** Undefined when there is none. */
  async #renew(signal: AbortSignal): Promise<Lease | undefined> {
    const known = this.#known;
    if (known !== undefined && this.#namespaces().includes(known.metadata.namespace ?? '')) {
      try {
        return await this.#write(known, signal);
      } catch (error) {
        if (!hasCode(error, 'Conflict', 'NotFound', 'Forbidden')) throw error;
      }
    }
    const found = await this.#find(signal);
    this.#known = found;
    if (found === undefined) return undefined;
    this.#looks = 0;
    const wasAway = this.#return.isAway;
    this.#return.seen(found, durationMs(found));
    // Somebody of ours was faster: it is as good as if we had done it.
    const isSame = found.metadata.uid === known?.metadata.uid;
    const isDone = isSame && !wasAway && found.spec?.renewTime !== known?.spec?.renewTime;
    return isDone ? found : this.#write(found, signal);
  }

  async #write(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { foreign, identity, clock } = this.#options;
    const now = microTime(clock.now());
    const before = lease.spec;
    const acquireTime = this.#return.isAway ? now : (before?.acquireTime ?? now);
    // How long it lasts is the provider's to say.
    const spec = { ...before, holderIdentity: identity, renewTime: now, acquireTime };
    const written = await foreign.replace(leases, { ...lease, spec }, { signal });
    this.#known = written;
    this.#return.renewed();
    return written;
  }

  /** In the first namespace that has one: all agents of this home look in the same order. */
  async #find(signal: AbortSignal): Promise<Lease | undefined> {
    for (const namespace of this.#namespaces()) {
      try {
        return await this.#options.foreign.get(leases, { namespace, name: HOME_LEASE }, { signal });
      } catch (error) {
        if (!hasCode(error, 'NotFound', 'Forbidden')) throw error;
      }
    }
    return undefined;
  }

  #namespaces(): string[] {
    return [...new Set(this.#options.tenantNamespaces())].toSorted();
  }
}

/** What a provider says is bounded: it must neither make us hurry nor let us sleep. */
function durationMs({ spec }: Lease): number {
  const seconds: unknown = spec?.leaseDurationSeconds;
  const isGood = typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds > 0;
  const bounded = isGood
    ? Math.min(LONGEST_DURATION_S, Math.max(SHORTEST_DURATION_S, seconds))
    : DEFAULT_DURATION_S;
  return bounded * 1000;
}
