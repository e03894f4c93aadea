import {
  type ContainerSample,
  podMetrics,
  type PodMetrics,
  type PodSample,
  type RunningPod,
} from '../api/pod-usage.ts';
import type { Pod } from '../api/wire.ts';
import type { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { present } from '../lib/fields.ts';
import type { Logger } from '../lib/log.ts';
import { podKey } from './home-pods.ts';
import type { Provider } from './provider.ts';

/** Scrapes come in bursts (metrics-server, Prometheus); the foreign cluster is asked once for all of them. */
const CACHE_MS = 5_000;
const READ_TIMEOUT_MS = 10_000;

/** Keeps what was read, and answers scrapes from it. */
interface UsageRecord {
  record(samples: readonly PodSample[], nowMs: number): void;
  recordFailure(): void;
  /** Forgets all pods but these. */
  prune(uids: ReadonlySet<string>): void;
}

/** What offloaded pods use, from the foreign cluster's metrics API, under their names and UIDs at home. */
export class ForeignUsage {
  readonly #provider: Provider;
  readonly #usage: UsageRecord;
  readonly #clock: Clock;
  readonly #log: Logger;
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
    const limit = new AbortController();
    const cancel = this.#clock.after(READ_TIMEOUT_MS, () => limit.abort(new Error('took too long')));
    try {
      const samples = await this.#samples(limit.signal);
      this.#usage.record(samples, this.#clock.now());
    } catch (error) {
      // No metrics server over there is no fault of this node; the scrape says so in scrape_error.
      this.#log.debug('no usage from the foreign cluster', { error: errorMessage(error) });
      this.#usage.recordFailure();
    } finally {
      cancel();
      this.#readAt = this.#clock.monotonic();
    }
    this.#usage.prune(new Set(this.#provider.homePods.valuesOf('uid')));
  }

  async #samples(signal: AbortSignal): Promise<PodSample[]> {
    const { foreign, tenants, homePods } = this.#provider;
    const samples: PodSample[] = [];
    for (const { mapping } of tenants.all()) {
      const { tenantNamespace: namespace, homeNamespace } = mapping;
      const { items } = await foreign.client.list(podMetrics, { namespace, signal });
      for (const item of items) {
        const home = homePods.get(`${homeNamespace}/${item.metadata.name}`);
        const timestampMs = Math.min(Date.parse(item.timestamp ?? ''), this.#clock.now());
        // One that has no time says nothing, and one from the future would stand for all that come later.
        if (home !== undefined && !Number.isNaN(timestampMs)) samples.push(sampleOf(item, home, timestampMs));
      }
    }
    return samples;
  }
}

function sampleOf(item: PodMetrics, home: Pod, timestampMs: number): PodSample {
  const started = Date.parse(home.status?.startTime ?? '');
  const [namespace = '', name = ''] = podKey(home).split('/');
  return {
    namespace,
    name,
    uid: home.metadata.uid,
    ...(Number.isNaN(started) ? {} : { startTimeMs: started }),
    timestampMs,
    windowMs: durationMs(item.window ?? ''),
    containers: (item.containers ?? []).map((container) => containerSample(container, home)),
  };
}

function containerSample(
  { name, usage }: NonNullable<PodMetrics['containers']>[number],
  home: Pod,
): ContainerSample {
  const status = home.status?.containerStatuses?.find((container) => container.name === name);
  const started = Date.parse(status?.state?.running?.startedAt ?? '');
  return {
    name,
    cpu: usage?.cpu ?? '0',
    memory: usage?.memory ?? '0',
    ...present({ swap: usage?.swap, startTimeMs: Number.isNaN(started) ? undefined : started }),
  };
}

/** Pods with containers that run, by their status: the foreign metrics API knows a pod only after its first sample. */
export async function runningPods(homePods: Pick<Informer<Pod>, 'eachInTurns'>): Promise<RunningPod[]> {
  const running: RunningPod[] = [];
  await homePods.eachInTurns(({ metadata: { namespace = '', name, uid }, status }) => {
    const startTimeMs = Date.parse(status?.startTime ?? '');
    const containers = (status?.containerStatuses ?? []).flatMap((container) => {
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
