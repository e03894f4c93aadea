import type { Counter, Gauge, Registry } from 'prom-client';

import { counterOf, gaugeOf } from '../../lib/instruments.ts';
import type { Metric } from '../../lib/metric.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

const CLASSES = [
  'attach',
  'configz',
  'containerLogs',
  'exec',
  'healthz',
  'metrics',
  'metrics/cadvisor',
  'metrics/probes',
  'metrics/resource',
  'metrics/slis',
  'pods',
  'portForward',
  'runningpods',
  'stats',
] as const;

/** What the kubelet API counts. */
export const KUBELET_METRICS: {
  readonly requests: Metric<'counter', 'path' | 'method' | 'code'>;
  readonly streams: Metric<'gauge', 'kind'>;
  readonly expiry: Metric<'gauge', never>;
} = {
  requests: {
    name: 'tributary_kubelet_requests_total',
    type: 'counter',
    unit: 'count',
    help: 'Requests to the kubelet API, by class of path, method and HTTP status.',
    labels: { path: [...CLASSES, 'other'], method: [...METHODS, 'other'], code: { each: 'HTTP status' } },
  },
  streams: {
    name: 'tributary_kubelet_open_streams',
    type: 'gauge',
    unit: 'count',
    help: 'Open streams of the kubelet API: exec, attach and port-forward are upgraded; log is one that is followed.',
    labels: { kind: ['upgraded', 'log'] },
  },
  expiry: {
    name: 'tributary_kubelet_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    unit: 'timestamp',
    help: 'End of the serving certificate of the kubelet API.',
    labels: {},
  },
};

/** What the listeners count. Path classes and codes are few and fixed, so the number of series is bounded. */
export class ServerMetrics {
  readonly #requests: Counter<'path' | 'method' | 'code'>;
  readonly #streams: Gauge<'kind'>;
  readonly #certificateExpiry: Gauge;

  constructor(registry: Registry) {
    this.#requests = counterOf(registry, KUBELET_METRICS.requests);
    this.#streams = gaugeOf(registry, KUBELET_METRICS.streams);
    this.#certificateExpiry = gaugeOf(registry, KUBELET_METRICS.expiry);
  }

  /** `path` must come from `pathClass`. */
  answered(path: string, method: string, code: number): void {
    const known = METHODS.some((one) => one === method);
    this.#requests.inc({ path, method: known ? method : 'other', code: String(code) });
  }

  openStreams(kind: 'upgraded' | 'log', open: number): void {
    this.#streams.set({ kind }, open);
  }

  certificateExpires(atMs: number): void {
    this.#certificateExpiry.set(atMs / 1000);
  }
}

/** The class of a path for counting, as in the kubelet: its first segment, or two below /metrics. */
export function pathClass(path: string): string {
  const [first = '', second] = path.slice(1).split('/', 2);
  const name = first === 'metrics' && second !== undefined && second !== '' ? `${first}/${second}` : first;
  return CLASSES.find((one) => one === name) ?? 'other';
}
