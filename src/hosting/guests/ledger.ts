import {
  addTo,
  amountOf,
  type Amounts,
  formatAmount,
  parseAmounts,
  raiseTo,
  type Sums,
} from '../../api/amounts.ts';
import type { StockPod } from '../../api/pod-requests.ts';
import type { ChangeListener } from '../../kube/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { TenantDirectory } from './tenant-directory.ts';

/** So long something admitted counts though nobody has seen it: creations may still fail after we let them in. */
const RESERVED_MS = 15_000;

interface Reservation {
  namespace: string;
  /** Of the pod that was let in last under this name. */
  uid: string;
  amounts: Amounts;
  untilMs: number;
}

/**
 * What was let in and is not seen yet. By name and not by UID: of two pods of one name only one can be there, so a creation
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

  /** The larger of what was reserved for that name and this: either may be what is stored in the end. */
  reserve(key: string, reservation: Reservation): void {
    const amounts: Sums = new Map(reservation.amounts);
    raiseTo(amounts, this.#byKey.get(key)?.amounts ?? new Map());
    this.#byKey.set(key, { ...reservation, amounts });
  }

  /** A pod has changed; `current` undefined: it is gone or has finished. */
  seen(key: string, current: StockPod | undefined, previous: StockPod | undefined): void {
    const reservation = this.#byKey.get(key);
    if (reservation?.uid !== (current ?? previous)?.metadata.uid) return;
    if (current === undefined || covers(new Map(current.requests), reservation?.amounts))
      this.#byKey.delete(key);
  }

  /** `isBlind`: changes do not reach us, so that nothing can be told from not having been seen. */
  sweep(nowMs: number, isBlind: boolean): void {
    for (const [key, reservation] of this.#byKey) {
      if (isBlind) reservation.untilMs = nowMs + RESERVED_MS;
      else if (nowMs >= reservation.untilMs) this.#byKey.delete(key);
    }
  }
}

const covers = (held: Amounts, amounts: Amounts = new Map()): boolean =>
  [...amounts].every(([resource, milli]) => amountOf(held, resource) >= milli);

interface Account {
  peer: string;
  /** More than there is now. */
  requested: Amounts;
  used: Amounts;
  granted: Amounts;
}

/**
 * Pure: why it is too much, in the manner of a ResourceQuota: by the words "exceeded quota" the home side knows it. Undefined: it
 * is not. What the grant does not name is bounded by the namespaces' own quotas, or by nothing.
 */
function refusalOf({ peer, requested, used, granted }: Account): string | undefined {
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

/** Pods of the cluster that have not finished, by `namespace/name`; filled before the first question. */
export interface LivePods {
  get(key: string): StockPod | undefined;
  list(): Iterable<StockPod>;
  onChange(listener: ChangeListener<StockPod>): () => void;
  /** `failingSince`: since when we do not hear of changes, milliseconds of the monotonic clock. */
  readonly contact: { readonly failingSince: number | undefined };
}

interface LedgerOptions {
  /** What is counted, for people; default pods. */
  what?: string;
  clock: Clock;
  /** Or whatever else is counted by `requests`. */
  pods: LivePods;
  tenants: Pick<TenantDirectory, 'namespacesOf' | 'grantOf'>;
}

/** A pod that is to be, or is to cost more. */
export interface Entry {
  peer: string;
  namespace: string;
  name: string;
  uid: string;
  cost: Amounts;
  isNew: boolean;
  isDryRun: boolean;
}

/** Nothing is let in on older knowledge. Shorter than what is reserved lasts. */
const BLIND_MS = 10_000;

/**
 * What each peer uses over all its tenant namespaces, and whether there is room for more. Live pods count, and what was let in a
 * moment ago. Questions are answered at once and one after the other, so two never get the same room.
 */
export class Ledger implements Component {
  readonly name = 'ledger of guests';
  readonly #options: LedgerOptions;
  /** Requests of live pods by namespace: whose it is may be known later. */
  readonly #totals = new Map<string, Sums>();
  /** Keys of pods that are being deleted. */
  readonly #ending = new Set<string>();
  readonly #reservations = new Reservations();
  #unsubscribe: (() => void) | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** When the pods are known. */
  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { pods } = this.#options;
    for (const pod of pods.list()) this.#count(keyOf(pod.metadata), pod, undefined);
    this.#unsubscribe = pods.onChange((...change) => {
      this.#count(...change);
      this.#reservations.seen(...change);
    });
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    await Promise.resolve();
  }

  /**
   * Why there is no room; undefined: there is, and it is reserved. Throws Unavailable where it cannot be told now, and Invalid for
   * a grant that cannot be read.
   */
  ask(entry: Entry): string | undefined {
    this.#checkSight();
    const { clock, tenants } = this.#options;
    const { peer, namespace, cost } = entry;
    const grant = tenants.grantOf(peer);
    if (grant === undefined)
      return `nothing is granted to peer ${peer}: its contract has ended or is not in force yet`;
    const key = keyOf(entry);
    const live = this.#liveOf(key);
    const held: Sums = new Map(live);
    raiseTo(held, this.#reservations.get(key)?.amounts ?? new Map());
    const requested = above(cost, held);
    const granted = new Map([...ALWAYS_BOUNDED, ...parseAmounts(grant)]);
    const refusal = refusalOf({ peer, requested, used: this.used(peer), granted });
    if (refusal !== undefined) return refusal;
    // Of a resize, too, what is more than there is: room that an earlier question had reserved is given back before long.
    if (!entry.isDryRun && (entry.isNew ? cost : above(cost, live)).size > 0) {
      const untilMs = clock.monotonic() + RESERVED_MS;
      this.#reservations.reserve(key, { namespace, uid: entry.uid, amounts: cost, untilMs });
    }
    return undefined;
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

  #count(key: string, current: StockPod | undefined, previous: StockPod | undefined): void {
    if (previous !== undefined) this.#add(previous, -1n);
    if (current !== undefined) this.#add(current, 1n);
    if (current?.overdueMs === undefined) this.#ending.delete(key);
    else this.#ending.add(key);
  }

  #add({ metadata: { namespace = '' }, requests }: StockPod, times: bigint): void {
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

  /** Its node may be lost. As to a ResourceQuota it counts no longer, or what stands in for it would find no room. */
  #isOverdue({ overdueMs = Infinity }: StockPod): boolean {
    return this.#options.clock.now() > overdueMs;
  }
}

/** As in the quota of each tenant namespace: where the grant does not name them, there is nothing of them. */
const ALWAYS_BOUNDED: Amounts = new Map(['cpu', 'memory', 'pods'].map((resource) => [resource, 0n]));

const keyOf = ({ namespace = '', name }: { namespace?: string; name: string }): string =>
  `${namespace}/${name}`;

/** By how much one is more than the other, where it is. */
const above = (amounts: Amounts, than: Amounts): Sums =>
  new Map(
    [...amounts].flatMap(([resource, milli]) => {
      const more = milli - amountOf(than, resource);
      return more > 0n ? [[resource, more] as const] : [];
    }),
  );
