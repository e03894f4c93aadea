import { createHash } from 'node:crypto';

import { timestamp } from '../../api/conditions.ts';
import { LABEL_VIRTUAL_NODE } from '../../api/names.ts';
import { events } from '../../api/resources.ts';
import type { Draft, KubeEvent, Pod } from '../../api/wire.ts';
import { Informer } from '../../kube/informer.ts';
import type { SidesOptions } from '../reflect/mirror-sides.ts';

/** Events of the foreign cluster: checked, since they are not trusted, and written as events at home. */

/** What is kept of an Event, bounded and cleaned. */
export interface RemoteEvent {
  /** UID of the Event over there; it stays the same while its count grows. */
  uid: string;
  /** The object that it claims to be about; not yet verified. A claim where events of claims are read. */
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

/** Older events are not told: API servers keep events for an hour by default. */
export const RECENT_MS: number = 60 * 60_000;
/** As client-go and the API server bound it. */
const MAX_MESSAGE = 1024;
/** Of a longer message the rest is not even looked at. */
const MAX_READ = 8 * MAX_MESSAGE;
const MAX_COUNT = 1_000_000_000;
const UID = /^[\w-]{1,64}$/u;
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/u;
const REASON = /^[A-Za-z][A-Za-z0-9]{0,127}$/u;
const FIELD_PATH = /^[\w.[\]{}-]{1,256}$/u;
const COMPONENT = /^[\w./-]{1,63}(, [\w.-]{1,63}){0,3}$/u;
/** Control characters, and what reverses or hides text in a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\s]+/gu;

type EventfulKind = 'Pod' | 'PersistentVolumeClaim';

/** Undefined for an Event about another kind, of a form that Kubernetes' own components do not write, or too old. */
export function readEvent(
  event: KubeEvent,
  nowMs: number,
  about: EventfulKind = 'Pod',
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
  /** Name of the VirtualNode, by which names of events differ. */
  virtualNode: string;
  nodeName: string;
  nowMs: number;
}

/** The same Event at home. Its name follows from the one over there, so that it is created once, and then counted. */
export function homeEvent(event: RemoteEvent, places: EventPlaces): Draft<KubeEvent> {
  const { home, nodeName, nowMs } = places;
  const { name, namespace = 'default', uid } = home.metadata;
  // Clocks of two clusters differ, and nothing may come from the future.
  const at = (ms: number): string => timestamp(Math.min(ms, nowMs));
  const { component } = event;
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
    // As from a kubelet of this node: `kubectl describe` shows both, and selectors find the component.
    source: { component, host: nodeName },
    reportingComponent: component,
    reportingInstance: nodeName,
  };
}

function homeEventName({ uid }: RemoteEvent, { home, virtualNode }: EventPlaces): string {
  const hash = createHash('sha256').update(`${virtualNode}\0${home.metadata.uid}\0${uid}`).digest('hex');
  return `${home.metadata.name.slice(0, 200).replace(/[^a-z0-9]+$/u, '')}.${hash.slice(0, 20)}`;
}

/** Replaces `tenant/pod`, as schedulers name the pod, and `pod_tenant(UID)`, as kubelets do; the rest stays as it is. */
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

/** A string of its own: a slice would keep the whole original in memory. */
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

type RemoteEventsOptions = Pick<SidesOptions, 'mapping' | 'foreign' | 'clock' | 'log' | 'awaitsRights'>;

/** Hands each event about objects of that kind on as it comes, and keeps none. `isNew`: the list did not have it. */
export function followEvents(
  { mapping, foreign, clock, log, awaitsRights = false }: RemoteEventsOptions,
  about: EventfulKind,
  tell: (event: RemoteEvent, isNew: boolean) => void,
): Informer<KubeEvent> {
  const informer = new Informer<KubeEvent>({
    client: foreign,
    type: events,
    list: { namespace: mapping.tenantNamespace, fieldSelector: `involvedObject.kind=${about}` },
    clock,
    log,
    awaitsRights,
    transform: (object) => {
      const event = readEvent(object, clock.now(), about);
      if (event !== undefined) tell(event, informer.synced);
      return undefined;
    },
  });
  return informer;
}

/**
 * Events of one tenant namespace. None is kept, so that memory does not grow with what a foreign cluster sends. A foreign
 * cluster of an earlier version does not let events be read; then only they are missing, since a tenant's `synced` does not
 * depend on this.
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
    const informer = followEvents({ ...this.#options, log: this.#options.log.named('events') }, 'Pod', tell);
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
      'the foreign cluster does not let events be read: what happens to pods there is not told at home, all else goes on',
      { error },
    );
  }
}
