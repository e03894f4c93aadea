import type { Clock } from '../../lib/clock.ts';
import type { ResourceQuota } from '../tenants/quota-recounts.ts';

export interface ObjectCountsOptions {
  clock: Clock;
  /** Of a peer: those of all its namespaces, as they are counted now. */
  quotasOf: (peer: string) => readonly ResourceQuota[];
  /** Of a peer: how many objects it has that no quota counts. Default: none. */
  uncountedOf?: (peer: string) => number;
}

/** How long something counts that was let in, and that no quota has counted yet. */
const PENDING_MS = 15_000;
/** What quotas call kinds that they counted before they counted every kind by `count/`. */
const PLAIN: ReadonlySet<string> = new Set(['configmaps', 'secrets', 'services', 'persistentvolumeclaims']);

interface Pending {
  /** What the quota had counted. */
  counted: number;
  /** Until when each counts. */
  untilMs: number[];
}

/**
 * How many objects each peer has over all its namespaces: what their ResourceQuotas have counted, which an API server does before
 * it stores an object, and what was let in a moment ago. So nobody has to list Secrets.
 */
export class ObjectCounts {
  readonly #options: ObjectCountsOptions;
  readonly #pending = new Map<string, Pending>();
  /** Quotas are never changed in place: a new count is a new object. */
  readonly #counted = new WeakMap<object, number>();

  constructor(options: ObjectCountsOptions) {
    this.#options = options;
  }

  /** Why there is no room for one more; undefined where there is. `most`: how many the peer may have in all. */
  refusalOf(peer: string, most: number): string | undefined {
    const used = this.used(peer);
    if (used < most) return undefined;
    // The home side recognises it by "exceeded quota".
    return (
      `exceeded quota of peer ${peer} over all its namespaces: used ${used} objects, granted ${most}, pods included ` +
      '(writes.objects of the SharingPolicy of this cluster, and the pods that are lent)'
    );
  }

  used(peer: string): number {
    const { quotasOf, uncountedOf = () => 0 } = this.#options;
    const counted = quotasOf(peer).reduce(
      (sum, quota) => sum + this.#countedBy(quota) + this.#pendingIn(quota),
      0,
    );
    return counted + uncountedOf(peer);
  }

  /** One was let in. */
  admitted(peer: string, namespace: string): void {
    const quota = this.#options.quotasOf(peer).find(({ metadata }) => metadata.namespace === namespace);
    if (quota === undefined) return;
    this.#pendingIn(quota);
    const pending = this.#pending.get(namespace) ?? { counted: this.#countedBy(quota), untilMs: [] };
    pending.untilMs.push(this.#options.clock.monotonic() + PENDING_MS);
    this.#pending.set(namespace, pending);
  }

  /** What the quota has counted since is not pending any more; the oldest first. */
  #pendingIn(quota: ResourceQuota): number {
    const { namespace = '' } = quota.metadata;
    const pending = this.#pending.get(namespace);
    if (pending === undefined) return 0;
    const [now, nowMs] = [this.#countedBy(quota), this.#options.clock.monotonic()];
    const left = pending.untilMs
      .slice(Math.max(0, now - pending.counted))
      .filter((untilMs) => untilMs > nowMs);
    if (left.length === 0) this.#pending.delete(namespace);
    else this.#pending.set(namespace, { counted: now, untilMs: left });
    return left.length;
  }

  #countedBy(quota: ResourceQuota): number {
    const known = this.#counted.get(quota);
    if (known !== undefined) return known;
    const counts = Object.entries(quota.status?.used ?? {}).filter(
      ([key]) => key.startsWith('count/') || PLAIN.has(key),
    );
    const sum = counts.reduce((all, [, count]) => all + (Number(count) || 0), 0);
    this.#counted.set(quota, sum);
    return sum;
  }
}
