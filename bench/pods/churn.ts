/**
 * Whether the agent's memory, file descriptors and sockets stay flat while pods come and go.
 *
 *     node bench/pods/churn.ts [--minutes 10] [--pods 200] [--node-flag FLAG]...
 */
import { parseArgs } from 'node:util';

import { Bed } from './bed.ts';
import { agentContender } from './contender.ts';
import { course, FLAT_RULE, soak, type Sample } from './soak.ts';
import { table } from '../frame/statistics.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    pods: { type: 'string', default: '200' },
    'node-flag': { type: 'string', multiple: true, default: [] },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const bed = await Bed.up({ name: 'bench-churn', progress: say, nodeFlags: values['node-flag'] });
try {
  const agent = await agentContender(bed);
  const result = await soak(bed, agent, {
    minutes: Number(values.minutes),
    pods: Number(values.pods),
    progress: ({ minutes, rssMiB, fds, sockets }, cycles) =>
      say(
        `minute ${minutes.toFixed(0)}: ${cycles} cycles, RSS ${rssMiB.toFixed(0)} MiB, ${fds} files, ${sockets} sockets`,
      ),
  });
  const figures: [string, (sample: Sample) => number][] = [
    ['RSS MiB', (sample) => sample.rssMiB],
    ['file descriptors', (sample) => sample.fds],
    ['sockets', (sample) => sample.sockets],
  ];
  const courses = figures.map(([name, figure]) => [name, course(result.samples, figure)] as const);
  say(`\n${result.cycles} cycles, ${result.pods} pods made and removed\n`);
  say(
    table([
      ['', 'first third', 'last third', 'growth per hour', ''],
      ...courses.map(([name, { first, last, perHour, flat }]) => [
        name,
        first.toFixed(1),
        last.toFixed(1),
        perHour.toFixed(1),
        flat ? 'flat' : 'NOT FLAT',
      ]),
    ]),
  );
  say(FLAT_RULE);
  if (!courses.every(([, { flat }]) => flat)) process.exitCode = 1;
} finally {
  await bed.down();
}
