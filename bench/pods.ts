/**
 * How fast a Deployment's pods become Ready through the product, compared in the same run with a null mirror and with the foreign cluster alone. Ratios are results; absolute times on a shared machine are not.
 *
 *     node bench/pods.ts [--pods 1000] [--rounds 5] [--warm-up 100] [--requests] [--node-flag FLAG]...
 */
import { parseArgs } from 'node:util';

import { Bed } from './bed.ts';
import { burst, type Burst } from './burst.ts';
import { agentContender, native, nullContender, type Contender } from './contender.ts';
import { comparison, ratios, requestTable } from './report.ts';

const { values } = parseArgs({
  options: {
    pods: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    'warm-up': { type: 'string', default: '100' },
    requests: { type: 'boolean', default: false },
    'node-flag': { type: 'string', multiple: true, default: [] },
  },
});
const [count, rounds, warmUp] = [Number(values.pods), Number(values.rounds), Number(values['warm-up'])];
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const bed = await Bed.up({ name: 'bench-pods', progress: say, nodeFlags: values['node-flag'] });
try {
  const agent = await agentContender(bed);
  const contenders: Contender[] = [agent, await nullContender(bed), native];
  await bed.quiet();
  say(`agent without pods: RSS ${agent.program.figures.rssMiB.toFixed(0)} MiB`);
  // Warms up compilers and caches of every program; not counted.
  if (warmUp > 0) for (const contender of contenders) await burst(bed, contender, warmUp);
  const results = new Map<Contender['name'], Burst[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const result = await burst(bed, contender, count);
      results.get(contender.name)?.push(result);
      const rss = result.ready === undefined ? '' : `, RSS ${result.ready.rssMiB.toFixed(0)} MiB`;
      say(`round ${round}, ${contender.name}: ${result.readyPerSecond.toFixed(1)} pods/s${rss}`);
    }
  }
  say(`\n${count} pods in one Deployment, ${rounds} rounds, median (least–most)\n`);
  say(comparison(results));
  say(ratios(results));
  if (values.requests) for (const [name, bursts] of results) say(`\n${name}\n${requestTable(bursts)}`);
} finally {
  await bed.down();
}
