import { amountOf, type Sums } from '../../api/amounts.ts';
import { timestamp } from '../../api/conditions.ts';
import { isFinished } from '../../api/pod.ts';
import { podRequests } from '../../api/pod-requests.ts';
import type { Pod } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { LossBudget } from '../../lib/loss-budget.ts';
import { type EndedStatus, outOfRoomStatus } from '../forge/ended-status.ts';
import { podKey } from '../home-pods.ts';
import type { Room } from '../node/room.ts';
import type { Tenants } from '../tenants.ts';
import { PlacedRequests } from './placed-requests.ts';
import {
  isRefusedForLong,
  isReplaced,
  isToEnd,
  lacksRoom,
  ROOM_PATIENCE_MS,
  type Shortage,
  shortagesOf,
} from './shortage.ts';

/** Usually the quota has counted what was freed long before that. */
const FREED_RETRY_MS = 1_000;

interface RoomRefusalsOptions {
  homePods: { list(): Iterable<Pod> };
  tenants: Pick<Tenants, 'of' | 'all'>;
  room: Pick<Room, 'refused' | 'admitted'>;
  clock: Clock;
  /** The Node shows less from now on: to be told to people. */
  onLess: (message: string) => void;
}

/** What becomes of a pod for which the foreign cluster has no room. */
type Verdict =
  | { do: 'end'; status: EndedStatus }
  /** Is tried again. `ms`: at most so long after. */
  | { do: 'wait'; ms: number };

/** Refusals for room: what the Node shows after them, and which pods end so that they are made anew elsewhere. */
export class RoomRefusals {
  readonly #options: RoomRefusalsOptions;
  /** A provider that refuses everything must not end all pods of a cluster at once. */
  readonly #budget: LossBudget;
  readonly #requests: PlacedRequests;

  constructor(options: RoomRefusalsOptions) {
    this.#options = options;
    this.#budget = new LossBudget(options.clock);
    this.#requests = new PlacedRequests(() => this.#placed(), options.clock);
  }

  /** @param words of the foreign cluster */
  refused(home: Pod, words: string): Verdict {
    const { room, clock, onLess } = this.#options;
    const shortages = shortagesOf(words);
    if (!isRefusedForLong(home, clock.now()) && this.#isBeingFreed(home, shortages)) {
      return { do: 'wait', ms: FREED_RETRY_MS };
    }
    const less = room.refused({ pod: home, shortages, used: this.#requests.beside(home) });
    if (less.length > 0) {
      onLess(
        `the foreign cluster has no room for pod ${podKey(home)}; until it has, the Node shows less ${less.join(', ')} than was agreed on: ${words}`,
      );
    }
    if (!isReplaced(home)) return { do: 'wait', ms: Infinity };
    if (!isToEnd(home, clock.now())) return { do: 'wait', ms: ROOM_PATIENCE_MS };
    const ms = this.#budget.take(home.metadata.uid);
    if (ms > 0) return { do: 'wait', ms };
    const [{ resource }] = shortages;
    const message = `the foreign cluster has no room for the pod: ${words}`;
    return { do: 'end', status: outOfRoomStatus(home, resource, message, timestamp(clock.now())) };
  }

  /** The foreign cluster has taken the pod. */
  admitted(home: Pod): void {
    if (lacksRoom(home)) this.#options.room.admitted(home, () => this.#requests.beside(home));
  }

  /** Whether it would fit once the quota has counted what pods had that have just ended. */
  #isBeingFreed(home: Pod, shortages: readonly Shortage[]): boolean {
    const cost = podRequests(home);
    const freed: Sums = new Map();
    for (const tenant of this.#options.tenants.all()) tenant.freed.addTo(freed);
    return shortages.every(({ resource, left }) => {
      const back = amountOf(freed, resource);
      return back > 0n && left + back >= amountOf(cost, resource);
    });
  }

  /**
   * The pods that count on this Node for longer than a moment: those with a body, and those that wait for room and will not
   * be ended.
   */
  *#placed(): Iterable<Pod> {
    const { homePods, tenants } = this.#options;
    for (const pod of homePods.list()) {
      const { name, namespace = '' } = pod.metadata;
      if (isFinished(pod)) continue;
      const hasBody = tenants.of(namespace)?.remotePod(name) !== undefined;
      if (hasBody || (lacksRoom(pod) && !isReplaced(pod))) yield pod;
    }
  }
}
