/** P17: exec, logs and port-forward through the virtual node, beside the same at the provider. */
import { type Bench, type Found, type Goal, inTurn, type Measured } from '../frame/bench.ts';
import { differences, ratios } from '../frame/goals.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { median } from '../frame/statistics.ts';
import { AccessBed, type Way } from './bed.ts';
import { crowd, USES, type UseName } from './flows.ts';

interface Sizes {
  readonly megabytes: number;
  readonly samples: number;
  readonly transfers: number;
  readonly streams: number;
}

/** Figures of one round. */
type Figures = Map<string, number>;
type Rounds = Map<string, Figures[]>;

const NAMES: readonly UseName[] = ['exec', 'log', 'forward'];
const BYTES_PER_MB = 1_000_000;
const MB_PER_GB = 1_000;
const firstOf = (use: UseName): string => `${use}: ms to the first byte, p50`;
const rateOf = (use: UseName): string => `${use}: MB/s`;

export const accessBench: Bench<{
  megabytes: number;
  samples: number;
  transfers: number;
  streams: number;
}> = {
  name: 'access',
  title: 'exec, logs and port-forward',
  what:
    'One pod in a real container of the foreign cluster. It is reached at home through the virtual node, and **directly** at the foreign API ' +
    'server; the client is the same: WebSockets for exec, HTTP/2 for logs, `kubectl port-forward`. The way through the virtual node has two more ' +
    'programs in it, the home API server and the agent, and each of them decrypts and encrypts all bytes once more. First bytes and rates are ' +
    'medians of several uses by turns, each way first as often as any other. Streams at once are port-forwards that send a word and get it back; the longest answer of the agent’s /livez ' +
    'meanwhile shows whether its event loop stalls.',
  parameters: { megabytes: 64, samples: 45, transfers: 6, streams: 100 },
  problem: () => (process.getuid?.() === 0 ? undefined : 'real containers need root'),
  run: async ({ parameters, rounds, say, before, nodeFlags }) => {
    const bytes = parameters.megabytes * BYTES_PER_MB;
    const bed = await AccessBed.up({ bytes, before, nodeFlags, progress: say });
    try {
      // Warms up all programs on the way; not counted.
      await round(bed.ways, { megabytes: 1, samples: 2, transfers: 1, streams: 2 });
      const results: Rounds = new Map(bed.ways.map(({ name }) => [name, []]));
      for (let number = 1; number <= rounds; number++) {
        for (const [name, figures] of await round(bed.ways, parameters)) {
          results.get(name)?.push(figures);
          say(
            `round ${number}, ${name}: ${[...figures].map(([what, n]) => `${what} ${n.toFixed(1)}`).join(', ')}`,
          );
        }
      }
      return found(results);
    } finally {
      await bed.down();
    }
  },
};

async function round(ways: readonly Way[], sizes: Sizes): Promise<Map<string, Figures>> {
  const all = new Map(ways.map(({ name }): [string, Figures] => [name, new Map()]));
  const of = ({ name }: Way): Figures => all.get(name) ?? new Map();
  for (const use of NAMES) {
    const firsts = new Map(ways.map((way): [Way, number[]] => [way, []]));
    for (let sample = 0; sample < sizes.samples; sample++) {
      for (const way of inTurn(ways, sample))
        firsts.get(way)?.push((await USES[use](way, 'short')).firstByteMs);
    }
    for (const [way, values] of firsts) of(way).set(firstOf(use), median(values));
    const transfers = new Map(ways.map((way): [Way, Transfer[]] => [way, []]));
    for (let transfer = 0; transfer < sizes.transfers; transfer++) {
      for (const way of inTurn(ways, transfer)) transfers.get(way)?.push(await transferred(way, use));
    }
    for (const [way, made] of transfers) note(use, made, of(way));
  }
  for (const way of ways) {
    const cpuBefore = ownCpuMs(way);
    const { ms, stallMs } = await crowd(way, sizes.streams);
    if (way.agent !== undefined) {
      of(way).set('of each: agent’s CPU ms', (ownCpuMs(way) - cpuBefore) / sizes.streams);
    }
    of(way).set(`${sizes.streams} streams at once: ms until all are answered`, ms);
    if (way.agent !== undefined) of(way).set('meanwhile: longest answer of /livez, ms', stallMs);
  }
  return all;
}

const cpuOf = (pid: number | undefined): number => (pid === undefined ? 0 : cpuMs(pid));
const ownCpuMs = ({ agent }: Way): number => cpuOf(agent?.pid);

interface Transfer {
  readonly megabytes: number;
  readonly rate: number;
  /** CPU seconds of each program on the way that is not on the direct one. */
  readonly cpuSeconds: ReadonlyMap<string, number>;
}

async function transferred(way: Way, use: UseName): Promise<Transfer> {
  const { agent, homeApiServerPid } = way;
  const programs = Object.entries({ 'agent’s': agent?.pid, 'home API server’s': homeApiServerPid }).filter(
    ([, pid]) => pid !== undefined,
  );
  const before = programs.map(([, pid]) => cpuOf(pid));
  const { ms, bytes } = await USES[use](way, 'long');
  const cpuSeconds = programs.map(([whose, pid], index): [string, number] => [
    whose,
    (cpuOf(pid) - (before[index] ?? 0)) / 1000,
  ]);
  const megabytes = bytes / BYTES_PER_MB;
  return { megabytes, rate: megabytes / (ms / 1000), cpuSeconds: new Map(cpuSeconds) };
}

function note(use: UseName, transfers: readonly Transfer[], figures: Figures): void {
  figures.set(rateOf(use), median(transfers.map(({ rate }) => rate)));
  const megabytes = sum(transfers.map((one) => one.megabytes));
  for (const whose of transfers[0]?.cpuSeconds.keys() ?? []) {
    const seconds = sum(transfers.map(({ cpuSeconds }) => cpuSeconds.get(whose) ?? 0));
    figures.set(`${use}: ${whose} CPU s per GB`, (seconds / megabytes) * MB_PER_GB);
  }
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

function found(results: Rounds): Found {
  const measured: Measured[] = [...results].flatMap(([contender, rounds]) =>
    [...(rounds[0]?.keys() ?? [])].map((figure) => ({
      contender,
      figure,
      values: rounds.map((figures) => figures.get(figure) ?? Number.NaN),
      digits: figure.includes('streams at once') || figure.includes('/livez') ? 0 : 1,
    })),
  );
  const order = measured.map(({ figure }) => figure);
  return {
    measured: measured.toSorted((a, b) => order.indexOf(a.figure) - order.indexOf(b.figure)),
    goals: goalsOf(results),
  };
}

function goalsOf(results: Rounds): Goal[] {
  const of = (contender: string, figure: string): number[] =>
    (results.get(contender) ?? []).map((figures) => figures.get(figure) ?? Number.NaN);
  const later = NAMES.map((use) => differences(of('agent', firstOf(use)), of('direct', firstOf(use))));
  const rates = NAMES.map((use) => ({
    id: `P17-${use}`,
    what: `${use}: MB/s through the virtual node, of those directly`,
    values: ratios(of('agent', rateOf(use)), of('direct', rateOf(use))),
    atLeast: 0.9,
  }));
  const worst = (later[0] ?? []).map((_, index) =>
    Math.max(...later.map((values) => values[index] ?? Number.NaN)),
  );
  const first = {
    id: 'P17-first-byte',
    what: 'ms by which the first byte comes later than directly, of exec, log and port-forward the worst',
    values: worst,
    atMost: 5,
    digits: 1,
  };
  return [...rates, first];
}
