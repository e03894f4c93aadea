/** Whether the agent's memory, file descriptors and sockets stay flat while pods come and go. */
// The lab's PKI stands on decorators.
import 'reflect-metadata';

import { Bed } from './bed.ts';
import { agentContender } from './contender.ts';
import { course, FLAT_RULE, soak, type Sample } from './soak.ts';
import { parsedOptions, positiveNumber, refusePositionals, wholeNumber } from '../frame/arguments.ts';
import { runProgram } from '../frame/interruption.ts';
import { table } from '../frame/statistics.ts';

const USAGE = `usage: node bench/pods/churn.ts [--minutes 10] [--pods 200] [--node-flag FLAG]...

  --minutes NUMBER  how long pods come and go; make bench-churn MINUTES=NUMBER
  --pods NUMBER     how many there are at once
  --node-flag FLAG  a further flag of Node.js for the agent; can be given several times
  --check           says whether these options can be used, and measures nothing
`;

const OPTIONS = {
  minutes: { type: 'string', default: '10' },
  pods: { type: 'string', default: '200' },
  'node-flag': { type: 'string', multiple: true },
  check: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const FIGURES: readonly (readonly [string, (sample: Sample) => number])[] = [
  ['RSS MiB', (sample) => sample.rssMiB],
  ['file descriptors', (sample) => sample.fds],
  ['sockets', (sample) => sample.sockets],
];

async function churn(minutes: number, pods: number, nodeFlags: readonly string[]): Promise<void> {
  const bed = await Bed.up({ name: 'bench-churn', progress: say, nodeFlags });
  try {
    const agent = await agentContender(bed);
    const result = await soak(bed, agent, {
      minutes,
      pods,
      progress: (sample, cycles) =>
        say(
          `minute ${sample.minutes.toFixed(0)}: ${cycles} cycles, RSS ${sample.rssMiB.toFixed(0)} MiB, ${sample.fds} files, ${sample.sockets} sockets`,
        ),
    });
    say(`\n${result.cycles} cycles, ${result.pods} pods made and removed\n`);
    if (!report(result.samples)) process.exitCode = 1;
  } finally {
    await bed.down();
  }
}

/** Prints the course of each figure, and returns whether all of them are flat. */
function report(samples: readonly Sample[]): boolean {
  const courses = FIGURES.map(([name, figure]) => [name, course(samples, figure)] as const);
  const rows = courses.map(([name, { first, last, perHour, flat }]) => [
    name,
    first.toFixed(1),
    last.toFixed(1),
    perHour.toFixed(1),
    flat ? 'flat' : 'NOT FLAT',
  ]);
  say(table([['', 'first third', 'last third', 'growth per hour', ''], ...rows]));
  say(FLAT_RULE);
  return courses.every(([, { flat }]) => flat);
}

await runProgram('bench-churn', async () => {
  const { values, positionals } = parsedOptions(process.argv.slice(2), OPTIONS);
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  refusePositionals(positionals, '--help lists all options');
  const minutes = positiveNumber('minutes', values.minutes);
  const pods = wholeNumber('pods', values.pods);
  if (!values.check) await churn(minutes, pods, values['node-flag'] ?? []);
});
