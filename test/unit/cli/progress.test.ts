import { expect, test } from '@jest/globals';
import { progressOf } from '../../../src/cli/progress.ts';
import { systemClock } from '../../../src/lib/clock.ts';

function printed(columns: number | undefined): {
  out: () => string;
  at: (ms: number, what?: string) => void;
} {
  let [out, nowMs] = ['', 0];
  const io = {
    out: (text: string) => void (out += text),
    err: () => {},
    ...(columns !== undefined && { columns }),
  };
  const progress = progressOf({ io, clock: { ...systemClock, monotonic: () => nowMs } });
  return {
    out: () => out,
    at: (ms, what) => {
      nowMs = ms;
      if (what === undefined) progress.clear();
      else progress.show(what);
    },
  };
}

test('elsewhere than on a terminal each change is a line, and no control character is written', () => {
  const { out, at } = printed(undefined);
  at(0, 'one');
  at(250, 'one');
  at(500, 'two\u001B[2J');
  at(5000, 'one');
  at(5000);
  expect(out()).toBe('  one\n  two?[2J\n  one\n');
});

test('on a terminal one line is rewritten, says since when, and goes', () => {
  const { out, at } = printed(40);
  at(0, 'one');
  at(2100, 'one');
  at(2200, 'two');
  at(2300);
  at(2400);
  const clear = '\r\u001B[K';
  expect(out()).toBe(`${clear}  one${clear}  one (2 s)${clear}  two${clear}`);
});

test('a long line is cut, so that it does not wrap, but its seconds are not', () => {
  const { out, at } = printed(20);
  at(0, 'waiting for a long time');
  at(12_000, 'waiting for a long time');
  const lines = out().split('\r\u001B[K').slice(1);
  expect(lines).toEqual(['  waiting for a lo…', '  waiting f… (12 s)']);
  for (const line of lines) expect(line.length).toBeLessThan(20);
});
