import type { PodSample, RunningPod } from '../../api/pod-usage.ts';
import {
  type ContainerPoint,
  isFresh,
  type NodePoint,
  type OwnUsage,
  type PodPoint,
  ResourceCounters,
} from './resource-counters.ts';

interface ResourceMetricsOptions {
  nodeName: string;
  startTimeMs: number;
  own: () => OwnUsage;
}

/**
 * The usage of offloaded pods as a kubelet would report it. The foreign cluster tells rates over windows; the
 * consumers here (metrics-server, Prometheus) want counters and take rates themselves. So counters are made by
 * adding rate times elapsed time at each new sample, and every value bears its sample's own time: between two
 * samples nothing changes, however often somebody scrapes.
 */
export class ResourceMetrics {
  readonly #options: ResourceMetricsOptions;
  readonly #counters: ResourceCounters;
  #failed = false;

  constructor(options: ResourceMetricsOptions) {
    this.#options = options;
    this.#counters = new ResourceCounters(options.own);
  }

  /** Takes what is known of all pods; one that is missing keeps its last values until it is pruned or stale. */
  record(samples: readonly PodSample[], nowMs: number): void {
    this.#failed = false;
    this.#counters.record(samples, nowMs);
  }

  /** The foreign cluster, or one of its namespaces, could not be asked. */
  recordFailure(): void {
    this.#failed = true;
  }

  /** Forgets pods that have ended or are gone; what they have used stays in the node's counter. */
  prune(isMeasured: (uid: string) => boolean): void {
    this.#counters.prune(isMeasured);
  }

