import { describe, expect, test } from '@jest/globals';
import { Pace } from '../../../src/lib/pace.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const LIMITS = { free: 4, baseMs: 1_000, quietMs: 60_000 };

/** Asks whenever it may; returns when its turns came. */
async function turns(pace: Pace, clock: FakeClock, key: string, forMs: number): Promise<number[]> {
  const end = clock.monotonic() + forMs;
  const taken: number[] = [];
  while (clock.monotonic() < end) {
    const waitMs = pace.turn(key);
    if (waitMs === 0) taken.push(clock.monotonic());
    else await clock.advance(waitMs);
  }
  return taken;
}

const gaps = (times: readonly number[]): number[] =>
  times.slice(1).map((at, index) => at - (times[index] ?? 0));

describe('the turns of one key', () => {
  test('come at once for a while, then further and further apart, up to the pace that is forgiven', async () => {
    const clock = new FakeClock();
    const taken = await turns(new Pace({ clock, ...LIMITS }), clock, 'rome', 3_600_000);
    const apart = gaps(taken);
    expect(apart.slice(0, 8)).toEqual([0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000]);
    // In an hour: the free ones, those of the growing waits, and then one a minute.
    expect(taken.length).toBeGreaterThan(55);
    expect(taken.length).toBeLessThan(75);
  });

  test('come at once again after a rest', async () => {
    const clock = new FakeClock();
    const pace = new Pace({ clock, ...LIMITS });
    await turns(pace, clock, 'rome', 120_000);
    await clock.advance(3_600_000);
    expect(gaps(await turns(pace, clock, 'rome', 1_500)).slice(0, 4)).toEqual([0, 0, 0, 0]);
  });

  test('are not given twice: who waits keeps its turn', async () => {
    const clock = new FakeClock();
    const pace = new Pace({ clock, ...LIMITS });
    for (let n = 0; n < 5; n++) expect(pace.turn('rome')).toBe(0);
    expect(pace.turn('rome')).toBe(1_000);
    await clock.advance(400);
    expect(pace.turn('rome')).toBe(600);
    await clock.advance(600);
    expect(pace.turn('rome')).toBe(0);
    expect(pace.turn('rome')).toBe(2_000);
  });

  test('cost more where more is done, also where it has grown in the meantime', async () => {
    const clock = new FakeClock();
    const pace = new Pace({ clock, ...LIMITS });
    expect(pace.turn('large', 40)).toBe(0);
    const taken = await turns(pace, clock, 'large', 40 * 60_000);
    expect(taken.length).toBeLessThan(50);
    const other = new Pace({ clock, ...LIMITS });
    for (let n = 0; n < 5; n++) other.turn('grows');
    await clock.advance(other.turn('grows'));
    expect(other.turn('grows', 100)).toBe(0);
    const waits: number[] = [];
    for (let n = 0; n < 12; n++) {
      const waitMs = other.turn('grows');
      waits.push(waitMs);
      await clock.advance(waitMs);
      other.turn('grows');
    }
    expect(Math.max(...waits)).toBeGreaterThan(600_000);
  });
});

describe('all keys together', () => {
  test('have one rate, whoever they are, in the order in which they ask', async () => {
    const clock = new FakeClock();
    const pace = new Pace({ clock, ...LIMITS, all: { burst: 10, perSecond: 1 } });
    const waits = Array.from({ length: 200 }, (_none, n) => pace.turn(`stranger ${n}`));
    expect(waits.filter((waitMs) => waitMs === 0)).toHaveLength(10);
    expect(waits.at(-1)).toBe(190_000);
    // Whoever comes later waits for those before it, and for no longer, however often these ask again.
    expect(pace.turn('honest')).toBe(191_000);
    for (let second = 0; second < 191; second++) {
      await clock.advance(1_000);
      for (let n = 0; n < 200; n++) pace.turn(`stranger ${n}`);
    }
    expect(pace.turn('honest')).toBe(0);
  });

  test('are kept in bounded memory', () => {
    const pace = new Pace({ clock: new FakeClock(), ...LIMITS, maxKeys: 10 });
    for (let n = 0; n < 5; n++) pace.turn('rome');
    expect(pace.turn('rome')).toBeGreaterThan(0);
    for (let n = 0; n < 10; n++) pace.turn(`${n}`);
    expect(pace.turn('rome')).toBe(0);
  });
});
