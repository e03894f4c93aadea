import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

/** Patched; left as it was; not let in; an error of ours, so that failurePolicy decides; no sensible request. A closed list. */
export type WebhookOutcome = 'patched' | 'unchanged' | 'denied' | 'error' | 'refused';

export class WebhookMetrics {
  readonly #requests: Counter<'outcome'>;
  readonly #duration: Histogram;
  readonly #expiry: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'tributary_webhook_requests_total',
      help: 'Requests to the admission webhook by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'tributary_webhook_duration_seconds',
      help: 'From the whole request to the answer of the admission webhook.',
      buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1],
      registers,
    });
    this.#expiry = new Gauge({
      name: 'tributary_webhook_certificate_expiry_seconds',
      help: 'End of the serving certificate of the admission webhook in seconds since the epoch.',
      registers,
    });
  }

  answered(outcome: WebhookOutcome, ms?: number): void {
    this.#requests.inc({ outcome });
    if (ms !== undefined) this.#duration.observe(ms / 1000);
  }

  certificateExpires(atMs: number): void {
    this.#expiry.set(atMs / 1000);
  }
}
