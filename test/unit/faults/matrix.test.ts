import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { OPERATIONS as PEER_OPERATIONS } from '../../../faults/peers/pair.ts';
import { planOf } from '../../../faults/plan.ts';
import { SIDES } from '../../../faults/pods/lane.ts';
import { OPERATIONS as POD_OPERATIONS } from '../../../faults/pods/workload.ts';

const ROOT = join(import.meta.dirname, '../../..');
const FAULTS = 28;
const REASON = /not injected: .{20,}/u;

interface Row {
  fault: string;
  injected: string;
  held: string;
  by: string;
}

const rowsOf = (text: string): Row[] =>
  text
    .split('\n')
    .filter((line) => /^\| *F\d+ *\|/u.test(line))
    .map((line) => {
      const [, fault = '', injected = '', held = '', by = ''] = line.split('|').map((cell) => cell.trim());
      return { fault, injected, held, by };
    });

const quoted = (text: string): string[] => [...text.matchAll(/`([^`]+)`/gu)].map(([, name = '']) => name);
const isFile = (name: string): boolean => /^[\w.-]+(\/[\w.-]+)+\.\w+$/u.test(name);
const isRun = (name: string): boolean => /^(kill|random):/u.test(name);

/** Whether the suite would take it. A seed is for the reader to choose. */
function isKnownRun(name: string): boolean {
  const plan = planOf(name.replace('SEED', '1'));
  if (plan?.kind !== 'kill') return plan !== undefined;
  const { operation, side } = plan;
  const isOfPods = POD_OPERATIONS.some((one) => one === operation) && SIDES.some((one) => one === side);
  return isOfPods || (PEER_OPERATIONS.some((one) => one === operation) && ['rome', 'milan'].includes(side));
}

/** One line for each thing that is wrong. */
function problemsOf(rows: readonly Row[]): string[] {
  const all = Array.from({ length: FAULTS }, (_, index) => `F${index + 1}`);
  return [
    ...all.filter((name) => !rows.some(({ fault }) => fault === name)).map((name) => `${name} has no row`),
    ...rows.filter(({ fault }) => !all.includes(fault)).map(({ fault }) => `there is no ${fault}`),
    ...rows.flatMap(({ fault, injected, held, by }) => {
      const names = quoted(by);
      const tests = names.filter((name) => isRun(name) || (isFile(name) && name.startsWith('test/')));
      const files = quoted(`${injected} ${held} ${by}`).filter(isFile);
      return [
        ...(tests.length > 0 || REASON.test(by)
          ? []
          : [`${fault}, ${injected}: neither a test nor a reason`]),
        ...(injected === '' || held === '' ? [`${fault} has an empty cell`] : []),
        ...files.filter((name) => !existsSync(join(ROOT, name))).map((name) => `there is no file ${name}`),
        ...names.filter((name) => isRun(name) && !isKnownRun(name)).map((name) => `there is no run ${name}`),
      ];
    }),
  ];
}

test('each fault of the list has its rows in docs/faults.md, and each row a test that is there, or a reason', () => {
  const rows = rowsOf(readFileSync(join(ROOT, 'docs/faults.md'), 'utf8'));
  expect(rows.length).toBeGreaterThan(60);
  expect(problemsOf(rows)).toEqual([]);
});

test('what is missing is found', () => {
  const rows = rowsOf(
    [
      '| Fault | Injected | What held | Shown by |',
      '| F1 | kills | all | `test/unit/no-such.test.ts`, `kill:dance:home:before:1` |',
      '| F2 | more kills | – | not injected: no |',
      '| F29 | |  | `random:SEED` |',
      ...Array.from(
        { length: 26 },
        (_, n) => `| F${n + 3} | it | held | not injected: nobody has had the time |`,
      ),
    ].join('\n'),
  );
  expect(problemsOf(rows)).toEqual([
    'there is no F29',
    'there is no file test/unit/no-such.test.ts',
    'there is no run kill:dance:home:before:1',
    'F2, more kills: neither a test nor a reason',
    'F29 has an empty cell',
  ]);
});
