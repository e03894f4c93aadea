import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Facts } from '../../../src/doctor/facts.ts';
import { facts } from './support/facts.ts';

/** All roles in one process, in a cluster with these nodes. */
const inOneProcess = (...names: string[]): Facts =>
  facts({
    deployments: [
      {
        metadata: {
          namespace: 'tributary-system',
          name: 'tributary-cluster',
          labels: { 'app.kubernetes.io/name': 'tributary' },
        },
        spec: {
          template: { spec: { containers: [{ name: 'a', args: ['run', 'all', '--network', 'on'] }] } },
        },
        status: { readyReplicas: 1 },
      },
    ],
    nodes: names.map((name) => ({
      metadata: { name, ...(name === 'milan' && { labels: { 'tributary.dev/node-type': 'virtual-node' } }) },
    })),
  });

test('one process is for one node', () => {
  const about = (...names: string[]): unknown[] =>
    examine(inOneProcess(...names))
      .filter(({ tried }) => tried.startsWith('one process'))
      .map(({ level, cameBack }) => [level, cameBack]);
  expect(about('rome-1', 'milan')).toEqual([['ok', 'there is no other node']]);
  expect(about('rome-1', 'rome-2', 'milan')).toEqual([
    ['problem', '2 nodes: pods on the others reach no peer through a tunnel'],
  ]);
});
