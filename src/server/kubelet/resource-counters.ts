import type { ContainerSample, PodSample } from '../../api/pod-usage.ts';
import { present } from '../../lib/fields.ts';
import { parseQuantity } from '../../lib/quantity.ts';

/** What the agent itself uses; a kubelet counts itself among the usage of its node, too. */
export interface OwnUsage {
  cpuSeconds: number;
  memoryBytes: number;
}

/** Usage at one moment. */
interface Point {
  timestampMs: number;
  cpuSeconds: number;
  /** The rate at that moment. */
  cores: number;
  memoryBytes: number;
  /** Undefined where nobody tells it. */
  swapBytes?: number;
}

export type NodePoint = Point;

export interface ContainerPoint extends Point {
  name: string;
  startTimeMs: number | undefined;
}

export interface PodPoint extends Point {
  namespace: string;
  name: string;
  uid: string;
  startTimeMs: number | undefined;
  /** Those that were measured; never empty. */
  containers: ContainerPoint[];
}

interface PodState {
  identity: Pick<PodPoint, 'namespace' | 'name' | 'uid' | 'startTimeMs'>;
  /** All containers that ran so far in this pod; a restart must not take anything from the pod's own counter. */
  cpuSeconds: number;
  containers: Map<string, ContainerPoint>;
}

/** An older sample says nothing about the present. */
const STALE_MS = 5 * 60_000;

export const isFresh = ({ timestampMs }: Pick<Point, 'timestampMs'>, nowMs: number): boolean =>
  nowMs - timestampMs <= STALE_MS;

/**
 * A running container has used some processor time, even where its rate rounds to nothing. metrics-server drops
 * the whole pod when one of its counters is zero.
 */
const LEAST_CPU_SECONDS = 1e-6;

/** Counters made from rates; see ResourceMetrics for why. */
export class ResourceCounters {
  readonly #own: () => OwnUsage;
  readonly #pods = new Map<string, PodState>();
  /** Of all pods ever seen, so that the node's counter survives them. */
  #podSeconds = 0;
  #node: NodePoint | undefined;

  constructor(own: () => OwnUsage) {
    this.#own = own;
  }

  record(samples: readonly PodSample[], nowMs: number): void {
    for (const sample of samples) this.#recordPod(sample);
    const times = samples.filter((sample) => isFresh(sample, nowMs)).map(({ timestampMs }) => timestampMs);
    // With nothing to measure the node itself is measured now.
    this.#recordNode(times.length === 0 ? nowMs : Math.max(...times), nowMs);
  }

  prune(isMeasured: (uid: string) => boolean): void {
    for (const uid of this.#pods.keys()) if (!isMeasured(uid)) this.#pods.delete(uid);
  }

  node(): NodePoint | undefined {
    return this.#node;
  }

  pods(): PodPoint[] {
    return [...this.#pods.values()].flatMap((state) => {
      const containers = [...state.containers.values()];
      if (containers.length === 0) return [];
      const { cpuSeconds } = state;
      return [{ ...state.identity, ...sum(containers), cpuSeconds, containers }];
    });
  }

  #recordPod(sample: PodSample): void {
    const { uid, namespace, name, startTimeMs } = sample;
    const state = this.#pods.get(uid) ?? { identity: undefined, cpuSeconds: 0, containers: new Map() };
    const identity = { uid, namespace, name, startTimeMs };
    const next = new Map<string, ContainerPoint>();
    for (const container of sample.containers) {
      const before = state.containers.get(container.name);
      const point = nextPoint(sample, container, before);
      if (point === undefined) continue;
      next.set(container.name, point);
      const restarted = before === undefined || before.startTimeMs !== point.startTimeMs;
      const added = restarted ? point.cpuSeconds : point.cpuSeconds - before.cpuSeconds;
      state.cpuSeconds += added;
      this.#podSeconds += added;
    }
    this.#pods.set(uid, { identity, cpuSeconds: state.cpuSeconds, containers: next });
  }

  /**
   * Frozen together with its time: a value that moved under one timestamp would be thrown away by scrapers. Memory and rate are
   * those of the present, as a kubelet measures its node, so they are without pods whose samples are stale. The counter never
   * goes back.
   */
  #recordNode(timestampMs: number, nowMs: number): void {
    const before = this.#node;
    if (before !== undefined && timestampMs <= before.timestampMs) return;
    const own = this.#own();
    const { memoryBytes, ...pods } = sum(this.pods().filter((pod) => isFresh(pod, nowMs)));
    const cpuSeconds = Math.max(this.#podSeconds + own.cpuSeconds, before?.cpuSeconds ?? 0);
    this.#node = { ...pods, timestampMs, cpuSeconds, memoryBytes: memoryBytes + own.memoryBytes };
  }
}

/** Undefined for a container that was not measured: one that runs has memory. */
function nextPoint(
  { timestampMs, windowMs }: PodSample,
  { name, cpu, memory, swap, startTimeMs }: ContainerSample,
  before: ContainerPoint | undefined,
): ContainerPoint | undefined {
  const memoryBytes = Math.round(parseQuantity(memory));
  if (memoryBytes <= 0) return undefined;
  const cores = Math.max(parseQuantity(cpu), 0);
  const first = before === undefined || before.startTimeMs !== startTimeMs;
  // Not a newer sample: the one before stands, whatever this one says.
  if (!first && timestampMs <= before.timestampMs) return before;
  const elapsedMs = first ? windowMs : timestampMs - before.timestampMs;
  const cpuSeconds = (first ? LEAST_CPU_SECONDS : before.cpuSeconds) + (cores * elapsedMs) / 1000;
  const swapBytes = swap === undefined ? undefined : Math.max(0, Math.round(parseQuantity(swap)));
  return { name, startTimeMs, timestampMs, cpuSeconds, cores, memoryBytes, ...present({ swapBytes }) };
}

/** Counters and rates add up; the moment is that of the latest. */
function sum(points: readonly Point[]): Point {
  const total: Point = { timestampMs: 0, cpuSeconds: 0, cores: 0, memoryBytes: 0 };
  for (const point of points) {
    total.timestampMs = Math.max(total.timestampMs, point.timestampMs);
    total.cpuSeconds += point.cpuSeconds;
    total.cores += point.cores;
    total.memoryBytes += point.memoryBytes;
    if (point.swapBytes !== undefined) total.swapBytes = (total.swapBytes ?? 0) + point.swapBytes;
  }
  return total;
}
