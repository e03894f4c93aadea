#!/usr/bin/env node
/** The process: its signals, its streams, its exit code. Nothing else may touch them. */
import { basename } from 'node:path';

import { isCompletion, runCli } from './cli/cli.ts';
import { commandInput, terminalOf } from './cli/command-line.ts';

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // Asked twice: whoever asks does not want to wait for the orderly way.
    if (stop.signal.aborted) process.exit(1);
    stop.abort(new Error(`got ${name}`));
  });
}

void runCli(
  process.argv.slice(2),
  {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    input: commandInput(process.stdin, process.stdout),
    ...terminalOf(process.stdout, process.env),
  },
  stop.signal,
  // As a plug-in of kubectl.
  basename(process.argv[1] ?? '').startsWith('kubectl-') ? 'kubectl tributary' : undefined,
).then((code) => {
  process.exitCode = code;
  // A connection or a credential plug-in that hangs must not hold the prompt.
  if (isCompletion(process.argv.slice(2))) process.exit();
});
