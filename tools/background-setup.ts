/**
 * Builds programs and images while checks and tests run, so that no test waits for a compiler. On a new machine this
 * takes a quarter of an hour, longer than all checks and unit tests.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';

import { say, secondsSince } from './step.ts';
import { isLongRun } from './test-plan.ts';

/** It runs with low priority, because tests with deadlines run at the same time. */
const LOW_PRIORITY = 15;

/**
 * `clusters`: what clusters of pretended nodes, and so most integration tests, need. `everything`: all that whole suites
 * need. What only long variants need comes after both, and their files wait for it by themselves.
 */
export type SetupStage = 'clusters' | 'everything';

export class BackgroundSetup {
  readonly #made: Readonly<Record<SetupStage, Promise<Made>>>;
  readonly #reported = new Map<SetupStage, boolean>();

  /** Begins at once. `folder` takes its output, because nobody reads a pipe while the suites run. */
  constructor(folder: string) {
    const clusters = make('kwok', 'programs of clusters', folder);
    const everything = clusters.then(async () =>
      make('tests', 'all programs and images', folder, LOW_PRIORITY),
    );
    if (isLongRun())
      void everything.then(async () => make('long', 'programs of long variants', folder, LOW_PRIORITY));
    this.#made = { clusters, everything };
  }

  /** Waits until a stage is built. The first call also prints what was done. */
  async ready(stage: SetupStage): Promise<void> {
    if (this.#reported.has(stage)) return;
    const { name, ok, seconds, output } = await this.#made[stage];
    this.#reported.set(stage, ok);
    say(`${name}, begun with the checks`);
    process.stdout.write(output);
    console.log(`    ${name}: ${ok ? 'ok' : 'FAILED'} in ${seconds} s`);
  }

  /** If something could not be built, some suites can still run. */
  get hasFailed(): boolean {
    return [...this.#reported.values()].includes(false);
  }
}

interface Made {
  readonly name: string;
  readonly ok: boolean;
  readonly seconds: string;
  readonly output: Buffer;
}

async function make(profile: string, name: string, folder: string, priority = 0): Promise<Made> {
  const start = performance.now();
  const file = join(folder, `setup-${profile}`);
  const descriptor = openSync(file, 'w');
  const child = spawn(process.execPath, ['tools/setup.ts', profile], {
    stdio: ['ignore', descriptor, descriptor],
  });
  closeSync(descriptor);
  if (child.pid !== undefined && priority > 0) setPriority(child.pid, priority);
  const ok = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('close', (status) => resolve(status === 0));
  });
  return { name, ok, seconds: secondsSince(start), output: readFileSync(file) };
}
