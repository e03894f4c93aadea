import { expect, test } from '@jest/globals';

import type { Import } from '../../../tools/import-graph.ts';
import { arrowsOf, crossings, flowchart, MAY_IMPORT, sizesOf, wrongs } from '../../../tools/room-rules.ts';

const imported = (from: string, to: string, isType = false): Import => ({
  from: `src/${from}.ts`,
  to: `src/${to}.ts`,
  isType,
});

test('each room may import only rooms that stand before it in the table', () => {
  const rooms = Object.keys(MAY_IMPORT);
  const upward = Object.entries(MAY_IMPORT).flatMap(([room, others]) =>
    others.filter((other) => rooms.indexOf(other) >= rooms.indexOf(room) || !rooms.includes(other)),
  );
  expect(upward).toEqual([]);
});

test.each([
  [imported('peering/a', 'hosting/b'), true],
  [imported('hosting/a', 'peering/b'), false],
  [imported('network/a', 'provider/b', true), false],
  [imported('kube/a', 'config'), false],
  [imported('agent', 'config'), true],
  [imported('agent/a', 'agent'), true],
  [imported('main', 'cli/cli'), true],
  [imported('attic/a', 'lib/b'), false],
])('%j: %p', (one, isPermitted) => {
  expect(wrongs([one])).toHaveLength(isPermitted ? 0 : 1);
});

test('what is wrong names the files', () => {
  const found = wrongs([
    imported('kube/a', 'kube/b'),
    imported('kube/b', 'kube/a'),
    imported('kube/b', 'cli/c'),
  ]);
  expect(found).toEqual([
    'src/kube/b.ts imports src/cli/c.ts: kube may not import cli',
    'these files import each other: src/kube/a.ts, src/kube/b.ts',
  ]);
});

test.each([
  ['faults/auditor/a.ts', 'faults/auditor/checks/b.ts', true],
  ['faults/auditor/a.ts', 'src/api/names.ts', false],
  ['faults/auditor/a.ts', 'lab/kube-api.ts', false],
  ['faults/auditor/checks/a.ts', 'test/support/eventually.ts', false],
  ['faults/auditor/a.ts', 'faults/runs/b.ts', false],
  ['src/lib/a.ts', 'faults/auditor/violation.ts', false],
  ['faults/runs/a.ts', 'faults/auditor/violation.ts', false],
  ['faults/runs/a.ts', 'lab/kube-api.ts', true],
])('the auditor stands outside: %s imports %s: %p', (from, to, isPermitted) => {
  expect(crossings([{ from, to, isType: true }])).toHaveLength(isPermitted ? 0 : 1);
});

test('the picture counts the imports between rooms and shows which are not permitted', () => {
  const arrows = arrowsOf([
    imported('network/a', 'peering/b'),
    imported('network/a', 'lib/b'),
    imported('network/b', 'lib/b'),
    imported('network/a', 'network/b'),
    imported('api/a', 'lib/b'),
  ]);
  expect(flowchart(arrows)).toBe(
    ['flowchart TD', '  api -->|1| lib', '  network -->|2| lib', '  network -.->|1| peering'].join('\n'),
  );
});

test('sizes', () => {
  const sizes = sizesOf(
    new Map([
      ['src/lib/a.ts', 10],
      ['src/lib/b.ts', 30],
      ['src/lib/c.ts', 20],
      ['src/main.ts', 5],
    ]),
  ).filter(({ files }) => files > 0);
  expect(sizes).toEqual([
    { room: 'lib', files: 3, lines: 60, median: 20 },
    { room: 'main', files: 1, lines: 5, median: 5 },
    { room: 'all', files: 4, lines: 65, median: 20 },
  ]);
});
