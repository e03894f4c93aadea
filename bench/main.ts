/**
 * Benchmarks, each against its reference in the same run. Ratios are results; absolute times on a shared machine are not.
 * `--help` says which options there are.
 */
// The lab's PKI stands on decorators.
import 'reflect-metadata';
import { writeFileSync } from 'node:fs';

import { BENCHES } from './benches.ts';
import { listText, parseCommand, USAGE, type RunCommand } from './frame/command-line.ts';
import { runProgram } from './frame/interruption.ts';
import { checkCheckout, checkWritable } from './frame/places.ts';
import { checkPossible, runAll } from './frame/run.ts';
import { resultText } from './frame/text.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function perform(command: RunCommand, signal: AbortSignal): Promise<void> {
  const { json, benches } = command;
  if (json !== undefined) checkWritable(json);
  const before = command.before === undefined ? undefined : checkCheckout(command.before);
  // What benchmarks need of the machine is installed after this check.
  if (command.verb === 'check') return;
  checkPossible(benches, command.changed);
  const defaults = new Map(benches.map(({ name, parameters }) => [name, parameters]));
  await runAll({
    ...command,
    before,
    signal,
    say,
    done: (run) => {
      const last = run.benches.at(-1);
      if (last !== undefined) say(`\n${resultText(last, defaults.get(last.name) ?? {})}`);
      if (json !== undefined) writeFileSync(json, `${JSON.stringify(run, undefined, 1)}\n`);
    },
  });
}

await runProgram('bench', async (signal) => {
  const command = parseCommand(process.argv.slice(2), BENCHES);
  if (command.verb === 'help') process.stdout.write(USAGE);
  else if (command.verb === 'list') process.stdout.write(listText(BENCHES));
  else await perform(command, signal);
});