  /** For /metrics/resource: names, labels, types and help of kubelet 1.36, families in alphabetical order. */
  exposition(nowMs: number): string {
    const pods = this.#counters.pods().filter((pod) => isFresh(pod, nowMs));
    const node = this.#counters.node();
    const error: Sample[] = [{ value: this.#failed ? 1 : 0 }];
    const nodes: Row[] = node !== undefined && isFresh(node, nowMs) ? [{ point: node }] : [];
    const rows: Row[] = pods.map((pod) => ({ point: pod, labels: podLabels(pod) }));
    return formatExposition([
      ...containerFamilies(pods),
      ...usageFamilies('node', nodes),
      swapFamily('node', nodes),
      ...usageFamilies('pod', rows),
      swapFamily('pod', rows),
      gauge('resource_scrape_error', ERROR_HELP, error),
      gauge(
        'scrape_error',
        `[ALPHA] (Deprecated since 1.29.0) ${ERROR_HELP.slice('[STABLE] '.length)}`,
        error,
      ),
    ]);
  }

  /** For /stats/summary, stats/v1alpha1: all of `running`, those without a sample without figures, as a kubelet does. */
  summary(running: readonly RunningPod[], nowMs: number): object {
    const { nodeName, startTimeMs } = this.#options;
    const pods = this.#counters.pods().filter((pod) => isFresh(pod, nowMs));
    const measured = new Set(pods.map(({ uid }) => uid));
    const node = this.#counters.node();
    return {
      node: {
        nodeName,
        startTime: time(startTimeMs),
        ...(node === undefined ? {} : usage(node)),
      },
      pods: [
        ...pods.map((pod) => ({ ...podStats(pod, usage), ...usage(pod) })),
        ...running.filter(({ uid }) => !measured.has(uid)).map((pod) => podStats(pod, () => ({}))),
      ],
    };
  }
}

interface Started {
  startTimeMs: number | undefined;
  timestampMs?: number;
}

const podStats = <C extends Started & { name: string }>(
  {
    name,
    namespace,
    uid,
    containers,
    ...pod
  }: Started & Pick<RunningPod, 'name' | 'namespace' | 'uid'> & { containers: C[] },
  figures: (container: C) => object,
): object => ({
  podRef: { name, namespace, uid },
  startTime: startOf(pod),
  containers: containers.map((container) => ({
    name: container.name,
    startTime: startOf(container),
    ...figures(container),
  })),
});

const startOf = ({ startTimeMs, timestampMs = 0 }: Started): string => time(startTimeMs ?? timestampMs);

const time = (atMs: number): string => new Date(atMs).toISOString();

function usage(point: NodePoint | PodPoint | ContainerPoint): object {
  const at = time(point.timestampMs);
  return {
    cpu: {
      time: at,
      usageNanoCores: Math.round(point.cores * 1e9),
      usageCoreNanoSeconds: Math.round(point.cpuSeconds * 1e9),
    },
    memory: { time: at, usageBytes: point.memoryBytes, workingSetBytes: point.memoryBytes },
    ...(point.swapBytes !== undefined && { swap: { time: at, swapUsageBytes: point.swapBytes } }),
  };
}

const ERROR_HELP = '[STABLE] 1 if there was an error while getting container metrics, 0 otherwise';

/** To the nanosecond, which is as exact as the rates are. */
const seconds = (value: number): number => Math.round(value * 1e9) / 1e9;

/** One thing whose usage is told, with the labels by which it is known. */
interface Row {
  point: NodePoint | PodPoint | ContainerPoint;
  labels?: Record<string, string>;
}

function usageFamilies(what: 'container' | 'node' | 'pod', rows: readonly Row[]): Family[] {
  const samples = (valueOf: (point: Row['point']) => number): Sample[] =>
    rows.map(({ point, ...row }) => ({ ...row, value: valueOf(point), timestampMs: point.timestampMs }));
  return [
    {
      name: `${what}_cpu_usage_seconds_total`,
      help: `[STABLE] Cumulative cpu time consumed by the ${what} in core-seconds`,
      type: 'counter',
      samples: samples(({ cpuSeconds }) => seconds(cpuSeconds)),
    },
    {
      name: `${what}_memory_working_set_bytes`,
      help: `[STABLE] Current working set of the ${what} in bytes`,
      type: 'gauge',
      samples: samples(({ memoryBytes }) => memoryBytes),
    },
  ];
}

/**
 * Only of what tells its swap: 0 would be a claim. The limit of a container (`container_swap_limit_bytes`) is known to its
 * kubelet alone.
 */
const swapFamily = (what: 'container' | 'node' | 'pod', rows: readonly Row[]): Family =>
  gauge(
    `${what}_swap_usage_bytes`,
    `[ALPHA] Current ${what === 'node' ? 'swap usage of the node' : `amount of the ${what} swap usage`} in bytes. ` +
      'Reported only on non-windows systems',
    rows.flatMap(({ point: { swapBytes, timestampMs }, ...row }) =>
      swapBytes === undefined ? [] : [{ ...row, value: swapBytes, timestampMs }],
    ),
  );

const podLabels = ({ namespace, name }: PodPoint): Record<string, string> => ({ namespace, pod: name });

function containerFamilies(pods: readonly PodPoint[]): Family[] {
  const rows = pods.flatMap((pod) =>
    pod.containers.map((point) => ({ point, labels: { container: point.name, ...podLabels(pod) } })),
  );
  const started = rows.flatMap(({ point: { startTimeMs }, labels }) =>
    startTimeMs === undefined ? [] : [{ labels, value: startTimeMs / 1000 }],
  );
  const help = '[STABLE] Start time of the container since unix epoch in seconds';
  return [
    ...usageFamilies('container', rows),
    gauge('container_start_time_seconds', help, started),
    swapFamily('container', rows),
  ];
}

const gauge = (name: string, help: string, samples: Sample[]): Family => ({
  name,
  help,
  type: 'gauge',
  samples,
});

/** The Prometheus text format 0.0.4, as far as the kubelet's resource metrics need it. */
interface Sample {
  labels?: Record<string, string>;
  value: number;
  /** Milliseconds since the epoch; without it the scraper takes its own time. */
  timestampMs?: number;
}

interface Family {
  name: string;
  help: string;
  type: 'counter' | 'gauge';
  samples: Sample[];
}

const escapeLabel = (value: string): string =>
  value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);

function line(name: string, { labels = {}, value, timestampMs }: Sample): string {
  const list = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  const braces = list.length === 0 ? '' : `{${list.join(',')}}`;
  const time = timestampMs === undefined ? '' : ` ${Math.round(timestampMs)}`;
  return `${name}${braces} ${value}${time}\n`;
}

/** Families in the order given, those without a sample left out. */
function formatExposition(families: readonly Family[]): string {
  const written = families.filter(({ samples }) => samples.length > 0);
  return written
    .map(({ name, help, type, samples }) => {
      const lines = samples.map((sample) => line(name, sample)).join('');
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines}`;
    })
    .join('');
}
