/**
 * Benchmarks, each against its reference in the same run. Ratios are results; absolute times on a shared machine are not.
 *
 *     node bench/main.ts [--bench NAME,NAME] [--rounds 5] [--set PARAMETER=NUMBER]... [--json FILE]
 *                        [--before FOLDER] [--other NAME=COMMAND]... [--node-flag FLAG]... [--list]
 */
// The lab's PKI stands on decorators.
import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { BENCHES } from './benches.ts';
import { assigned, changedParameters, chooseBenches } from './frame/arguments.ts';
import { resultText } from './frame/text.ts';
import { runAll } from './frame/run.ts';

const { values } = parseArgs({
  options: {
    bench: { type: 'string', default: '' },
    rounds: { type: 'string', default: '5' },
    set: { type: 'string', multiple: true, default: [] },
    json: { type: 'string', default: '' },
    before: { type: 'string' },
    other: { type: 'string', multiple: true, default: [] },
    'node-flag': { type: 'string', multiple: true, default: [] },
    list: { type: 'boolean', default: false },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

if (values.list) {
  for (const { name, title, parameters } of BENCHES)
    say(`${name}: ${title} ${JSON.stringify(parameters).replaceAll('"', '')}`);
} else {
  const benches = chooseBenches(BENCHES, values.bench);
  await runAll({
    benches,
    changed: changedParameters(values.set, benches),
    rounds: Number(values.rounds),
    before: values.before,
    others: assigned(values.other).map(([name, command]) => ({ name, command })),
    nodeFlags: values['node-flag'],
    say,
    done: (run) => {
      const last = run.benches.at(-1);
      if (last !== undefined) say(`\n${resultText(last)}`);
      if (values.json !== '') writeFileSync(values.json, `${JSON.stringify(run, undefined, 1)}\n`);
    },
  });
}
