import {
  addTo,
  amountOf,
  type Amounts,
  formatAmount,
  parseAmounts,
  raiseTo,
  type Sums,
} from '../../api/amounts.ts';
import type { CountedPod } from '../../api/pod-requests.ts';
import { type ChangeListener, keyOf } from '../../kube/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { TenantDirectory } from './tenant-directory.ts';

/** Pods of the cluster that have not finished, by `namespace/name`; filled before the first question. */
export interface LivePods {
  get(key: string): CountedPod | undefined;
  list(): Iterable<CountedPod>;
  onChange(listener: ChangeListener<CountedPod>): () => void;
  /** `failingSince`: since when we do not hear of changes, milliseconds of the monotonic clock. */
  readonly contact: { readonly failingSince: number | undefined };
}

interface LedgerOptions {
  /** What is counted, as error messages call it. Default: pods. */
  what?: string;
  clock: Clock;
  /** Pods, or anything else that counts by its `requests`. */
  pods: LivePods;
  tenants: Pick<TenantDirectory, 'namespacesOf' | 'grantOf'>;
}

/** A pod that is to be created, or is to cost more. */
export interface Charge {
  peer: string;
  namespace: string;
  name: string;
  uid: string;
  cost: Amounts;
  isNew: boolean;
  isDryRun: boolean;
}

/** How long something counts that was admitted but not seen yet: its creation may still fail after we let it in. */
const RESERVED_MS = 15_000;
/** When the watch has failed for so long, nothing is let in. Shorter than RESERVED_MS. */
const BLIND_MS = 10_000;

/**
 * What each peer uses over all its tenant namespaces, and whether there is room for more. Live pods count, and pods that were
 * let in a moment ago. Questions are answered synchronously, so two never get the same room.
 */
