import {
  type ContainerSample,
  podMetrics,
  type PodMetrics,
  type PodSample,
  type RunningPod,
} from '../api/pod-usage.ts';
import { containersOf, isFinished } from '../api/pod.ts';
import type { NamespaceMapping } from '../api/virtual-node.ts';
import type { ContainerStatus, Pod } from '../api/wire.ts';
import type { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { eachAtOnce } from '../lib/each-at-once.ts';
import { errorMessage } from '../lib/errors.ts';
import { present } from '../lib/fields.ts';
import type { Logger } from '../lib/log.ts';
import { podKey } from './home-pods.ts';
import type { Provider } from './provider.ts';

/** Scrapes come in bursts (metrics-server, Prometheus); the foreign cluster is asked once for all of them. */
const CACHE_MS = 5_000;
/** Those who scrape wait for ten seconds: what has been read by then is worth more than nothing. */
const READ_TIMEOUT_MS = 8_000;
/** How many namespaces are read at once, and for how long one that hangs may keep the place of others. */
const AT_ONCE = 4;
const NAMESPACE_TIMEOUT_MS = 4_000;
const METRICS_API = 'the foreign metrics API';

/** Keeps what was read, and answers scrapes from it. */
interface UsageRecord {
  record(samples: readonly PodSample[], nowMs: number): void;
  /** Something could not be read; what `record` was told just before holds. */
  recordFailure(): void;
  /** Forgets all pods but those for which it is true. */
  prune(isMeasured: (uid: string) => boolean): void;
}

/** What offloaded pods use, from the foreign cluster's metrics API, under their names and UIDs at home. */
export class ForeignUsage {
  readonly #provider: Provider;
  readonly #usage: UsageRecord;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Namespaces at home of whose pods nothing could be read, the one that was tried longest ago first. */
  readonly #failing = new Set<string>();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(provider: Provider, usage: UsageRecord, { clock, log }: { clock: Clock; log: Logger }) {
    this.#provider = provider;
    this.#usage = usage;
    this.#clock = clock;
    this.#log = log;
  }

  /** Reads anew unless that was done a moment ago. */
  async refresh(): Promise<void> {
    if (this.#clock.monotonic() - this.#readAt < CACHE_MS) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { homePods } = this.#provider;
    const mappings = this.#inTurns();
    using limit = startDeadline(this.#clock, READ_TIMEOUT_MS, METRICS_API);
    const read = await eachAtOnce(mappings, AT_ONCE, async (mapping) => this.#samples(mapping, limit.signal));
    this.#readAt = this.#clock.monotonic();
    // Before the rest is recorded: what ended pods used last is not used by the node any more.
    this.#usage.prune((uid) => homePods.byIndex('uid', uid).some((pod) => !isFinished(pod)));
    const known = read.filter((samples) => samples !== undefined);
    // Of a cluster that says nothing at all, not even the node is known.
    if (known.length > 0 || mappings.length === 0) this.#usage.record(known.flat(), this.#clock.now());
    if (known.length < mappings.length) this.#usage.recordFailure();
  }

  /** Those that may take all the time come last, each of them first at some time. */
  #inTurns(): NamespaceMapping[] {
    const all = new Map(
      Array.from(this.#provider.tenants.all(), ({ mapping }) => [mapping.homeNamespace, mapping]),
    );
    for (const namespace of this.#failing) {
      const mapping = all.get(namespace);
      all.delete(namespace);
      if (mapping === undefined) this.#failing.delete(namespace);
      else all.set(namespace, mapping);
    }
    return [...all.values()];
  }

  /** Of one namespace; undefined when it cannot be read, which hides nothing of the others. */
  async #samples(
    { tenantNamespace: namespace, homeNamespace }: NamespaceMapping,
    signal: AbortSignal,
  ): Promise<PodSample[] | undefined> {
    const { foreign, homePods } = this.#provider;
    // The others have taken all the time, which is not its fault.
    if (signal.aborted) return undefined;
    using limit = startDeadline(this.#clock, NAMESPACE_TIMEOUT_MS, METRICS_API, signal);
    try {
      const { items } = await foreign.client.list(podMetrics, { namespace, signal: limit.signal });
      this.#failing.delete(homeNamespace);
      const seen = new Set<string>();
      return items.flatMap((item) => {
        const home = homePods.get(`${homeNamespace}/${item.metadata.name}`);
        const timestampMs = Math.min(Date.parse(item.timestamp ?? ''), this.#clock.now());
        // A metrics server speaks of a pod for a while after its end.
        if (home === undefined || isFinished(home) || seen.has(home.metadata.uid)) return [];
        seen.add(home.metadata.uid);
        // One that has no time says nothing, and one from the future would stand for all that come later.
        return Number.isNaN(timestampMs) ? [] : [sampleOf(item, home, timestampMs)];
      });
    } catch (error) {
      // No metrics server over there is no fault of this node; the scrape says so in scrape_error.
      const level = this.#failing.delete(homeNamespace) ? 'debug' : 'info';
      this.#failing.add(homeNamespace);
      this.#log[level]('no usage from a foreign namespace', { namespace, error: errorMessage(error) });
      return undefined;
    }
  }
}

/** Windows of metrics servers are below two minutes. */
const MOST_WINDOW_MS = 3_600_000;

/**
 * Whoever scrapes this node trusts it, and the foreign cluster is not trusted: only containers that home knows count, each once, and
 * only amounts that are texts.
 */
function sampleOf(item: PodMetrics, home: Pod, timestampMs: number): PodSample {
  const started = Date.parse(home.status?.startTime ?? '');
  const [namespace = '', name = ''] = podKey(home).split('/');
  const usages = new Map<unknown, Usage>();
  for (const one of item.containers ?? []) if (!usages.has(one.name)) usages.set(one.name, one.usage ?? {});
  return {
    namespace,
    name,
    uid: home.metadata.uid,
    ...(Number.isNaN(started) ? {} : { startTimeMs: started }),
    timestampMs,
    windowMs: Math.min(durationMs(item.window ?? ''), MOST_WINDOW_MS),
    containers: containersOf(home).flatMap(({ name: one }): ContainerSample[] => {
      const usage = usages.get(one);
      return usage === undefined ? [] : [containerSample(one, usage, home)];
    }),
  };
}

type Usage = NonNullable<NonNullable<PodMetrics['containers']>[number]['usage']>;

function containerSample(name: string, usage: Usage, home: Pod): ContainerSample {
  const status = containerStatusesOf(home.status).find((container) => container.name === name);
  const started = Date.parse(status?.state?.running?.startedAt ?? '');
  const { cpu, memory, swap } = usage;
  return {
    name,
    cpu: textOr(cpu, '0'),
    memory: textOr(memory, '0'),
    ...present({
      swap: typeof swap === 'string' ? swap : undefined,
      startTimeMs: Number.isNaN(started) ? undefined : started,
    }),
  };
}

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other);

/** Of all kinds of containers: sidecars are init containers that run on, and whoever debugs a pod uses something, too. */
export const containerStatusesOf = (status: Pod['status']): ContainerStatus[] => [
  ...(status?.containerStatuses ?? []),
  ...(status?.initContainerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

/** Pods with containers that run, by their status: the foreign metrics API knows a pod only after its first sample. */
export async function runningPods(homePods: Pick<Informer<Pod>, 'eachInTurns'>): Promise<RunningPod[]> {
  const running: RunningPod[] = [];
  await homePods.eachInTurns(({ metadata: { namespace = '', name, uid }, status }) => {
    const startTimeMs = Date.parse(status?.startTime ?? '');
    const containers = containerStatusesOf(status).flatMap((container) => {
      const at = Date.parse(container.state?.running?.startedAt ?? '');
      return Number.isNaN(at) ? [] : [{ name: container.name, startTimeMs: at }];
    });
    if (Number.isNaN(startTimeMs) || containers.length === 0) return;
    running.push({ namespace, name, uid, startTimeMs, containers });
  });
  return running;
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** A Go duration such as `1m3.5s`; 0 for what is none. */
export function durationMs(text: string): number {
  if (!/^([\d.]+(ms|h|m|s))+$/u.test(text)) return 0;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ms|h|m|s)/gu)) {
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  }
  return Number.isFinite(total) ? total : 0;
}
