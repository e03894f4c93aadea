import { expect, test } from '@jest/globals';

import { filesOf, isOverwhelmed, partsOf, STAGES } from '../../../tools/test-plan.ts';

const files = { unit: filesOf('unit'), integration: filesOf('integration'), e2e: filesOf('e2e') };

test('every file runs once', () => {
  const planned = partsOf(new Set(STAGES), files).flatMap((part) => part.files);
  expect(planned.toSorted()).toEqual(Object.values(files).flat().toSorted());
});

test.each([
  [
    'e2e',
    /^test\/e2e\/(documents\/|kubelet\/(crash|outage)\.|network\/(api-server|cluster-ips|namespaces)\.|peers\/(away|drain|partition|peering-terms|upgrade)\.|underlay\/)/,
  ],
  [
    'integration',
    /^test\/integration\/(fault-suite|helm|restored|scale|stand-alone|tether-(kills|local|refused|sleep)|versions)\./,
  ],
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
  expect(parts.map(({ name }) => name)).toEqual(['unit tests']);
});

test('what runs on control planes waits for their programs, what runs on nodes for all', () => {
  const parts = partsOf(new Set(STAGES), files);
  expect(parts.filter(({ stage }) => stage === 'e2e').every(({ needs }) => needs === 'everything')).toBe(
    true,
  );
  const onPlanes = parts.filter(({ name }) => name.startsWith('integration tests on control planes'));
  expect(onPlanes.map(({ needs }) => needs)).toEqual(Array.from({ length: 6 }, () => 'clusters'));
  expect(parts.find(({ stage }) => stage === 'unit')?.needs).toBeUndefined();
});

test('on a machine that is overwhelmed two parts go on, and no other begins', () => {
  expect(isOverwhelmed(3, 20, 2)).toBe(false);
  expect(isOverwhelmed(3, 30, 2)).toBe(true);
  expect(isOverwhelmed(2, 30, 2)).toBe(true);
  expect(isOverwhelmed(1, 90, 2)).toBe(false);
  expect(isOverwhelmed(3, 30, 4)).toBe(false);
});
