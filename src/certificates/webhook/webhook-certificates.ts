import { WEBHOOK_SERVICE } from '../../api/admission.ts';
import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { secrets } from '../../api/resources.ts';
import type { Secret } from '../../api/wire.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { Backoff, type Random } from '../../lib/backoff.ts';
import { errorMessage, ignoring } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { persistently } from '../../lib/persistence.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { periodOf, type WebhookSubject } from './authority.ts';
import { bundleOf, type Chain, chainOf, dataOf, renewed, restMs } from './chain.ts';

interface WebhookCertificatesOptions extends ClusterBasics {
  /** The project's own namespace. */
  namespace: string;
  subject: WebhookSubject;
  random: Random;
  metrics: { certificateExpires(atMs: number): void };
}

const RETRY = { baseMs: 1_000, capMs: 60_000 };
const MIN_RETRY_MS = 500;

/**
 * The webhook's certificates, made and renewed here and kept in a Secret, so that the next leader and the next start go on
 * with the same. A Secret that is lost or broken is made anew.
 */
export class WebhookCertificates implements Component, Source<KeyPair> {
  readonly name = 'webhook certificates';
  readonly #options: WebhookCertificatesOptions;
  readonly #changed = new Listeners();
  readonly subscribe: Listeners['add'] = this.#changed.add;
  readonly #background = new Background();
  readonly stop: Background['stop'] = this.#background.stop;
  #chain: Chain | undefined;

  constructor(options: WebhookCertificatesOptions) {
    this.#options = options;
  }

  /** What is served. */
  current(): KeyPair {
    return this.#chain?.leaf ?? { certificate: '', key: '' };
  }

  /** PEM of what API servers are to trust. */
  bundle(): string {
    return this.#chain === undefined ? '' : bundleOf(this.#chain);
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clock, log } = this.#options;
    const complaint = 'the certificates of the webhook cannot be read or stored';
    await persistently(async () => this.#renew(signal), { clock, log, complaint }, signal);
    this.#background.run(async (signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#options;
    const backoff = new Backoff({ ...RETRY, random });
    let waitMs = this.#restMs();
    while (!signal.aborted) {
      await clock.sleep(Math.max(MIN_RETRY_MS, waitMs), signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.#renew(signal);
        backoff.reset();
        waitMs = this.#restMs();
      } catch (error) {
        waitMs = backoff.next();
        log.warn('cannot renew the certificates of the webhook', { error: errorMessage(error) });
      }
    }
  }

  #restMs(): number {
    return this.#chain === undefined ? 0 : restMs(this.#chain, this.#options.clock.now());
  }

  /** Stores a chain before it is used: the next start must find what is served. */
  async #renew(signal: AbortSignal): Promise<void> {
    const { client, namespace, subject, clock, log } = this.#options;
    const ref = { namespace, name: WEBHOOK_SERVICE };
    const secret = await client.get(secrets, ref, { signal }).catch(ignoring('NotFound'));
    const stored = secret && chainOf(secret);
    if (secret !== undefined && stored === undefined) {
      log.warn(`Secret ${namespace}/${ref.name} holds no usable certificates: they are made anew`);
    }
    const chain = await renewed(stored ?? this.#chain, subject, clock.now());
    if (chain !== stored) await this.#store(secret, chain, signal);
    this.#install(chain);
  }

  /** Fails with Conflict or AlreadyExists when somebody else was faster: then theirs counts. */
  async #store(secret: Secret | undefined, chain: Chain, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    const data = dataOf(chain);
    if (secret === undefined) {
      const labels = { [LABEL_APP_NAME]: APP_NAME };
      const metadata = { namespace, name: WEBHOOK_SERVICE, labels };
      const body = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data };
      await client.create(secrets, body, { signal });
    } else {
      await client.replace(secrets, { ...secret, data }, { signal });
    }
  }

  #install(chain: Chain): void {
    const before = this.#chain;
    this.#chain = chain;
    const isSame =
      before?.leaf.certificate === chain.leaf.certificate && bundleOf(before) === bundleOf(chain);
    if (isSame) return;
    const { log, metrics } = this.#options;
    const toMs = periodOf(chain.leaf)?.toMs ?? 0;
    metrics.certificateExpires(toMs);
    log.info('certificates of the webhook are in use', { validTo: new Date(toMs).toISOString() });
    this.#changed.tell();
  }
}
