import { createHash } from 'node:crypto';

import { timestamp } from '../../api/conditions.ts';
import { LABEL_VIRTUAL_NODE } from '../../api/names.ts';
import { events } from '../../api/resources.ts';
import type { NamespaceMapping } from '../../api/virtual-node.ts';
import type { Draft, KubeEvent, Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

/** Events of the foreign cluster, read with distrust and told as home's own. Pure. */

/** What is kept of one: bounded, cleaned, nothing else of it. */
export interface RemoteEvent {
  /** Of the Event over there, which keeps it while it counts. */
  uid: string;
  /** As it says whom it is about; not yet believed. Of a claim where events of claims are read. */
  podName: string;
  podUid: string;
  fieldPath?: string;
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  component: string;
  /** Milliseconds since the epoch, by the clock over there. */
  firstAt: number;
  lastAt: number;
  count: number;
}

/** What an event is told for: news an hour old is nobody's news, and API servers keep no more by default. */
export const RECENT_MS: number = 60 * 60_000;
/** As client-go and the API server bound it. */
const MAX_MESSAGE = 1024;
/** Of a message longer than this the rest is not even looked at. */
const MAX_READ = 8 * MAX_MESSAGE;
const MAX_COUNT = 1_000_000_000;
const UID = /^[\w-]{1,64}$/u;
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/u;
const REASON = /^[A-Za-z][A-Za-z0-9]{0,127}$/u;
const FIELD_PATH = /^[\w.[\]{}-]{1,256}$/u;
const COMPONENT = /^[\w./-]{1,63}(, [\w.-]{1,63}){0,3}$/u;
/** Control characters, and what reverses or hides text in a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\s]+/gu;

/** Undefined of what is not about that kind, not of the form that Kubernetes' own components write, or no longer news. */
export function readEvent(
  event: KubeEvent,
  nowMs: number,
  about: 'Pod' | 'PersistentVolumeClaim' = 'Pod',
): RemoteEvent | undefined {
  const { uid } = event.metadata;
  const { kind, name: podName, uid: podUid, fieldPath } = event.involvedObject ?? {};
  const { type, reason } = event;
  if (kind !== about || !matches(UID, uid) || !matches(UID, podUid) || !matches(NAME, podName))
    return undefined;
  if ((type !== 'Normal' && type !== 'Warning') || !matches(REASON, reason)) return undefined;
  const times = timesOf(event);
  if (times === undefined || nowMs - times.lastAt >= RECENT_MS) return undefined;
  return {
    uid: flat(uid),
    podName: flat(podName),
    podUid: flat(podUid),
    ...(matches(FIELD_PATH, fieldPath) && { fieldPath: flat(fieldPath) }),
    type,
    reason: flat(reason),
    message: cleaned(event.message),
    component: componentOf(event),
    ...times,
    count: countOf(event),
  };
}

/** The names over there and at home of what the event is about. */
interface EventPlaces {
  home: Pod;
  remote: Pod;
  /** Name of the virtual node, for people to see where it happened. */
  virtualNode: string;
  nodeName: string;
  nowMs: number;
}

/** The same Event at home, under a name that follows from the one over there: it is told once, and then counts. */
export function homeEvent(event: RemoteEvent, places: EventPlaces): Draft<KubeEvent> {
  const { home, virtualNode, nodeName, nowMs } = places;
  const { name, namespace = 'default', uid } = home.metadata;
  // Clocks of two clusters differ, and nothing may come from the future.
  const at = (ms: number): string => timestamp(Math.min(ms, nowMs));
  const component = `${event.component}, ${virtualNode}`;
  return {
    metadata: {
      name: homeEventName(event, places),
      namespace,
      labels: { [LABEL_VIRTUAL_NODE]: nodeName },
    },
    involvedObject: {
      apiVersion: 'v1',
      kind: 'Pod',
      name,
      namespace,
      uid,
      ...(event.fieldPath !== undefined && { fieldPath: event.fieldPath }),
    },
    type: event.type,
    reason: event.reason,
    message: atHome(event.message, places),
    firstTimestamp: at(event.firstAt),
    lastTimestamp: at(event.lastAt),
    count: event.count,
    source: { component },
    reportingComponent: component,
    reportingInstance: nodeName,
  };
}

function homeEventName({ uid }: RemoteEvent, { home, virtualNode }: EventPlaces): string {
  const hash = createHash('sha256').update(`${virtualNode}\0${home.metadata.uid}\0${uid}`).digest('hex');
  return `${home.metadata.name.slice(0, 200).replace(/[^a-z0-9]+$/u, '')}.${hash.slice(0, 20)}`;
}

/** `tenant/pod` as scheduler and `pod_tenant(UID)` as kubelets name the pod; all else is left as it was said. */
function atHome(message: string, { home, remote }: EventPlaces): string {
  const there = remote.metadata;
  const here = home.metadata;
  const said = message
    .replaceAll(`${there.namespace}/${there.name}`, `${here.namespace}/${here.name}`)
    .replaceAll(
      `${there.name}_${there.namespace}(${there.uid})`,
      `${here.name}_${here.namespace}(${here.uid})`,
    );
  return bounded(said);
}

const matches = (pattern: RegExp, value: unknown): value is string =>
  typeof value === 'string' && pattern.test(value);

/** A string of its own: a slice would keep all of what it was cut from. */
const flat = (text: string): string => Buffer.from(text).toString();

function cleaned(message: unknown): string {
  if (typeof message !== 'string') return '';
  return bounded(flat(message.slice(0, MAX_READ).replaceAll(UNPRINTABLE, ' ').trim()));
}

const bounded = (text: string): string =>
  text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE - 3).replace(/[\uD800-\uDBFF]$/u, '')}...`;

function componentOf({ source, reportingComponent }: KubeEvent): string {
  const said = source?.component ?? reportingComponent;
  return matches(COMPONENT, said)
    ? flat(said)
    : matches(COMPONENT, reportingComponent)
      ? flat(reportingComponent)
      : 'unknown';
}

/** Of both forms: that of core/v1 and that of events.k8s.io, as core/v1 shows it (KEP-383). */
function timesOf(event: KubeEvent): { firstAt: number; lastAt: number } | undefined {
  const { firstTimestamp, lastTimestamp, eventTime, series, metadata } = event;
  const of = (...said: unknown[]): number =>
    said
      .map((text) => (typeof text === 'string' && text.length < 64 ? Date.parse(text) : NaN))
      .find((ms) => !Number.isNaN(ms)) ?? NaN;
  const lastAt = of(series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp);
  const firstAt = of(firstTimestamp, eventTime, metadata.creationTimestamp);
  if (Number.isNaN(lastAt)) return undefined;
  return { firstAt: Number.isNaN(firstAt) ? lastAt : Math.min(firstAt, lastAt), lastAt };
}

function countOf({ series, count }: KubeEvent): number {
  const said: unknown = series?.count ?? count;
  return typeof said === 'number' && said >= 1 ? Math.min(MAX_COUNT, Math.trunc(said)) : 1;
}

interface RemoteEventsOptions {
  mapping: NamespaceMapping;
  foreign: KubeClient;
  clock: Clock;
  log: Logger;
}

/**
 * Where events of one tenant namespace come from. None is kept: each is handed on as it comes, so that memory does not
 * grow with what a provider sends. A provider that does not let them be read (an earlier version) costs the events and
 * nothing else: this is no part of what makes a tenant complete.
 */
export class RemoteEvents {
  readonly #options: RemoteEventsOptions;
  readonly #abort = new AbortController();
  #informer: Informer<KubeEvent> | undefined;
  #running: Promise<void> = Promise.resolve();
  #explained = false;

  constructor(options: RemoteEventsOptions) {
    this.#options = options;
  }

  /** Returns at once. `isNew`: it has happened just now, and was not there when the list was read. */
  open(tell: (event: RemoteEvent, isNew: boolean) => void): void {
    if (this.#informer !== undefined || this.#abort.signal.aborted) return;
    const { mapping, foreign, clock, log } = this.#options;
    const informer = new Informer<KubeEvent>({
      client: foreign,
      type: events,
      list: { namespace: mapping.tenantNamespace, fieldSelector: 'involvedObject.kind=Pod' },
      clock,
      log: log.named('events'),
      transform: (object) => {
        const event = readEvent(object, clock.now());
        if (event !== undefined) tell(event, informer.synced);
        return undefined;
      },
    });
    this.#informer = informer;
    informer.onContact(() => this.#explain(informer.contact.error));
    this.#running = informer.start(this.#abort.signal).catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('tenant closed'));
    await this.#running;
    await this.#informer?.stop();
  }

  #explain(error: string | undefined): void {
    if (this.#explained || error === undefined || !/forbidden/iu.test(error)) return;
    this.#explained = true;
    this.#options.log.info(
      'the provider does not let events be read: what happens to pods there is not told at home, all else goes on',
      { error },
    );
  }
}