export class Ledger implements Component {
  readonly name = 'ledger of guests';
  readonly #options: LedgerOptions;
  /** Requests of live pods, by namespace, because the peer of a namespace may become known later. */
  readonly #totals = new Map<string, Sums>();
  /** Keys of pods that are being deleted. */
  readonly #ending = new Set<string>();
  readonly #reservations = new Reservations();
  #unsubscribe: (() => void) | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** To be called when the pods are known. */
  start(signal: AbortSignal): void {
    signal.throwIfAborted();
    const { pods } = this.#options;
    for (const pod of pods.list()) this.#count(keyOf(pod), pod, undefined);
    this.#unsubscribe = pods.onChange((...change) => {
      this.#count(...change);
      this.#reservations.seen(...change);
    });
  }

  stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  /**
   * Why there is no room; undefined where there is, which is then reserved. Throws Unavailable where that cannot be known now,
   * and Invalid for a grant that cannot be read.
   */
  ask(entry: Charge): string | undefined {
    this.#checkSight();
    const { clock, tenants } = this.#options;
    const { peer, namespace, cost } = entry;
    const grant = tenants.grantOf(peer);
    if (grant === undefined)
      return `nothing is granted to peer ${peer}: its contract has ended or is not in force yet`;
    const key = `${namespace}/${entry.name}`;
    const live = this.#liveOf(key);
    const held: Sums = new Map(live);
    raiseTo(held, this.#reservations.get(key)?.amounts ?? new Map());
    const requested = above(cost, held);
    const granted = new Map([...ALWAYS_BOUNDED, ...parseAmounts(grant)]);
    const refusal = refusalOf({ peer, requested, used: this.used(peer), granted });
    if (refusal !== undefined) return refusal;
    // Also of a resize that asks for more than the pod has; what an earlier question has reserved ends by itself.
    if (!entry.isDryRun && (entry.isNew ? cost : above(cost, live)).size > 0) {
      const untilMs = clock.monotonic() + RESERVED_MS;
      this.#reservations.reserve(key, { namespace, uid: entry.uid, amounts: cost, untilMs });
    }
    return undefined;
  }

  /** How many pods of peers are in a namespace. */
  podsIn(namespace: string): number {
    return Number(amountOf(this.#totals.get(namespace) ?? new Map(), 'pods') / 1000n);
  }

  used(peer: string): Sums {
    const namespaces = new Set(this.#options.tenants.namespacesOf(peer));
    const used: Sums = new Map();
    for (const namespace of namespaces) addTo(used, this.#totals.get(namespace) ?? []);
    for (const key of this.#ending) {
      const pod = this.#options.pods.get(key);
      if (pod !== undefined && namespaces.has(pod.metadata.namespace ?? '') && this.#isOverdue(pod))
        addTo(used, pod.requests, -1n);
    }
    for (const [key, { namespace, amounts }] of this.#reservations.all()) {
      if (namespaces.has(namespace)) addTo(used, above(amounts, this.#liveOf(key)));
    }
    return used;
  }

  #checkSight(): void {
    const { clock, pods, what = 'pods' } = this.#options;
    const nowMs = clock.monotonic();
    const { failingSince } = pods.contact;
    if (this.#unsubscribe === undefined || (failingSince !== undefined && nowMs - failingSince > BLIND_MS))
      throw new TributaryError('Unavailable', `it is not known what peers use: ${what} cannot be watched`);
    this.#reservations.sweep(nowMs, failingSince !== undefined);
  }

  #count(key: string, current: CountedPod | undefined, previous: CountedPod | undefined): void {
    if (previous !== undefined) this.#add(previous, -1n);
    if (current !== undefined) this.#add(current, 1n);
    if (current?.overdueMs === undefined) this.#ending.delete(key);
    else this.#ending.add(key);
  }

  #add({ metadata: { namespace = '' }, requests }: CountedPod, times: bigint): void {
    const total: Sums = this.#totals.get(namespace) ?? new Map();
    addTo(total, requests, times);
    for (const [resource, milli] of total) if (milli === 0n) total.delete(resource);
    if (total.size === 0) this.#totals.delete(namespace);
    else this.#totals.set(namespace, total);
  }

  #liveOf(key: string): Sums {
    const pod = this.#options.pods.get(key);
    return pod === undefined || this.#isOverdue(pod) ? new Map() : new Map(pod.requests);
  }

  /** Its node may be lost. It counts no longer, as for a ResourceQuota: else there would be no room for its replacement. */
  #isOverdue({ overdueMs = Infinity }: CountedPod): boolean {
    return this.#options.clock.now() > overdueMs;
  }
}

interface Reservation {
  namespace: string;
  /** UID of the pod that was let in last under this name. */
  uid: string;
  amounts: Amounts;
  untilMs: number;
}

/**
 * What was let in and is not seen yet. By name and not by UID: only one of two pods with the same name can exist, so a creation
 * that is tried again counts once.
 */
class Reservations {
  readonly #byKey = new Map<string, Reservation>();

  get(key: string): Reservation | undefined {
    return this.#byKey.get(key);
  }

  all(): Iterable<[string, Reservation]> {
    return this.#byKey;
  }

  /** Reserves the larger of this and what was reserved for that name: either may be stored in the end. */
  reserve(key: string, reservation: Reservation): void {
    const amounts: Sums = new Map(reservation.amounts);
    raiseTo(amounts, this.#byKey.get(key)?.amounts ?? new Map());
    this.#byKey.set(key, { ...reservation, amounts });
  }

  /** A pod has changed; `current` is undefined when it is gone or has finished. */
  seen(key: string, current: CountedPod | undefined, previous: CountedPod | undefined): void {
    const reservation = this.#byKey.get(key);
    if (reservation?.uid !== (current ?? previous)?.metadata.uid) return;
    if (current === undefined || covers(new Map(current.requests), reservation?.amounts))
      this.#byKey.delete(key);
  }

  /** `isBlind`: changes do not reach us, so a pod that was not seen may exist all the same. */
  sweep(nowMs: number, isBlind: boolean): void {
    for (const [key, reservation] of this.#byKey) {
      if (isBlind) reservation.untilMs = nowMs + RESERVED_MS;
      else if (nowMs >= reservation.untilMs) this.#byKey.delete(key);
    }
  }
}

const covers = (held: Amounts, amounts: Amounts = new Map()): boolean =>
  [...amounts].every(([resource, milli]) => amountOf(held, resource) >= milli);

interface Room {
  peer: string;
  /** What is asked for beyond what the pod has now. */
  requested: Amounts;
  used: Amounts;
  granted: Amounts;
}

/**
 * Why it is too much, in the words of a ResourceQuota: the home side recognises it by "exceeded quota". Undefined where it is
 * not. What the grant does not name is bounded by the quotas of the namespaces, or by nothing.
 */
function refusalOf({ peer, requested, used, granted }: Room): string | undefined {
  const exceeded = [...granted]
    .filter(([resource, most]) => {
      const more = amountOf(requested, resource);
      return more > 0n && amountOf(used, resource) + more > most;
    })
    .map(([resource]) => resource)
    .toSorted();
  if (exceeded.length === 0) return undefined;
  const told = (amounts: Amounts): string =>
    exceeded
      .map((resource) => `${resource}=${formatAmount(resource, amountOf(amounts, resource))}`)
      .join(',');
  return (
    `exceeded quota of peer ${peer} over all its namespaces: ` +
    `requested ${told(requested)}, used ${told(used)}, granted ${told(granted)}`
  );
}

/** Resources of which nothing is granted where the grant does not name them, as in the quota of each tenant namespace. */
const ALWAYS_BOUNDED: Amounts = new Map(['cpu', 'memory', 'pods'].map((resource) => [resource, 0n]));

/** By how much the first is more than the second, for each resource where it is. */
const above = (amounts: Amounts, than: Amounts): Sums =>
  new Map(
    [...amounts].flatMap(([resource, milli]) => {
      const more = milli - amountOf(than, resource);
      return more > 0n ? [[resource, more] as const] : [];
    }),
  );
