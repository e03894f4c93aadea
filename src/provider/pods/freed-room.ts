import { addTo, type Sums } from '../../api/amounts.ts';
import { isFinished } from '../../api/pod.ts';
import { podRequests } from '../../api/pod-requests.ts';
import type { Pod } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { ROOM_PATIENCE_MS } from './shortage.ts';

/** What ends within this long is counted together. */
const TOGETHER_MS = 1_000;

/**
 * What remote pods had that ended a moment ago. The quota over there counts it as used for a while longer, so a pod that is
 * refused meanwhile, such as one for which others were preempted, does not prove that there is less room.
 */
export class FreedRoom {
  readonly #clock: Clock;
  /** Oldest first. `endedAt`: monotonic. */
  #freed: { endedAt: number; amounts: Sums }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param current undefined: gone */
  changed(current: Pod | undefined, previous: Pod | undefined): void {
    if (previous === undefined || isFinished(previous)) return;
    if (current !== undefined && !isFinished(current)) return;
    this.#forget();
    const endedAt = this.#clock.monotonic();
    const last = this.#freed.at(-1);
    if (last !== undefined && endedAt - last.endedAt < TOGETHER_MS)
      addTo(last.amounts, podRequests(previous));
    else this.#freed.push({ endedAt, amounts: podRequests(previous) });
  }

  addTo(sums: Sums): void {
    this.#forget();
    for (const { amounts } of this.#freed) addTo(sums, amounts);
  }

  #forget(): void {
    const since = this.#clock.monotonic() - ROOM_PATIENCE_MS;
    this.#freed = this.#freed.filter(({ endedAt }) => endedAt > since);
  }
}
