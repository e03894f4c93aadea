import type { Clock } from './clock.ts';
import { Listeners } from './listeners.ts';

/**
 * A round of the event loop has two such turns, what streams bring and those who rested; with what follows the last question, and a
 * collection of garbage, they are a stall of some 20 ms.
 */
const LONGEST_MS = 3;

interface Turn {
  readonly began: number;
  /** Somebody rested in the one before. */
  readonly goesOn: boolean;
  isLong: boolean;
  /** A worker has gone on in it. */
  isWorked: boolean;
}

/** A worker does what it has found in a queue; a walk goes through many objects, and does little with each. */
export type Who = 'walk' | 'worker';

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
 * In the next turn walks go on first, and then workers with a key each, in the order in which they came, until that turn has lasted long
 * enough, too; one of them in any case. A walk mostly finds work for workers: what several walks find at once is done once.
 */
export class Breath {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The one that runs now, as far as somebody has asked in it, or goes on in it. */
  #turn: Turn | undefined;
  readonly #resting: Readonly<Record<Who, (() => void)[]>> = { walk: [], worker: [] };
  readonly #long = new Listeners();
  /** Calls back when somebody rests in a turn, and rested in the one before: what takes two turns is long work. */
  readonly onLong: Listeners['add'] = this.#long.add;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** To be awaited where there is something: this turn of the event loop has lasted long enough, or other workers come first. */
  due(who: Who = 'walk'): Promise<void> | undefined {
    const turn = this.#turn ?? this.#begin();
    const isOver = this.#isOver(turn);
    if (!isOver && (who === 'walk' || this.#resting.worker.length === 0)) return undefined;
    if (isOver && !turn.isLong) {
      turn.isLong = true;
      if (turn.goesOn) this.#long.tell();
    }
    return new Promise((resolve) => this.#resting[who].push(resolve));
  }

  #isOver({ began }: Turn): boolean {
    return this.#clock.monotonic() - began >= LONGEST_MS;
  }

  #begin(goesOn = false): Turn {
    setImmediate(() => {
      this.#turn = undefined;
      if (this.#resting.walk.length + this.#resting.worker.length > 0) this.#goOn(this.#begin(true));
    });
    return (this.#turn = { began: this.#clock.monotonic(), goesOn, isLong: false, isWorked: false });
  }

  #goOn(turn: Turn): void {
    const isOver = this.#isOver(turn);
    if (isOver && turn.isWorked) return;
    let goOn = isOver ? undefined : this.#resting.walk.shift();
    if (goOn === undefined) {
      goOn = this.#resting.worker.shift();
      turn.isWorked = true;
    }
    if (goOn === undefined) return;
    goOn();
    // A tick that a microtask asks for comes when no microtask is left: after all that the one who goes on does in this turn.
    queueMicrotask(() => process.nextTick(() => this.#goOn(turn)));
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
