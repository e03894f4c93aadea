import { expect, test } from '@jest/globals';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { QuietLog } from '../../../../src/lib/quiet-log.ts';
import { DEFAULT_DIAL_TIMES, DialLoop } from '../../../../src/peering/link/dial-loop.ts';
import type { Dialer } from '../../../../src/peering/link/dialer.ts';
import type { Link } from '../../../../src/peering/link/link.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { chanceOf } from '../../../support/seed.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A cluster that refuses each dial, unless it is open. */
class Refusing {
  readonly clock = new FakeClock();
  /** When it was dialled, monotonic. */
  readonly dials: number[] = [];
  readonly loop: DialLoop;
  isOpen = false;
  #link: Link | undefined;

  constructor(random: () => number) {
    const { clock } = this;
    const secure = async (): Promise<unknown> => {
      this.dials.push(clock.monotonic());
      if (!this.isOpen) throw new TributaryError('Unreachable', 'refused');
      return Promise.resolve({ socket: { destroy: () => undefined }, peer: { clusterID: 'company' } });
    };
    this.loop = new DialLoop({
      clusterID: 'company',
      own: 'device',
      dialer: { secure } as unknown as Dialer,
      adopt: async () => {
        this.#link = {} as Link;
        return Promise.resolve('greeted');
      },
      current: () => this.#link,
      problem: () => undefined,
      clock,
      random,
      quiet: new QuietLog({ log: silentLogger, clock }),
      times: DEFAULT_DIAL_TIMES,
    });
    this.loop.setEndpoints(['company:7443']);
    this.loop.start();
  }

  drop(): void {
    this.#link = undefined;
    this.loop.wake();
  }

  /** The most in any time of that length that begins at `from` or later. */
  most(lengthMs: number, from = 0): number {
    const { dials } = this;
    const counts = dials.map((begin) =>
      begin < from ? 0 : dials.filter((at) => at >= begin && at < begin + lengthMs).length,
    );
    return Math.max(0, ...counts);
  }
}

/** Any seeds would do; these are the same in each run. */
const SEEDS = Array.from({ length: 20 }, (_, seed) => seed);
const randomOf = (seed: number): (() => number) => {
  const chance = chanceOf(seed);
  return () => chance.below(2 ** 20) / 2 ** 20;
};

/** With the shortest waits that are possible: half of 0.2, 0.4, 0.8, ... 25.6 and 30 s. */
const FIRST_MINUTE = 11;
const EACH_MINUTE = 4;

test.each(SEEDS)(
  'a cluster that refuses for eight hours is dialled a few times a minute (%d)',
  async (seed) => {
    const company = new Refusing(randomOf(seed));
    await company.clock.advance(8 * HOUR_MS);
    expect(company.most(MINUTE_MS)).toBeLessThanOrEqual(FIRST_MINUTE);
    expect(company.most(MINUTE_MS, MINUTE_MS)).toBeLessThanOrEqual(EACH_MINUTE);
    expect(company.dials.length).toBeGreaterThan(8 * 60);
    company.isOpen = true;
    const { length } = company.dials;
    await company.clock.advance(DEFAULT_DIAL_TIMES.capMs);
    expect(company.dials.length).toBe(length + 1);
    await company.loop.stop();
  },
);

test.each([8, -8])('a wall clock that is set by %d hours changes no dial', async (hours) => {
  const [one, other] = [new Refusing(randomOf(1)), new Refusing(randomOf(1))];
  for (const company of [one, other]) {
    await company.clock.advance(10 * MINUTE_MS);
    if (company === other) company.clock.jump(hours * HOUR_MS);
    await company.clock.advance(10 * MINUTE_MS);
    company.isOpen = true;
    await company.clock.advance(MINUTE_MS);
    if (company === other) company.clock.jump(hours * HOUR_MS);
    company.isOpen = false;
    company.drop();
    await company.clock.advance(10 * MINUTE_MS);
    await company.loop.stop();
  }
  expect(other.dials).toEqual(one.dials);
});

test('a link that ends after hours begins the waits anew', async () => {
  const company = new Refusing(randomOf(2));
  await company.clock.advance(HOUR_MS);
  company.isOpen = true;
  await company.clock.advance(8 * HOUR_MS);
  const { length } = company.dials;
  company.drop();
  await company.clock.advance(DEFAULT_DIAL_TIMES.baseMs);
  expect(company.dials.length).toBe(length + 1);
  await company.loop.stop();
});
