import { expect, test } from '@jest/globals';

import { filesOf, isLeftToNobody, partsOf, STAGES, type Part } from '../../../tools/test-plan.ts';

const files = { unit: filesOf('unit'), integration: filesOf('integration'), e2e: filesOf('e2e') };

test('every file runs once', () => {
  const planned = partsOf(new Set(STAGES), files).flatMap((part) => part.files);
  expect(planned.toSorted()).toEqual(Object.values(files).flat().toSorted());
});

test.each([
  [
    'e2e',
    /^test\/e2e\/(documents\/|kubelet\/(crash|outage)\.|network\/(api-server|cluster-ips)\.|peers\/(away|drain|partition|peering-terms|upgrade)\.|underlay\/)/,
  ],
  ['integration', /^test\/integration\/(helm|scale|stand-alone|tether-(kills|refused|sleep)|versions)\./],
] as const)('some files run in long runs only: %s', (suite, wanted) => {
  const [each, long] = [filesOf(suite, false), filesOf(suite, true)];
  const added = long.filter((path) => !each.includes(path));
  expect(added.length).toBeGreaterThan(0);
  expect(added.filter((path) => !wanted.test(path))).toEqual([]);
  const parts = partsOf(new Set(STAGES), { ...files, [suite]: long });
  expect(parts.flatMap((part) => part.files)).toEqual(expect.arrayContaining(added));
});

test('only what was asked for runs, and nothing is an empty part', () => {
  const parts = partsOf(new Set(['unit']), { ...files, e2e: [] });
  expect(parts.map(({ name }) => name)).toEqual([1, 2, 3, 4].map((part) => `unit tests, ${part} of 4`));
  expect(partsOf(new Set(['unit']), { ...files, unit: ['test/unit/a.test.ts'] })).toHaveLength(1);
});

test('what runs on control planes waits for their programs, what runs on nodes for all', () => {
  const parts = partsOf(new Set(STAGES), files);
  expect(parts.filter(({ stage }) => stage === 'e2e').every(({ needs }) => needs === 'everything')).toBe(
    true,
  );
  const onPlanes = parts.filter(({ name }) => name.startsWith('integration tests on control planes'));
  expect(onPlanes.length).toBeGreaterThan(4);
  expect(new Set(onPlanes.map(({ needs }) => needs))).toEqual(new Set(['clusters']));
  expect(parts.find(({ stage }) => stage === 'unit')?.needs).toBeUndefined();
});

test('files on control planes end together: no part has two of the longest, and none has many more files', () => {
  const onPlanes = partsOf(new Set(STAGES), files).filter(({ name }) => name.includes('on control planes'));
  const longest = /\/(two-agents|install|when-away|restored|room-refused)\.test/;
  const counts = onPlanes.map((part) => part.files.filter((path) => longest.test(path)).length);
  expect(Math.max(...counts)).toBe(1);
  expect(counts.reduce((sum, count) => sum + count)).toBe(5);
  const others = onPlanes.filter((_, index) => counts[index] === 0).map((part) => part.files.length);
  expect(Math.max(...others) - Math.min(...others)).toBeLessThanOrEqual(2);
  const dearest = onPlanes.find(({ files: its }) => its.some((path) => path.includes('/two-agents.')));
  expect(dearest?.files.length).toBeLessThan(Math.min(...others));
});

test('borrowed control planes are left to the next part, and taken down when nobody is about to take them over', () => {
  const parts = partsOf(new Set(STAGES), files);
  const isOnPlanes = ({ name }: Part): boolean => name.includes('on control planes');
  expect(parts.filter(({ env }) => env?.['TRIBUTARY_TEST_LABS'] === 'leave')).toEqual(
    parts.filter(isOnPlanes),
  );
  const last = parts.filter((part, index) => isLeftToNobody(part, parts[index + 1]));
  expect(last).toEqual(
    parts.filter((part, index) => isOnPlanes(part) && !parts.slice(index + 1, index + 2).some(isOnPlanes)),
  );
  expect(last).toHaveLength(2);
});
