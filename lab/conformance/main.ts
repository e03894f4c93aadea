/**
 * `make conformance`: Kubernetes' own end-to-end suite, directly on a cluster and through the virtual node that stands for it.
 * Prints what passes directly and fails through the virtual node, writes result.json beside this file and
 * docs/conformance.md, and fails if such a difference has no reason in reasons.ts.
 *
 * Usage: node lab/conformance/main.ts [--processes N] [--focus REGEXP] [--directly all|failed]
 *   --focus     only specs whose name matches; nothing is written then
 *   --directly  failed: only what has failed through the virtual node runs directly, too
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Stage } from '../demo/stage.ts';
import { holdLab } from '../holder.ts';
import { Lab } from '../lab.ts';
import { run } from '../run.ts';
import { measure } from './measure.ts';
import { DIFFERENCES } from './reasons.ts';
import { unexplained, type Result } from './score.ts';

const LAB = 'conformance';
const repository = join(import.meta.dirname, '..', '..');
const DEFAULT_PROCESSES = '10';

const say = (line: string): void => console.log(line);

async function main(signal: AbortSignal): Promise<void> {
  const { values } = parseArgs({
    options: {
      processes: { type: 'string', default: DEFAULT_PROCESSES },
      focus: { type: 'string', default: '' },
      directly: { type: 'string', default: 'all' },
    },
  });
  const { directly } = values;
  const processes = Number(values.processes);
  if (!Number.isInteger(processes) || processes < 1)
    throw new Error(`--processes ${values.processes}: not a number above 0`);
  if (directly !== 'all' && directly !== 'failed') throw new Error(`--directly ${directly}: all or failed`);
  const focus = values.focus === '' ? undefined : new RegExp(values.focus);
  const hold = await holdLab(LAB, { signal, progress: say });
  const stage = new Stage(say);
  try {
    const result = await measure(stage, { lab: LAB, processes, focus, directly, signal, say });
    if (focus === undefined) await keep(result);
    report(result);
  } finally {
    await stage.step('everything removed again', async () => Lab.down(LAB));
    say(`\n${stage.table()}`);
    await hold.release();
  }
}

async function keep(result: Result): Promise<void> {
  writeFileSync(join(import.meta.dirname, 'result.json'), `${JSON.stringify(result, undefined, 2)}\n`);
  say(await run([process.execPath, join(repository, 'tools', 'generate.ts')]));
}

/** Prints the score. */
function report(result: Result): void {
  const { passed, differences, betterThrough, failedBoth, skipped, minutes } = result;
  say(
    `\n${passed.length} pass on both sides, ${differences.length} only directly, ${betterThrough.length} only through the ` +
      `virtual node, ${failedBoth.length} on neither, ${skipped.length} skip themselves; ${minutes.total} minutes`,
  );
  for (const name of differences)
    say(`difference: ${name}\n    ${DIFFERENCES[name] ?? 'no reason is known'}`);
  for (const name of failedBoth) say(`fails on both sides: ${name}`);
  const open = unexplained(result, new Map(Object.entries(DIFFERENCES)));
  if (open.length === 0) return;
  console.error(
    `conformance: ${open.length} differences have no reason in lab/conformance/reasons.ts:\n${open.join('\n')}`,
  );
  process.exitCode = 1;
}

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}`)));
}
try {
  await main(interruption.signal);
} catch (error) {
  console.error(`conformance: ${Error.isError(error) ? error.message : String(error)}`);
  process.exitCode = 1;
}
