/** The role `cluster` as a whole: what only shows when all of its parts run in one process. */
import 'reflect-metadata';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaceOffloadings } from '../../../src/api/namespace-offloading.ts';
import { namespaces, nodes } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ClusterRole } from '../../support/cluster-role.ts';
import { eventually } from '../../support/eventually.ts';

/** One more is a cost for every API server: is its kind watched already, and only selected otherwise? */
const MOST_WATCHES = 43;
const BASE = '/apis/tributary.dev/v1alpha1';

let role: ClusterRole;

beforeEach(async () => {
  role = await ClusterRole.create(systemClock);
});

afterEach(async () => role.stop());

test('it opens each watch once: of one kind and selection, whatever part asks for it', async () => {
  role.api.seed(namespaces, { metadata: { name: 'shop' } });
  role.api.seed(nodes, { metadata: { name: 'n' } });
  role.api.seed(virtualNodes, { metadata: { name: 'milan' }, spec: { nodeName: 'milan' } });
  role.api.seed(namespaceOffloadings, { metadata: { name: 'offloading', namespace: 'shop' }, spec: {} });
  await role.start();
  await eventually('all watches', () => role.watched().length >= MOST_WATCHES);
  const watched = role.watched();
  expect(watched.filter((watch, at) => watched.indexOf(watch) !== at)).toEqual([]);
  expect(watched).toHaveLength(MOST_WATCHES);
  expect(watched).toContain('/api/v1/pods spec.nodeName=milan');
  const kinds = ['namespaces', 'nodes'].map((kind) => `/api/v1/${kind}`);
  const own = ['virtualnodes', 'sharingpolicies', 'advertisements', 'foreignclusters', 'tunnels'];
  for (const path of [...kinds, ...own.map((kind) => `${BASE}/${kind}`)]) {
    expect(watched.filter((watch) => watch === path || watch.startsWith(`${path} `))).toEqual([path]);
  }
});
