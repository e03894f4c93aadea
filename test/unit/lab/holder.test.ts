import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { Program } from '../../../lab/demo/program.ts';
import { describeHolder, holdLab, inWords, LabHeldError } from '../../../lab/holder.ts';
import { Lab } from '../../../lab/lab.ts';
import { processesWith } from '../../../lab/process.ts';
import { describeLabs } from '../../../lab/status.ts';
import { eventually } from '../../support/eventually.ts';

const SCRIPT = 'test/unit/lab/support/lab-holder.ts';
const RUN = 'TRIBUTARY_LAB_RUN';

let root: string;
let given: string | undefined;
const programs: Program[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tl-'));
  given = process.env[RUN];
  process.env[RUN] = root;
});
afterEach(async () => {
  await Promise.all(programs.splice(0).map(async (program) => program.stop()));
  if (given === undefined) delete process.env[RUN];
  else process.env[RUN] = given;
  rmSync(root, { recursive: true, force: true });
});

const isFlock = ([program, ...words]: readonly string[], folder: string): boolean =>
  program === 'flock' && words.some((word) => word.startsWith(folder));

/** Another process; it has said what became of its wish. */
async function another(name: string, ...mode: string[]): Promise<Program> {
  const program = Program.start([process.execPath, SCRIPT, name, ...mode], { keepStdin: true });
  programs.push(program);
  await program.waitFor(/^(?:held|refused|progress)/m);
  return program;
}

/** What a run that was killed leaves. */
function leaveLab(name: string): string {
  const journal = join(root, name, 'journal.jsonl');
  mkdirSync(join(root, name));
  writeFileSync(journal, `${JSON.stringify({ kind: 'directory', path: join(root, name) })}\n`);
  return journal;
}

test('a second program is refused, and told who holds the lab and what to do', async () => {
  const first = await another('demo');
  expect(first.stdout).toBe('held\n');
  const second = await another('demo');
  await second.ended;
  const [line = '', advice = ''] = second.stdout.split('\n');
  expect(line).toMatch(
    /^refused: lab demo is held by node test\/unit\/lab\/support\/lab-holder\.ts demo in \//,
  );
  expect(line).toMatch(new RegExp(String.raw`\(pid ${first.pid}, since 20\d\d-.*Z\)$`));
  expect(advice).toContain(`kill ${first.pid}`);
  expect(advice).toContain('npm run lab -- down --name demo');
  expect((await another('other')).stdout).toBe('held\n');
});

test('one that ends leaves nothing, one that is killed neither', async () => {
  const first = await another('demo');
  first.closeInput();
  await first.ended;
  expect(describeHolder('demo')).toBeUndefined();
  const second = await another('demo');
  expect(second.stdout).toBe('held\n');
  process.kill(second.pid ?? 0, 'SIGKILL');
  await second.ended;
  expect((await another('demo')).stdout).toBe('held\n');
});

test('one that is interrupted at its terminal holds it until it has cleaned up', async () => {
  const first = await another('demo');
  process.kill(-(first.pid ?? 0), 'SIGINT');
  await first.waitFor(/^interrupted/m);
  await eventually('flock(1) has ended', () => processesWith((words) => isFlock(words, root)).length === 0);
  expect((await another('demo')).stdout).toMatch(/^refused/);
});

test('who waits says for whom, and goes on at the end of the other', async () => {
  const first = await another('demo');
  const second = await another('demo', 'wait');
  expect(second.stdout).toContain(
    'progress: waiting for lab demo: held by node test/unit/lab/support/lab-holder.ts demo',
  );
  expect(second.stdout).not.toMatch(/^held/m);
  first.closeInput();
  await second.waitFor(/^held/m);
  expect(describeHolder('demo')).toContain(`(pid ${second.pid},`);
});

test('a wait can be ended', async () => {
  await another('demo');
  const abort = new AbortController();
  const waiting = holdLab('demo', {
    wait: true,
    signal: abort.signal,
    progress: () => abort.abort(new Error('enough')),
  });
  await expect(waiting).rejects.toThrow('enough');
});

test('this process and those it starts may use what it holds, and do not free it', async () => {
  const hold = await holdLab('mine');
  const again = await holdLab('mine');
  const child = await another('mine');
  expect(child.stdout).toBe('held\n');
  child.closeInput();
  await child.ended;
  await again.release();
  expect(describeHolder('mine')).toContain(`(pid ${process.pid},`);
  await hold.release();
  expect(describeHolder('mine')).toBeUndefined();
});

test('two programs that one process has started are strangers', async () => {
  await another('one');
  const second = await another('one');
  expect(second.stdout).toMatch(/^refused/);
});

describe('a lab', () => {
  test('of somebody else is neither removed nor brought up, and its end is shown by status', async () => {
    const journal = leaveLab('demo');
    const holder = await another('demo');
    await expect(Lab.down('demo')).rejects.toThrow(LabHeldError);
    await expect(Lab.fresh({ name: 'demo' })).rejects.toThrow(`pid ${holder.pid}`);
    await expect(Lab.up({ name: 'demo' })).rejects.toThrow(LabHeldError);
    expect(existsSync(journal)).toBe(true);
    expect(await describeLabs('demo')).toContain(`held by node ${SCRIPT} demo`);
  });

  test('of somebody else is removed by force', async () => {
    const journal = leaveLab('demo');
    await another('demo');
    expect(await Lab.down('demo', { force: true })).toBe(true);
    expect(existsSync(journal)).toBe(false);
  });

  test('that nobody works with is removed, and free afterwards', async () => {
    const journal = leaveLab('demo');
    expect(await Lab.down('demo')).toBe(true);
    expect(existsSync(journal)).toBe(false);
    expect((await another('demo')).stdout).toBe('held\n');
  });

  test('that could not be brought up is free again', async () => {
    const up = Lab.fresh({ name: 'demo', workload: 'kwok', clusters: [], signal: AbortSignal.abort() });
    await expect(up).rejects.toThrow('aborted');
    expect((await another('demo')).stdout).toBe('held\n');
  });
});

test.each([
  [['/usr/bin/node', '/tree/lab/demo/main.ts', 'pods'], 'node lab/demo/main.ts pods in /tree'],
  [['/n/node', '--experimental-vm-modules', '/else/x.js', 'a'], 'node /else/x.js a in /tree'],
  [['node', 'x'.repeat(400)], `node ${'x'.repeat(155)}... in /tree`],
])('a command in words: %j', (command, expected) => {
  expect(inWords(command, '/tree')).toBe(expected);
});
