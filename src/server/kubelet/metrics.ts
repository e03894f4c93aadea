import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What the listeners count. Path classes and codes are few and fixed, so the number of series is bounded. */
export class ServerMetrics {
  readonly #requests: Counter<'path' | 'method' | 'code'>;
  readonly #streams: Gauge<'kind'>;
  readonly #certificateExpiry: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'tributary_kubelet_requests_total',
      help: 'Requests to the kubelet API by class of path, method and HTTP status.',
      labelNames: ['path', 'method', 'code'],
      registers,
    });
    this.#streams = new Gauge({
      name: 'tributary_kubelet_open_streams',
      help: 'Open exec, attach, portForward and followed log streams.',
      labelNames: ['kind'],
      registers,
    });
    this.#certificateExpiry = new Gauge({
      name: 'tributary_kubelet_serving_certificate_expiry_seconds',
      help: 'End of the serving certificate in seconds since the epoch.',
      registers,
    });
  }

  /** `path` must come from `pathClass`. */
  answered(path: string, method: string, code: number): void {
    const known = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'].includes(method);
    this.#requests.inc({ path, method: known ? method : 'other', code: String(code) });
  }

  openStreams(kind: string, open: number): void {
    this.#streams.set({ kind }, open);
  }

  certificateExpires(atMs: number): void {
    this.#certificateExpiry.set(atMs / 1000);
  }
}

const CLASSES: ReadonlySet<string> = new Set([
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
]);

/** The class of a path for counting, as in the kubelet: its first segment, or two below /metrics. */
export function pathClass(path: string): string {
  const [first = '', second] = path.slice(1).split('/', 2);
  const name = first === 'metrics' && second !== undefined && second !== '' ? `${first}/${second}` : first;
  return CLASSES.has(name) ? name : 'other';
}
