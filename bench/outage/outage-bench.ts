/** P6, P15 and P16: what pods of two clusters miss of each other while something fails, and how soon a new Service answers. */
import { systemClock } from '../../src/lib/clock.ts';
import { missing, thisMachine } from '../../lab/preflight.ts';
import { isNodeReady } from '../../test/support/e2e/peers.ts';
import { until } from '../../test/support/e2e/until.ts';
import type { Bench, Goal, Measured } from '../frame/bench.ts';
import { median } from '../frame/statistics.ts';
import { Bed, type Disturbed } from './bed.ts';

/** Something that fails, and what puts it right for the next round. */
interface Outage {
  readonly name: string;
  readonly act: (bed: Bed) => Promise<unknown>;
  readonly after?: (bed: Bed) => Promise<unknown>;
}

const ACTIVE = 'milan-2';
const STANDBY = 'milan-1';
const NOTHING = 'nothing';
const AGENTS = 'agents killed';
const GATEWAY = 'gateway killed';
const ROAM = 'another address';
const GLITCH_MS = 2_000;
const WATCH_MS = 4_000;
/** Of each kind, in a round. */
const SERVICES = 8;

/** As after a reboot: a kubelet waits longer before each start of a container that has ended before. */
async function renewed(bed: Bed): Promise<void> {
  const { underlay } = bed;
  // It may be a new one already.
  await underlay.removePod(await until(`a gateway is on ${ACTIVE}`, async () => underlay.gatewayPod(ACTIVE)));
  await ready(bed);
}

const ready = async ({ underlay }: Bed): Promise<void> => {
  await underlay.makeActive(ACTIVE);
  for (const city of ['rome', 'milan'] as const) await underlay.untilReady(city);
};

const OUTAGES: readonly Outage[] = [
  { name: NOTHING, act: async () => systemClock.sleep(WATCH_MS) },
  {
    name: AGENTS,
    act: async ({ underlay: { peers } }) => {
      for (const city of ['rome', 'milan'] as const) await peers.killAgents(city);
      await systemClock.sleep(WATCH_MS);
    },
    after: async ({ underlay: { peers } }) =>
      peers.untilNodes('are Ready', (nodes) => nodes.length > 0 && nodes.every(isNodeReady), 120),
  },
  { name: GATEWAY, act: async (bed) => killed(bed, ACTIVE, /main\.js run gateway/), after: renewed },
  { name: 'wireguard-go killed', act: async (bed) => killed(bed, ACTIVE, /wireguard-go/), after: renewed },
  {
    name: 'its node cut off',
    act: async ({ underlay }) => {
      await underlay.setCable(ACTIVE, 'down');
      await until(`${STANDBY} leads`, async () => (await underlay.gateway()) === STANDBY);
    },
    after: async (bed) => {
      await bed.underlay.setCable(ACTIVE, 'up');
      await bed.underlay.untilFenced(ACTIVE);
      await ready(bed);
    },
  },
  {
    name: ROAM,
    act: async ({ underlay }) => underlay.moveRome(),
    after: async ({ underlay }) => underlay.setRouter(''),
  },
];

async function killed(bed: Bed, node: string, commandLine: RegExp): Promise<void> {
  bed.kill(node, commandLine);
  await systemClock.sleep(WATCH_MS);
}

/** Seconds from a cut of the network to what people see of it, and back. */
interface Cut {
  readonly seenAfter: number;
  readonly backAfter: number;
  /** Whether a cut of two seconds was seen. */
  readonly glitchSeen: boolean;
}

