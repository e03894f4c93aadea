import { addTo, amountOf, type Amounts, parseAmounts, raiseTo, type Sums } from '../../api/amounts.ts';
import type { StockPod } from '../../api/pod-requests.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { GuestTenants, LivePods } from './ports.ts';
import { refusalOf } from './refusal.ts';
import { Reservations, RESERVED_MS } from './reservations.ts';

export interface LedgerOptions {
  /** What is counted, for people; default pods. */
  what?: string;
  clock: Clock;
  /** Or whatever else is counted by `requests`. */
  pods: LivePods;
  tenants: Pick<GuestTenants, 'namespacesOf' | 'grantOf'>;
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
