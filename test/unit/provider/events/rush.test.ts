import { expect, test } from '@jest/globals';
import { Rush } from '../../../../src/provider/events/rush.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function begin(): { clock: FakeClock; rush: Rush; released: string[]; stir: (pods: number) => void } {
  const clock = new FakeClock();
  const released: string[] = [];
  const rush = new Rush({ clock, release: (key) => released.push(key) });
  const stir = (pods: number): void => {
    for (let pod = 0; pod < pods; pod++) rush.stir();
  };
  return { clock, rush, released, stir };
}

test('eighty pods at once are no rush, and nothing is held back', () => {
  const { rush, stir } = begin();
  stir(80);
  expect(rush.hold('a')).toBe(false);
});

test('one more is, until ten seconds have passed', async () => {
  const { clock, rush, released, stir } = begin();
  stir(81);
  expect([rush.hold('a'), rush.hold('b'), rush.hold('a')]).toEqual([true, true, true]);
  await clock.advance(9_000);
  expect(released).toEqual([]);
  await clock.advance(1_001);
  expect(released).toEqual(['a', 'b']);
  expect(rush.hold('a')).toBe(false);
});

test('fifteen in a second are none, seventeen are', async () => {
  const { clock, rush, stir } = begin();
  for (let second = 0; second < 20; second++) {
    stir(15);
    await clock.advance(1_000);
  }
  expect(rush.hold('a')).toBe(false);
  for (let second = 0; second < 20; second++) {
    stir(17);
    await clock.advance(1_000);
  }
  expect(rush.hold('a')).toBe(true);
});

test('a rush that goes on holds nothing back for more than a minute', async () => {
  const { clock, rush, released, stir } = begin();
  stir(81);
  rush.hold('first');
  for (let second = 0; second < 30; second++) {
    stir(20);
    await clock.advance(1_000);
  }
  rush.hold('second');
  for (let second = 0; second < 35; second++) {
    stir(20);
    await clock.advance(1_000);
  }
  expect(released).toEqual(['first']);
  await clock.advance(11_000);
  expect(released).toEqual(['first', 'second']);
});

test('what is held back stays so until it is released, whatever comes', async () => {
  const { clock, rush, released, stir } = begin();
  stir(81);
  rush.hold('a');
  await clock.advance(2_000);
  stir(81);
  await clock.advance(9_000);
  expect([released, rush.hold('a')]).toEqual([[], true]);
  await clock.advance(1_001);
  expect(released).toEqual(['a']);
});
