#!/usr/bin/env node
/** The process: its signals, its streams, its exit code. Nothing else may touch them. */
import { basename } from 'node:path';

import { oldNodeMessage } from './cli/old-node.ts';
import { versionLine } from './cli/version-line.ts';

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // Asked twice: whoever asks does not want to wait for the orderly way.
    if (stop.signal.aborted) process.exit(1);
    stop.abort(new Error(`got ${name}`));
  });
}

/** What a shell says of a program that SIGPIPE has ended; Node.js ignores that signal. */
const READER_GONE = 141;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // As in `tributary --help | head -1`: whoever reads has had enough, and nobody is there to be told anything.
    if (error.code === 'EPIPE') process.exit(READER_GONE);
    throw error;
  });
}

const args = process.argv.slice(2);

/** As a plug-in of kubectl. */
const isPlugIn = basename(process.argv[1] ?? '').startsWith('kubectl-');

async function runCommand(): Promise<void> {
  const { commandInput, terminalOf } = await import('./cli/command-line.ts');
  const io = {
    out: (text: string): void => void process.stdout.write(text),
    err: (text: string): void => void process.stderr.write(text),
    input: commandInput(process.stdin, process.stdout),
    ...terminalOf(process.stdout, process.env),
  };
  // A role would hold the code of all commands for as long as it runs.
  if (args[0] === 'run' && !isPlugIn) {
    const { runRoleCommand } = await import('./cli/run.ts');
    process.exitCode = await runRoleCommand(args.slice(1), io, stop.signal);
    return;
  }
  const { isCompletion, runCli } = await import('./cli/cli.ts');
  process.exitCode = await runCli(args, io, stop.signal, isPlugIn ? 'kubectl tributary' : undefined);
  // A connection or a credential plug-in that hangs must not hold the prompt.
  if (isCompletion(args)) process.exit();
}

const tooOld = oldNodeMessage(process.versions.node, process.execPath);
// Scripts ask for it all the time: it does not wait until all other commands are loaded.
if (args.length === 1 && args[0] === 'version') process.stdout.write(versionLine());
else if (tooOld !== undefined) {
  process.stderr.write(tooOld);
  process.exitCode = 1;
} else void runCommand();
