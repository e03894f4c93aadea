import { expect, test } from '@jest/globals';

import type { WatchFault } from '../../../faults/proxy/fault.ts';
import { WatchRelay } from '../../../faults/proxy/watch-relay.ts';

/** What a client has seen: lines, and the end as `END` or `BROKEN`. */
class Bed {
  readonly relay: WatchRelay;
  faults = 0;
  #seen = '';
  readonly #timers: { readonly ms: number; readonly run: () => void }[] = [];

  constructor(fault?: WatchFault) {
    this.relay = new WatchRelay(
      {
        write: (text) => void (this.#seen += text),
        end: () => void (this.#seen += 'END\n'),
        destroy: (last = '') => void (this.#seen += `${last}BROKEN\n`),
      },
      { later: (ms, run) => void this.#timers.push({ ms, run }), onFault: () => void this.faults++ },
    );
    this.relay.fault = fault;
  }

  push(...lines: readonly string[]): this {
    for (const line of lines) this.relay.push(`${line}\n`);
    return this;
  }

  /** Those that are due, and in how many milliseconds they were to come. */
  wake(): number[] {
    return this.#timers.splice(0).map(({ ms, run }) => {
      run();
      return ms;
    });
  }

  get seen(): string[] {
    return this.#seen.split('\n').filter((line) => line !== '');
  }
}

test('without a fault lines pass in order, however they are cut, and so does the end', () => {
  const bed = new Bed();
  for (const piece of ['a1', '\nb', '2\nc3\nd', '4', '\n', '\n', 'half']) bed.relay.push(piece);
  expect(bed.seen).toEqual(['a1', 'b2', 'c3', 'd4']);
  bed.relay.end();
  expect(bed.seen).toEqual(['a1', 'b2', 'c3', 'd4', 'halfEND']);
  bed.push('late').relay.end();
  expect(bed.seen).toHaveLength(5);
  expect(bed.faults).toBe(0);
});

test('delay: each comes later, in order, and none is lost when the fault ends', () => {
  const bed = new Bed({ kind: 'delay', ms: 70 }).push('a', 'b');
  expect(bed.seen).toEqual([]);
  expect(bed.wake()).toEqual([70, 70]);
  expect(bed.seen).toEqual(['a', 'b']);
  bed.push('c', 'd').relay.fault = undefined;
  bed.push('e');
  expect(bed.seen).toEqual(['a', 'b', 'c', 'd', 'e']);
  bed.wake();
  expect(bed.seen).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(bed.faults).toBe(4);
});

test('truncate: half an event, and the connection breaks', () => {
  const bed = new Bed({ kind: 'truncate' }).push('abcdef', 'ghijkl');
  expect(bed.seen).toEqual(['abcBROKEN']);
  bed.relay.end();
  expect(bed.seen).toEqual(['abcBROKEN']);
  expect(bed.faults).toBe(1);
});

test('duplicate: each comes twice', () => {
  const bed = new Bed({ kind: 'duplicate' }).push('a', 'b');
  expect(bed.seen).toEqual(['a', 'a', 'b', 'b']);
  expect(bed.faults).toBe(2);
});

test('reorder: neighbours change places, and one that is left comes when the fault ends', () => {
  const bed = new Bed({ kind: 'reorder' }).push('a', 'b', 'c', 'd', 'e');
  expect(bed.seen).toEqual(['b', 'a', 'd', 'c']);
  bed.relay.fault = undefined;
  expect(bed.seen).toEqual(['b', 'a', 'd', 'c', 'e']);
  bed.push('f');
  expect(bed.seen.slice(4)).toEqual(['e', 'f']);
  expect(bed.faults).toBe(2);
});

test('reorder: when the watch ends, an event that waits for its neighbour is as one that was never sent', () => {
  const bed = new Bed({ kind: 'reorder' }).push('a');
  bed.relay.end();
  bed.relay.fault = undefined;
  expect(bed.seen).toEqual(['END']);
});

test('replay: every second event is followed by the one before it', () => {
  const bed = new Bed({ kind: 'replay' }).push('a', 'b', 'c', 'd');
  expect(bed.seen).toEqual(['a', 'b', 'a', 'c', 'd', 'c']);
  expect(bed.faults).toBe(2);
});

test.each([
  [410, 'Expired'],
  [500, 'InternalError'],
] as const)('error %i: instead of the next event, and the end', (code, reason) => {
  const bed = new Bed({ kind: 'error', code }).push('a', 'b');
  const [event = '', ...rest] = bed.seen;
  expect(JSON.parse(event)).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code, reason } });
  expect(rest).toEqual(['END']);
});

test.each([
  ['events', (bed: Bed) => void bed.push('lost', 'lost too')],
  ['the end', (bed: Bed) => bed.relay.end()],
])('silence: %s is not heard, and the connection breaks when the fault ends', (_what, happen) => {
  const bed = new Bed().push('a');
  bed.relay.fault = { kind: 'silence' };
  happen(bed);
  expect(bed.seen).toEqual(['a']);
  bed.relay.fault = undefined;
  expect(bed.seen).toEqual(['a', 'BROKEN']);
  bed.push('b').relay.end();
  expect(bed.seen).toEqual(['a', 'BROKEN']);
});

test('silence: a watch that has lost nothing goes on', () => {
  const bed = new Bed({ kind: 'silence' });
  bed.relay.fault = undefined;
  expect(bed.push('a').seen).toEqual(['a']);
});

test('silence: one that has lost something ends, also when another fault follows', () => {
  const bed = new Bed({ kind: 'silence' }).push('lost');
  bed.relay.fault = { kind: 'duplicate' };
  expect(bed.push('a').seen).toEqual(['BROKEN']);
});

test('under a fault half a line at the end is no event', () => {
  const bed = new Bed({ kind: 'duplicate' }).push('a');
  bed.relay.push('hal');
  bed.relay.end();
  expect(bed.seen).toEqual(['a', 'a', 'END']);
});
