#!/usr/bin/env node
/** The process: its signals, its streams, its exit code. Nothing else may touch them. */
import { basename } from 'node:path';

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

async function run(): Promise<void> {
  const [{ isCompletion, runCli }, { commandInput, terminalOf }] = await Promise.all([
    import('./cli/cli.ts'),
    import('./cli/command-line.ts'),
  ]);
  process.exitCode = await runCli(
    args,
    {
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
      input: commandInput(process.stdin, process.stdout),
      ...terminalOf(process.stdout, process.env),
    },
    stop.signal,
    // As a plug-in of kubectl.
    basename(process.argv[1] ?? '').startsWith('kubectl-') ? 'kubectl tributary' : undefined,
  );
  // A connection or a credential plug-in that hangs must not hold the prompt.
  if (isCompletion(args)) process.exit();
}

// Scripts ask for it all the time: it does not wait until all other commands are loaded.
if (args.length === 1 && args[0] === 'version') process.stdout.write(versionLine());
else void run();
