import { serviceCidrs } from '../../api/resources.ts';
import type { ServiceCidr } from '../../api/wire.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import { Backoff, systemRandom } from '../../lib/backoff.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';

export interface ServiceRangesOptions extends Pick<
  InformerOptions<ServiceCidr>,
  'client' | 'clock' | 'log' | 'random'
> {
  /** CIDRs that people name. Where there are any, the API server is not asked. */
  given: readonly string[];
}

const RETRY_MS = { baseMs: 500, capMs: 30_000 };

/** The CIDRs of Services. API servers before Kubernetes 1.33 have no object that tells them. */
export class ServiceRanges implements Component {
  readonly name = 'service ranges';
  readonly #options: ServiceRangesOptions;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  #informer: Informer<ServiceCidr> | undefined;

  constructor(options: ServiceRangesOptions) {
    this.#options = options;
  }

  get cidrs(): readonly string[] {
    if (this.#options.given.length > 0) return this.#options.given;
    return [...(this.#informer?.list() ?? [])].flatMap(({ spec }) => spec?.cidrs ?? []);
  }

  async start(signal: AbortSignal): Promise<void> {
    const { given, client, clock, log, random } = this.#options;
    if (given.length > 0) return;
    if (!(await this.#isServed(signal))) {
      log.warn(
        'this API server does not tell the ranges of Services; name them by --service-cidr, or a peer may be seen as one',
      );
      return;
    }
    const common = { client, clock, log, ...(random && { random }) };
    this.#informer = new Informer<ServiceCidr>({ ...common, type: serviceCidrs, list: {} });
    this.#informer.onChange(() => this.#listeners.tell());
    await this.#informer.start(signal);
  }

  async stop(): Promise<void> {
    await this.#informer?.stop();
  }

  async #isServed(signal: AbortSignal): Promise<boolean> {
    const { client, clock, log, random = systemRandom } = this.#options;
    const backoff = new Backoff({ ...RETRY_MS, random });
    for (;;) {
      signal.throwIfAborted();
      try {
        await client.list(serviceCidrs, { limit: 1, signal });
        return true;
      } catch (error) {
        if (hasCode(error, 'NotFound')) return false;
        signal.throwIfAborted();
        log.warn('cannot list the ranges of Services', { error: errorMessage(error) });
        await clock.sleep(500 + backoff.next(), signal);
      }
    }
  }
}
