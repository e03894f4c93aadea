import { type Amounts, formatAmounts, type Sums } from '../api/amounts.ts';
import { isFinished } from '../api/pod.ts';
import { podRequests } from '../api/pod-requests.ts';
import { refusalOf } from '../api/sent-abroad.ts';
import type { Pod } from '../api/wire.ts';

/** What is counted of a pod. Most pods of a node are of few kinds. */
interface Kind {
  readonly name: string;
  readonly phase: string;
  /** Why it does not run in the foreign cluster. */
  readonly refusal: string | undefined;
  /** None of one that has finished. */
  readonly requests: Amounts;
  count: number;
}

/**
 * The pods of a virtual node by what metrics say of them. Kept with each change: there may be tens of thousands of pods, and a scrape
 * that looked at each would hold up everything else.
 */
export class PodTally {
  readonly #kinds = new Map<string, Kind>();
  readonly #kindOf = new Map<string, Kind>();

  /** As a listener of a cache; bound. */
  readonly change = (key: string, current: Pod | undefined, previous: Pod | undefined): void => {
    const before = this.#kindOf.get(key);
    if (before && current && previous && isAlike(current, previous)) return;
    if (before !== undefined) {
      before.count--;
      if (before.count === 0) this.#kinds.delete(before.name);
      this.#kindOf.delete(key);
    }
    if (current === undefined) return;
    const kind = this.#kindFor(current);
    kind.count++;
    this.#kindOf.set(key, kind);
  };

  phases(): ReadonlyMap<string, number> {
    return this.#countBy(({ phase }) => phase);
  }

  refusals(): ReadonlyMap<string, number> {
    return this.#countBy(({ refusal }) => refusal);
  }

  /** What they request together. */
  requested(): Amounts {
    const sums: Sums = new Map();
    for (const { requests, count } of this.#kinds.values())
      for (const [resource, milli] of requests)
        sums.set(resource, (sums.get(resource) ?? 0n) + milli * BigInt(count));
    return sums;
  }

  #countBy(textOf: (kind: Kind) => string | undefined): Map<string, number> {
    const counts = new Map<string, number>();
    for (const kind of this.#kinds.values()) {
      const text = textOf(kind);
      if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + kind.count);
    }
    return counts;
  }

  #kindFor(pod: Pod): Kind {
    const phase = pod.status?.phase ?? 'Pending';
    const refusal = refusalOf(pod);
    const requests: Amounts = isFinished(pod) ? new Map() : podRequests(pod);
    const name = JSON.stringify([phase, refusal ?? null, formatAmounts(requests)]);
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const kind = { name, phase, refusal, requests, count: 0 };
    this.#kinds.set(name, kind);
    return kind;
  }
}

const COUNTED = [
  'phase',
  'conditions',
  'containerStatuses',
  'initContainerStatuses',
  'resources',
  'allocatedResources',
] as const;

/** Whether nothing that is counted can differ: equal parts of a cache's objects are the same (see kube/shared-parts.ts). */
const isAlike = (one: Pod, other: Pod): boolean =>
  one.spec === other.spec && COUNTED.every((field) => one.status?.[field] === other.status?.[field]);