async function cut({ underlay: { peers } }: Bed): Promise<Cut> {
  const isReady = async (): Promise<boolean> => (await peers.nodes()).every(isNodeReady);
  const since = async (): Promise<unknown> =>
    (await peers.nodes()).map(
      ({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime,
    );
  const secondsUntil = async (what: string, isSo: () => Promise<boolean>): Promise<number> => {
    const began = performance.now();
    await until(what, isSo);
    return (performance.now() - began) / 1000;
  };
  const before = JSON.stringify(await since());
  await peers.setNetwork('cut');
  await systemClock.sleep(GLITCH_MS);
  await peers.setNetwork('open');
  await systemClock.sleep(WATCH_MS);
  const glitchSeen = JSON.stringify(await since()) !== before;
  await peers.setNetwork('cut');
  const seenAfter = await secondsUntil('the Node is not Ready', async () => !(await isReady()));
  await peers.setNetwork('open');
  const backAfter = await secondsUntil('the Node is Ready again', isReady);
  return { seenAfter, backAfter, glitchSeen };
}

interface Round {
  readonly outages: ReadonlyMap<string, Disturbed>;
  /** Milliseconds until a new Service answers, the median. */
  readonly served: Readonly<Record<'home' | 'away', number>>;
  readonly cut: Cut;
}

async function once(bed: Bed, round: number): Promise<Round> {
  const outages = new Map<string, Disturbed>();
  for (const { name, act, after } of OUTAGES) {
    outages.set(name, await bed.disturbed(async () => act(bed)));
    await after?.(bed);
  }
  return { outages, served: await served(bed, round), cut: await cut(bed) };
}

/** Of each as many, by turns: the Service proxy writes its rules once in a second. */
async function served(bed: Bed, round: number): Promise<Round['served']> {
  const found = { home: [] as number[], away: [] as number[] };
  for (let sample = 0; sample < SERVICES; sample++)
    for (const pod of ['home', 'away'] as const)
      found[pod].push(await bed.untilServed(pod, round * SERVICES + sample));
  return { home: median(found.home), away: median(found.away) };
}

export const outageBench: Bench = {
  name: 'outage',
  title: 'what pods miss while something fails',
  what:
    'Two clusters of real containers on two segments, with a router between them; the provider has two nodes with a gateway each, whose Lease lasts two ' +
    'seconds here. A datagram goes from a pod of home to one over there and back each 10 ms; a gap is the longest time between two answers, and `nothing` is what the ' +
    'machine does to them by itself. A count of lost ones may be one off: the answer to one from before it counts, too. Pods of agents are killed in both clusters at once. A new Service is tried each millisecond from a pod of ' +
    'home, from the answer to its creation on.',
  parameters: {},
  problem: () => missing(thisMachine()),
  run: async ({ rounds, say }) => {
    const bed = await Bed.up(say);
    try {
      await ready(bed);
      const all: Round[] = [];
      for (let round = 1; round <= rounds; round++) {
        const one = await once(bed, round);
        all.push(one);
        say(
          `round ${round}: ${[...one.outages].map(([name, { gapMs }]) => `${name} ${gapMs.toFixed(0)}`).join(', ')} ms`,
        );
      }
      return { measured: measuredOf(all), goals: goalsOf(all) };
    } finally {
      await bed.down();
    }
  },
};

function measuredOf(all: readonly Round[]): Measured[] {
  const of = (name: string): Disturbed[] => all.flatMap(({ outages }) => outages.get(name) ?? []);
  return [
    ...OUTAGES.flatMap(({ name }): Measured[] => [
      { contender: name, figure: 'longest gap ms', values: of(name).map(({ gapMs }) => gapMs), digits: 0 },
      { contender: name, figure: 'datagrams lost', values: of(name).map(({ lost }) => lost), digits: 0 },
    ]),
    ...(['home', 'away'] as const).map((where) => ({
      contender: where === 'home' ? 'Service of a pod here' : 'Service of a pod over there',
      figure: 'ms until it answers',
      values: all.map(({ served }) => served[where]),
    })),
    {
      contender: 'cut network',
      figure: 's until the Node says so',
      values: all.map(({ cut: { seenAfter } }) => seenAfter),
    },
    {
      contender: 'cut network',
      figure: 's until it is Ready again',
      values: all.map(({ cut: { backAfter } }) => backAfter),
    },
  ];
}

function goalsOf(all: readonly Round[]): Goal[] {
  const more = (name: string, figure: keyof Disturbed): number[] =>
    all.map(({ outages }) => {
      const of = (what: string): number => outages.get(what)?.[figure] ?? Number.NaN;
      return of(name) - of(NOTHING);
    });
  const at = { digits: 0 };
  return [
    {
      id: 'P6',
      what: 'ms until a Service of a pod over there answers, more than one of a pod here',
      values: all.map(({ served: { home, away } }) => away - home),
      atMost: 25,
      ...at,
    },
    // When they are counted, one may be on its way.
    {
      id: 'P15-agents',
      what: 'datagrams lost, agents killed, more than with nothing',
      values: more(AGENTS, 'lost'),
      atMost: 1,
      ...at,
    },
    {
      id: 'P15-gateway',
      what: 'ms of gap, gateway killed, more than with nothing',
      values: more(GATEWAY, 'gapMs'),
      atMost: 2_000,
      ...at,
    },
    {
      id: 'P15-roam',
      what: 'ms of gap, another address, more than with nothing',
      values: more(ROAM, 'gapMs'),
      atMost: 1_000,
      ...at,
    },
    {
      id: 'P16-glitch',
      what: 'of rounds, in how many a cut of two seconds was seen',
      values: all.map(({ cut: { glitchSeen } }) => Number(glitchSeen)),
      atMost: 0,
      ...at,
    },
  ];
}
