import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';
import { Listeners } from './listeners.ts';

/** Half of what a stall may last at most, since what follows the question counts, too. */
const LONGEST_MS = 8;

/**
 * Keeps long work from holding up everything else. Thousands of keys that need no request would be dealt with in one turn of the
 * event loop, in which no request is answered, no Lease renewed, and no watch read.
 *
 *     for (const each of many) {
 *       work(each);
 *       const rest = breath.due();
 *       if (rest !== undefined) await rest;
 *     }
 *
 * All who rest go on in the same turn, without asking again: else those who ask last would wait for ever.
 */
export class Breath {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The one that runs now, as far as somebody has asked in it. */
  #turn: { readonly began: number; readonly over: Promise<void>; isLong?: boolean } | undefined;
  readonly #long = new Listeners();
  /** Calls back when a turn has lasted so long that somebody rests. */
  readonly onLong: Listeners['add'] = this.#long.add;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** To be awaited where there is something: this turn of the event loop has lasted long enough. */
  due(): Promise<void> | undefined {
    const now = this.#clock.monotonic();
    const turn = this.#turn;
    if (turn !== undefined) {
      if (now - turn.began < LONGEST_MS) return undefined;
      if (turn.isLong !== true) this.#long.tell();
      turn.isLong = true;
      return turn.over;
    }
    const over = nextTurn().then(() => {
      this.#turn = undefined;
    });
    this.#turn = { began: now, over };
    return undefined;
  }
}

/** Does something with each item, and rests where that takes long. What comes or goes meanwhile is seen, or not, as by an iterator. */
export async function inTurns<T>(breath: Breath, items: Iterable<T>, work: (item: T) => void): Promise<void> {
  for (const item of items) {
    work(item);
    const rest = breath.due();
    if (rest !== undefined) await rest;
  }
}

const breaths = new WeakMap<Pick<Clock, 'monotonic'>, Breath>();

/** All work by one clock shares the event loop, and so the turns. */
export function breathOf(clock: Pick<Clock, 'monotonic'>): Breath {
  const known = breaths.get(clock);
  if (known !== undefined) return known;
  const made = new Breath(clock);
  breaths.set(clock, made);
  return made;
}
