import { expect, test } from '@jest/globals';

import { WriteBudget, type WriteCharge } from '../../../../src/hosting/guests/write-budget.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const KIB = 1024;
const MINUTE = 60_000;

interface Scene {
  clock: FakeClock;
  heedless: string[];
  /** How long to wait, seconds; 0: written. */
  ask: (peer: string, kib: number, more?: Partial<WriteCharge>) => number;
}

function scene(kibPerMinute = 60): Scene {
  const clock = new FakeClock();
  const heedless: string[] = [];
  const budget = new WriteBudget({ clock, heedless: (peer) => void heedless.push(peer) });
  let number = 0;
  const ask: Scene['ask'] = (peer, kib, more = {}) => {
    const key = `configmaps/a/${number++}`;
    const charge = { peer, key, bytes: kib * KIB, isDryRun: false, kibPerMinute, objects: 100, ...more };
    return budget.ask(charge)?.retryAfterSeconds ?? 0;
  };
  return { clock, heedless, ask };
}

/** The first rate makes the default of all together of no account: it is far higher. */
const RATE = 20_000;

test('four minutes of the rate at once, then the rate', async () => {
  const { clock, ask } = scene(60);
  expect(ask('rome', 239)).toBe(0);
  expect(ask('rome', 1)).toBe(0);
  expect(ask('rome', 10)).toBe(10);
  await clock.advance(10_000);
  expect(ask('rome', 10)).toBe(0);
  expect(ask('paris', 240)).toBe(0);
});

test('a dry run takes nothing, and says what would be', () => {
  const { ask } = scene(60);
  for (let run = 0; run < 10; run++) expect(ask('rome', 200, { isDryRun: true })).toBe(0);
  expect(ask('rome', 240)).toBe(0);
  expect(ask('rome', 1, { isDryRun: true })).toBe(1);
});

test('what is larger than a minute of the rate waits for a minute of it, and is owed', async () => {
  const { clock, ask } = scene(60);
  expect(ask('rome', 240)).toBe(0);
  expect(ask('rome', 500)).toBeGreaterThanOrEqual(60);
  await clock.advance(MINUTE);
  expect(ask('rome', 500)).toBe(0);
  await clock.advance(7 * MINUTE);
  expect(ask('rome', 1)).toBeGreaterThan(0);
});

test('many that are refused are told to come one after another, and then find room', async () => {
  const { clock, ask, heedless } = scene(60);
  ask('rome', 240);
  const names = Array.from({ length: 60 }, (_, index) => `pods/a/${index}`);
  const waits = names.map((key) => ask('rome', 1, { key }));
  expect(waits).toEqual(names.map((_, index) => index + 1));
  let again = 0;
  for (const key of names) {
    await clock.advance(1_000);
    if (ask('rome', 1, { key }) > 0) again++;
  }
  expect(again).toBe(0);
  expect(heedless).toEqual([]);
});

test('all together may write twice what one may, so one leaves room for the others', () => {
  const { ask } = scene(RATE);
  expect(ask('rome', 4 * RATE)).toBe(0);
  expect(ask('rome', 1)).toBeGreaterThan(0);
  expect(ask('paris', 4 * RATE)).toBe(0);
  expect(ask('milan', 1)).toBeGreaterThan(0);
});

test('whoever comes again and again, and does not wait, is told of once', () => {
  const { ask, heedless } = scene(60);
  ask('rome', 240);
  // Ten minutes of the rate, and 16 KiB at least for each request.
  for (let turn = 0; turn < 37; turn++) ask('rome', 1, { key: 'configmaps/a/load' });
  expect(heedless).toEqual([]);
  for (let turn = 0; turn < 3; turn++) ask('rome', 1, { key: 'configmaps/a/load' });
  expect(heedless).toEqual(['rome']);
});

test('so is who asks for more objects than it may have', () => {
  const { ask, heedless } = scene(60);
  ask('rome', 240);
  for (let turn = 0; turn < 100; turn++) ask('rome', 1);
  expect(heedless).toEqual([]);
  for (let turn = 0; turn < 40; turn++) ask('rome', 1);
  expect(heedless).toEqual(['rome']);
});

test('a home that waits as it is told is never suspended, whatever it wants', async () => {
  const { clock, ask, heedless } = scene(600);
  const due = new Map(Array.from({ length: 2_000 }, (_, index) => [`pods/a/${index}`, 0]));
  let written = 0;
  for (let second = 0; second < 1_800; second++) {
    for (const [key, at] of due) {
      if (at > second) continue;
      const wait = ask('rome', 6, { key, objects: 4_000 });
      if (wait === 0) due.delete(key);
      else due.set(key, second + wait);
      written += wait === 0 ? 1 : 0;
    }
    await clock.advance(1_000);
  }
  expect(heedless).toEqual([]);
  expect(written).toBe(2_000);
});
