import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

import { counterOf, gaugeOf, histogramOf } from '../../lib/instruments.ts';
import type { Metric } from '../../lib/metric.ts';

/** Patched; left as it was; not let in; an error of ours, so that failurePolicy decides; no sensible request. A closed list. */
const WEBHOOK_OUTCOMES = ['patched', 'unchanged', 'denied', 'error', 'refused'] as const;
export type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number];

export const WEBHOOK_METRICS: {
  readonly requests: Metric<'counter', 'outcome'>;
  readonly duration: Metric<'histogram', never>;
  readonly expiry: Metric<'gauge', never>;
} = {
  requests: {
    name: 'tributary_webhook_requests_total',
    type: 'counter',
    unit: 'count',
    help: 'Requests to the admission webhook, by outcome.',
    labels: { outcome: WEBHOOK_OUTCOMES },
  },
  duration: {
    name: 'tributary_webhook_request_duration_seconds',
    type: 'histogram',
    unit: 'seconds',
    help: 'Time from the whole request to the answer of the admission webhook.',
    labels: {},
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1],
  },
  expiry: {
    name: 'tributary_webhook_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    unit: 'timestamp',
    help: 'End of the serving certificate of the admission webhook.',
    labels: {},
  },
};

export class WebhookMetrics {
  readonly #requests: Counter<'outcome'>;
  readonly #duration: Histogram;
  readonly #expiry: Gauge;

  constructor(registry: Registry) {
    this.#requests = counterOf(registry, WEBHOOK_METRICS.requests);
    this.#duration = histogramOf(registry, WEBHOOK_METRICS.duration);
    this.#expiry = gaugeOf(registry, WEBHOOK_METRICS.expiry);
  }

  answered(outcome: WebhookOutcome, ms?: number): void {
    this.#requests.inc({ outcome });
    if (ms !== undefined) this.#duration.observe(ms / 1000);
  }

  certificateExpires(atMs: number): void {
    this.#expiry.set(atMs / 1000);
  }
}
