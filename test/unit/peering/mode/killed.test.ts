import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { TetherSpec } from '../../../../src/api/cluster-mode.ts';
import { deepEqual } from '../../../../src/lib/equality.ts';
import { short } from '../../../support/long.ts';
import type { SideName } from './support/tether-link.ts';
import { TetherWorld } from './support/tether-world.ts';

/**
 * Sides of a tether are killed at every write of entering it and of ending it in turn, and started again. Processes that remember
 * nothing end in one mode or the other, with all that belongs to it on both sides and nothing else.
 */

jest.setTimeout(300_000);

/** What the device keeps of the company for a while would hide what is left. */
const TETHER: TetherSpec = { cluster: 'company', keepForSeconds: 0 };
const AFTERWARDS_MS = 30_000;

let world: TetherWorld;
afterEach(async () => world.down());

interface Scenario {
  what: string;
  /** Fewer writes than this by either side would mean that the kills are beyond the last one. */
  writes: number;
  tethering?: 'Allow' | 'Forbid';
  /** To the moment from which writes count. */
  prepare?: () => Promise<void>;
  begin: () => void;
  isOver: () => boolean;
  /** What else must hold then, and after it. */
  end?: () => Promise<void>;
}

/** Of both sides, without a tether. */
let bare: string[][];
/** The pod of a user was forwarded, and must be there whatever happens. */
const isBareWithPod = (): boolean => {
  const [device = [], company = []] = bare;
  return deepEqual(world.inventories(), [[...device, 'pods shop/web'].toSorted(), company]);
};
const isPodHome = (): boolean => {
  const pod = world.device.api.storage.get('pods', 'shop/web');
  return pod !== undefined && pod.spec?.['nodeName'] === undefined;
};
const isUntethered = (): boolean => world.isAt('Autonomous') && isBareWithPod() && isPodHome();

async function tethered(): Promise<void> {
  bare = world.inventories();
  world.want(TETHER);
  await world.at('Tethered');
  world.forward('web');
}

const SCENARIOS: Scenario[] = [
  {
    what: 'enters',
    writes: 40,
    begin: () => world.want(TETHER),
    isOver: () => world.isAt('Tethered'),
  },
  {
    what: 'enters, and runs its pods itself once contact is lost',
    writes: 40,
    begin: () => world.want({ ...TETHER, whenLost: 'RunLocally' }),
    isOver: () => world.isAt('Tethered') && world.device.mode?.status?.tether?.fence !== undefined,
  },
  {
    what: 'is refused',
    writes: 5,
    tethering: 'Forbid',
    prepare: async () => {
      bare = world.inventories();
      await Promise.resolve();
    },
    begin: () => world.want(TETHER),
    isOver: () => world.isAt('Refused'),
    end: async () => {
      world.want(undefined);
      await world.until(
        'nothing is left',
        () => world.isAt('Autonomous') && deepEqual(world.inventories(), bare),
      );
    },
  },
  {
    what: 'untethers',
    writes: 20,
    prepare: tethered,
    begin: () => world.want(undefined),
    isOver: isUntethered,
  },
  {
    what: 'is sent away',
    writes: 20,
    prepare: tethered,
    begin: () => world.companyWants('Disabled'),
    isOver: () => world.isAt('Refused') && isPodHome(),
    end: async () => {
      world.want(undefined);
      await world.until('nothing is left', isUntethered, () => JSON.stringify(world.inventories()));
    },
  },
];

/** Returns how many writes there were, at some or all of which the first of those that are killed together was killed. */
async function atEachWrite(
  scenario: Scenario,
  victims: readonly SideName[],
  when: 'before' | 'after',
): Promise<number> {
  const [first = 'device'] = victims;
  for (let k = 1; ; k += stride) {
    world = await new TetherWorld().up(scenario.tethering);
    await scenario.prepare?.();
    const kill = world.killAt(first, k, when);
    scenario.begin();
    await world.until('dead, or all done', () => kill.isDead() || scenario.isOver());
    // What is written after that counts, too.
    if (!kill.isDead()) await world.clock.advance(AFTERWARDS_MS);
    kill.disarm();
    try {
      if (kill.isDead()) await world.restart(...victims);
      await world.until('all done', scenario.isOver, () =>
        [...world.missing('Tethered'), ...world.inventories()].join('; '),
      );
      await scenario.end?.();
      expect(world.torn).toEqual([]);
    } catch (cause) {
      throw new Error(`killed at write ${k}, ${kill.at()}: ${String(cause)}`, { cause });
    }
    await world.down();
    if (!kill.isDead()) return k - 1;
  }
}

// What a dead process is not told makes no difference but to itself: the write before the next one is the same moment.
const moments = short('moments of a write at which a side of a tether is killed', {
  short: 'before',
  long: 'before after',
});
const together = short('sides of a tether that are killed', {
  short: 'device, company',
  long: 'device, company, device company, company device',
});

const stride = short('from one write at which a side of a tether is killed to the next', {
  short: 13,
  long: 1,
});

describe.each(SCENARIOS)('a device that $what', (scenario) => {
  describe.each(moments.split(' ') as ('before' | 'after')[])('with a kill %s each write', (when) => {
    test.each(together.split(', '))('of %s', async (names) => {
      const writes = await atEachWrite(scenario, names.split(' ') as SideName[], when);
      expect(writes).toBeGreaterThanOrEqual(scenario.writes);
    });
  });
});
