import type { EventReason } from '../api/reasons/events.ts';
import { events } from '../api/resources.ts';
import type { KubeEvent, KubeObject } from '../api/wire.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { present } from '../lib/fields.ts';
import type { Component } from '../lib/lifecycle.ts';
import { remember } from '../lib/remember.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { shownText } from '../lib/untrusted.ts';
import type { ClusterBasics } from './client.ts';

export type EventType = 'Normal' | 'Warning';

/** The object that an event is about; any object from the API server. */
export type EventSubject = Pick<KubeObject, 'apiVersion' | 'kind'> & {
  metadata: Pick<KubeObject['metadata'], 'name'> & Partial<KubeObject['metadata']>;
};

/** Named in full, since the API server leaves the kind out of objects in a list. */
export const aboutPod = ({ metadata }: Pick<EventSubject, 'metadata'>): EventSubject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
});

declare const isRelayed: unique symbol;
/** A reason that another program gave to an event, which is told here, too. */
export type RelayedReason = string & { readonly [isRelayed]: true };
export const relayed = (reason: string): RelayedReason => reason as RelayedReason;

/** Tells people what has happened to an object. It never throws and never waits. */
export interface EventRecorder {
  event(subject: EventSubject, type: EventType, reason: EventReason | RelayedReason, message: string): void;
}

export interface EventRecorderOptions extends ClusterBasics {
  /** The reporting component, for example `tributary`. */
  component: string;
  /** The node's or pod's name. */
  host?: string;
}

/** As client-go does: the same news within this time becomes one Event with a count. */
const SERIES_MS = 10 * 60_000;
/** At most one write for each Event in this time. News that comes meanwhile is counted in the next write. */
const WRITE_INTERVAL_MS = 5000;
/** As client-go's spam filter does: each object has a burst, and then one Event in five minutes. */
const BURST = 25;
const REFILL_MS = 5 * 60_000;
/** Series, and objects in the spam filter, that are remembered. The oldest is forgotten first. */
const MAX_REMEMBERED = 2048;
/** All writes together: other sides cause events of many objects, and their words differ each time. */
export const EVENT_RATE = { burst: 1000, perSecond: 10 };
/** Writes under way; beyond it news is held back with the series, and beyond memory it is lost. */
const MAX_WRITES = 8;
const MAX_MESSAGE = 1024;

interface Series {
  readonly draft: KubeEvent;
  count: number;
  written: number;
  /** Monotonic. */
  lastAt: number;
  lastWriteAt: number;
  /** A write is under way or a timer runs. */
  busy: boolean;
}

interface Budget {
  tokens: number;
  at: number;
}

/** Records `core/v1` Events as client-go does in essence: aggregated, rate-limited, best effort. */
export class ClientEventRecorder implements EventRecorder, Component {
  readonly name = 'events';
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #budgets = new Map<string, Budget>();
  readonly #abort = new AbortController();
  readonly #writes = new Set<Promise<void>>();
  readonly #rate: TokenBucket;
  #sequence = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#rate = new TokenBucket({ clock: options.clock, ...EVENT_RATE });
  }

  /** Waits until the writes under way have ended. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#writes);
    this.#abort.abort(new Error('stopped'));
  }

  event(subject: EventSubject, type: EventType, reason: string, message: string): void {
    const { metadata } = subject;
    const object = `${subject.kind}/${metadata.namespace}/${metadata.name}/${metadata.uid}`;
    const key = `${object}/${type}/${reason}/${message}`;
    const now = this.#options.clock.monotonic();
    const known = this.#series.get(key);
    if (known !== undefined && now - known.lastAt < SERIES_MS) {
      known.count++;
      known.lastAt = now;
      this.#flush(key, known);
      return;
    }
    if (!this.#mayStart(object, now)) return;
    const series: Series = {
      draft: this.#draft(subject, type, reason, message),
      count: 1,
      written: 0,
      lastAt: now,
      lastWriteAt: -Infinity,
      busy: false,
    };
    remember(this.#series, key, series, MAX_REMEMBERED);
    this.#flush(key, series);
  }

  #mayStart(object: string, now: number): boolean {
    const budget = this.#budgets.get(object) ?? { tokens: BURST, at: now };
    const tokens = Math.min(BURST, budget.tokens + (now - budget.at) / REFILL_MS);
    remember(this.#budgets, object, { tokens: tokens < 1 ? tokens : tokens - 1, at: now }, MAX_REMEMBERED);
    return tokens >= 1;
  }

  #flush(key: string, series: Series): void {
    if (series.busy || series.written === series.count || this.#abort.signal.aborted) return;
    const { clock } = this.#options;
    const waitMs = Math.max(series.lastWriteAt + WRITE_INTERVAL_MS - clock.monotonic(), this.#rate.waitMs(1));
    if (waitMs > 0 || this.#writes.size >= MAX_WRITES) {
      series.busy = true;
      clock.after(waitMs > 0 ? waitMs : WRITE_INTERVAL_MS, () => {
        series.busy = false;
        this.#flush(key, series);
      });
      return;
    }
    series.busy = true;
    this.#rate.take(1);
    series.lastWriteAt = clock.monotonic();
    const write = this.#write(key, series).finally(() => {
      this.#writes.delete(write);
      series.busy = false;
      this.#flush(key, series);
    });
    this.#writes.add(write);
  }

  async #write(key: string, series: Series): Promise<void> {
    const { client, clock, log } = this.#options;
    const options = { metadataOnly: true, signal: this.#abort.signal };
    const { count, draft } = series;
    const news = { count, lastTimestamp: new Date(clock.now()).toISOString() };
    try {
      if (series.written > 0) {
        await client.patch(events, draft.metadata, { type: 'merge', body: news }, options);
      } else {
        await client.create(events, { ...draft, ...news }, options);
      }
      series.written = count;
    } catch (error) {
      // An Event is news, not state: it is not worth a retry. A vanished one (they live an hour) starts anew.
      series.written = count;
      if (hasCode(error, 'NotFound')) this.#series.delete(key);
      log.debug('event not recorded', { reason: draft.reason, error: errorMessage(error) });
    }
  }

  #draft(subject: EventSubject, type: EventType, reason: string, message: string): KubeEvent {
    const { component, host, clock } = this.#options;
    const { apiVersion, kind, metadata } = subject;
    const namespace = metadata.namespace ?? 'default';
    const now = clock.now();
    const { name, uid, resourceVersion } = metadata;
    // As client-go: the object's name and nanoseconds in hex; ours count within a millisecond.
    const nanoseconds = BigInt(Math.trunc(now)) * 1_000_000n + BigInt(this.#sequence++ % 1_000_000);
    return {
      metadata: {
        name: `${name.slice(0, 230)}.${nanoseconds.toString(16)}`,
        namespace,
      } as KubeEvent['metadata'],
      involvedObject: present({
        apiVersion,
        kind,
        name,
        namespace: metadata.namespace,
        uid,
        resourceVersion,
      }),
      type,
      reason,
      message: cutMessage(message),
      firstTimestamp: new Date(now).toISOString(),
      source: present({ component, host }),
      reportingComponent: component,
      reportingInstance: host ?? '',
    };
  }
}

const cutMessage = (message: string): string => {
  const text = shownText(message, 8 * MAX_MESSAGE);
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 3).toWellFormed()}...` : text;
};
