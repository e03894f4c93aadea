import { timestamp } from '../../api/conditions.ts';
import { isFinished } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { LossBudget } from '../../lib/loss-budget.ts';
import { type EndedStatus, outOfRoomStatus } from '../forge/ended-status.ts';
import { podKey } from '../home-pods.ts';
import type { Room } from '../node/room.ts';
import type { Tenants } from '../tenants.ts';
import { isReplaced, isToEnd, lacksRoom, ROOM_PATIENCE_MS, shortagesOf } from './shortage.ts';

interface RoomRefusalsOptions {
  homePods: { list(): Iterable<Pod> };
  tenants: Pick<Tenants, 'of'>;
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

  constructor(options: RoomRefusalsOptions) {
    this.#options = options;
    this.#budget = new LossBudget(options.clock);
  }

  /** @param words of the foreign cluster */
  refused(home: Pod, words: string): Verdict {
    const { room, clock, onLess } = this.#options;
    const shortages = shortagesOf(words);
    const less = room.refused({ pod: home, shortages, placed: this.#placedBeside(home) });
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
    if (lacksRoom(home)) this.#options.room.admitted(home, this.#placedBeside(home));
  }

  /**
   * The pods that count on this Node for longer than a moment: those with a body, and those that wait for room and will not
   * be ended.
   */
  *#placedBeside(home: Pod): Iterable<Pod> {
    const { homePods, tenants } = this.#options;
    for (const pod of homePods.list()) {
      const { name, namespace = '', uid } = pod.metadata;
      if (isFinished(pod) || uid === home.metadata.uid) continue;
      const hasBody = tenants.of(namespace)?.remotePod(name) !== undefined;
      if (hasBody || (lacksRoom(pod) && !isReplaced(pod))) yield pod;
    }
  }
}
