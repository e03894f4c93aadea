import type { Random } from '../../lib/backoff.ts';
import { Backoff } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { Variable } from '../../lib/source.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { BACKDATED_MS, issueLeaf } from './certificate.ts';
import type { CertificateSigner } from './certificate.ts';

export interface PeeringCertificateOptions {
  /** Must be loaded when this starts. */
  signer: CertificateSigner;
  clock: Clock;
  random: Random;
  log: Logger;
  /** How long a leaf is valid. Default 24 h. */
  lifeMs?: number;
}

const DAY_MS = 24 * 3_600_000;
/** How often the clocks are looked at: timers stand still while a machine sleeps. */
const LOOK_AGAIN_MS = 60_000;
const RETRY_BASE_MS = 1_000;
const RETRY_CAP_MS = 60_000;

interface Issued {
  wallMs: number;
  monotonicMs: number;
  /** Time after which it is replaced. */
  restMs: number;
}

/** Our TLS leaf and its key, replaced by a fresh one after about two thirds of its life. Both live in memory only. */
export class PeeringCertificate implements Component, Source<KeyPair> {
  readonly name = 'peering certificate';
  readonly #options: PeeringCertificateOptions;
  readonly #lifeMs: number;
  readonly #pair = new Variable<KeyPair>({ certificate: '', key: '' });
  readonly #abort = new AbortController();
  #issued: Issued = { wallMs: 0, monotonicMs: 0, restMs: 0 };
  #running: Promise<void> | undefined;

  constructor(options: PeeringCertificateOptions) {
    this.#options = options;
    this.#lifeMs = options.lifeMs ?? DAY_MS;
  }

  current(): KeyPair {
    return this.#pair.current();
  }

  subscribe(listener: () => void): () => void {
    return this.#pair.subscribe(listener);
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.renew();
    this.#running = this.#run(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
  }

  /** A fresh leaf at once, for connections to come. */
  async renew(): Promise<void> {
    const { signer, clock, random } = this.#options;
    const wallMs = clock.now();
    const pair = await issueLeaf(signer, { nowMs: wallMs, lifeMs: this.#lifeMs });
    const restMs = this.#lifeMs * (0.6 + 0.1 * random());
    this.#issued = { wallMs, monotonicMs: clock.monotonic(), restMs };
    this.#pair.set(pair);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#options;
    const backoff = new Backoff({ baseMs: RETRY_BASE_MS, capMs: RETRY_CAP_MS, random });
    while (!signal.aborted) {
      await clock.sleep(Math.min(Math.max(this.#leftMs(), 0), LOOK_AGAIN_MS), signal).catch(() => undefined);
      if (signal.aborted || this.#leftMs() > 0) continue;
      try {
        await this.renew();
        backoff.reset();
        log.info('peering certificate renewed', { lifeSeconds: Math.round(this.#lifeMs / 1000) });
      } catch (error) {
        log.warn('cannot renew the peering certificate', { error: errorMessage(error) });
        await clock.sleep(RETRY_BASE_MS + backoff.next(), signal).catch(() => undefined);
      }
    }
  }

  /** Until the renewal is due by either clock; the wall clock may have been set, also to before the leaf's time. */
  #leftMs(): number {
    const { clock } = this.#options;
    const { wallMs, monotonicMs, restMs } = this.#issued;
    const passed = clock.now() - wallMs;
    if (passed < -BACKDATED_MS / 2) return 0;
    return restMs - Math.max(passed, clock.monotonic() - monotonicMs);
  }
}
