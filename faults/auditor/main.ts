/**
 * Watches two or more clusters from outside, and says which of the promises of Tributary were broken (README.md).
 *
 * Usage: node faults/auditor/main.ts CONFIG.json
 *   Commands are lines of JSON on standard input; each is answered by one line on standard output.
 */
import { createInterface } from 'node:readline';

import { Auditor } from './auditor.ts';
import { type Command, commandOf } from './commands.ts';
import { readConfig } from './config.ts';
import { settle } from './settle.ts';

const say = (answer: object): void => void process.stdout.write(`${JSON.stringify(answer)}\n`);

async function answerTo(auditor: Auditor, command: Command, run: string): Promise<object> {
  const did = command.do;
  if (command.do === 'begin') await auditor.begin();
  if (command.do === 'watch-process') auditor.processes.watch(command.pid);
  if (command.do === 'killed') auditor.processes.killed(command.pid);
  if (command.do === 'lost') auditor.lost(command.uid);
  if (command.do === 'restored') await auditor.restored(command.cluster);
  return command.do === 'settle' ? { did, run, ...(await settle(auditor)) } : { did };
}

async function main(): Promise<void> {
  const [path, ...rest] = process.argv.slice(2);
  if (path === undefined || rest.length > 0)
    throw new Error('usage: node faults/auditor/main.ts CONFIG.json');
  const auditor = new Auditor(readConfig(path));
  const ended = new AbortController();
  process.once('SIGTERM', () => process.exit(0));
  auditor.watch(ended.signal).catch(fail);
  let run = '';
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue;
    const command = commandOf(line);
    if (command.do === 'begin') run = command.run;
    say(await answerTo(auditor, command, run));
  }
  process.exit(0);
}

function fail(error: unknown): void {
  say({ error: Error.isError(error) ? error.message : String(error) });
  process.exit(2);
}

main().catch(fail);
