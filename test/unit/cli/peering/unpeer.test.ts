import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { configMaps, namespaces, pods } from '../../../../src/api/resources.ts';
import { LABEL_PEER } from '../../../../src/api/tenant-labels.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { unpeerCommand } from '../../../../src/cli/peering/unpeer.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const ROME = 'rome'.padEnd(26, 'b');

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

test('what still terminates is waited for, and named', async () => {
  const metadata = { name: 'milan-shop', labels: { [LABEL_PEER]: MILAN }, finalizers: ['x/y'] };
  const message = 'Some resources are remaining: pods. has 2 resource instances';
  world.seed(namespaces, {
    metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    status: {
      phase: 'Terminating',
      conditions: [{ type: 'NamespaceContentRemaining', status: 'True', message }],
    },
  });
  world.seed(namespaces, { metadata: { name: 'milan-kept', labels: { [LABEL_PEER]: MILAN } } });
  world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
  world.reconcile(() => ({ outgoing: { phase: 'None' }, incoming: { phase: 'None' } }));
  const { code, out, err } = await world.run(unpeerCommand, 'mine --timeout 1s');
  expect(code).toBe(1);
  expect(out).toContain(`ended; still terminating: Namespace milan-shop (${message})`);
  expect(out).not.toContain('Ended.');
  expect(err.split('\n')).toEqual([
    'The peering has ended, but some of its objects are still there after 1 s. They go by themselves.',
    `  still terminating: Namespace milan-shop (${message})`,
    '',
  ]);
  world.api.storage.remove('namespaces', 'milan-shop');
  const again = await world.run(unpeerCommand, 'mine --timeout 1s');
  expect(again).toMatchObject({ code: 0, err: '' });
  expect(again.out).toMatch(/stays: Namespace milan-kept \(its SharingPolicy keeps it.*\nEnded\. /u);
});

describe('pods without a controller', () => {
  const OWNED = { ownerReferences: [{ kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true }] };
  const LOST =
    '2 pod(s) end for good with this peering, since they have no controller and nobody makes them anew: batch/job, tests/bare\n' +
    '  batch: it has no NamespaceOffloading that would bring its pods home. Keep their manifests, before: kubectl -n batch get pods -o yaml\n' +
    '  tests: its NamespaceOffloading says onRemoval: End. To bring its pods home, before: kubectl -n tests patch namespaceoffloading ' +
    `offloading --type merge -p '{"spec":{"onRemoval":"Return"}}'\n`;

  const pod = (name: string, nodeName: string, metadata: object = {}, phase = 'Running'): void => {
    const [namespace = '', own = ''] = name.split('/');
    const object = { metadata: { name: own, namespace, ...metadata }, spec: { nodeName }, status: { phase } };
    world.seed(pods, object);
  };

  beforeEach(() => {
    world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
    world.seed(virtualNodes, {
      metadata: { name: 'milan', labels: { [LABEL_PROVIDER]: MILAN } },
      spec: {},
      status: { nodeName: 'milan-node' },
    });
    world.reconcile(() => ({ outgoing: { phase: 'None' }, incoming: { phase: 'None' } }));
    for (const [namespace, onRemoval] of [
      ['shop', undefined],
      ['tests', 'End'],
    ]) {
      const spec = onRemoval === undefined ? {} : { onRemoval };
      world.seed(namespaceOffloadings, { metadata: { name: 'offloading', namespace }, spec });
    }
    pod('shop/bare', 'milan-node');
    pod('tests/bare', 'milan-node');
    pod('batch/job', 'milan-node');
    pod('batch/owned', 'milan-node', OWNED);
    pod('batch/done', 'milan-node', {}, 'Succeeded');
    pod('batch/elsewhere', 'rome-1');
  });

  const isBegun = (): boolean => world.cluster('mine')?.spec?.outgoing === 'Disabled';

  test.each([
    ['where there is no terminal', undefined, 'mine'],
    ['with --yes', ['n'], 'mine --yes'],
  ])('those that are lost are named, and it goes on: %s', async (_where, answers, line) => {
    world.answers = answers;
    const { code, out, err } = await world.run(unpeerCommand, line);
    expect({ code, err }).toEqual({ code: 0, err: LOST });
    expect(out).toContain('made anew here, since they have no controller: pods shop/bare\n');
    expect(world.asked).toEqual([]);
  });

  test.each([
    ['y', 0, LOST],
    ['n', 1, `${LOST}Nothing was changed.\n`],
  ])('a person is asked, and says "%s"', async (answer, expected, said) => {
    world.answers = [answer];
    const { code, err } = await world.run(unpeerCommand, 'mine');
    expect({ code, err }).toEqual({ code: expected, err: said });
    expect(world.asked).toEqual(['End the peering nevertheless? [y/N] ']);
    expect(isBegun()).toBe(expected === 0);
  });

  test('nobody is asked where none is lost, or where they run here for the other cluster', async () => {
    world.answers = [];
    expect(await world.run(unpeerCommand, 'mine --incoming')).toMatchObject({ code: 0, err: '' });
    for (const name of ['batch/job', 'tests/bare']) world.api.storage.remove('pods', name);
    expect(await world.run(unpeerCommand, 'mine')).toMatchObject({ code: 0, err: '' });
    expect(world.asked).toEqual([]);
  });

  test('whoever may not see pods is told, and may end the peering', async () => {
    world.api.fault({ match: ({ path }) => path.startsWith('/api/v1/pods'), times: 1, status: 403 });
    const { code, err } = await world.run(unpeerCommand, 'mine');
    expect(code).toBe(0);
    expect(err).toContain('you may not see which pods run over there');
  });
});

describe('the other side', () => {
  const ended = { outgoing: { phase: 'None' }, incoming: { phase: 'None' } } as const;
  let there: CliWorld;

  beforeEach(() => {
    there = CliWorld.start();
    world.others.set('milan', there.api);
    world.seedOwn(ROME, configMaps);
    there.seed(foreignClusters, { metadata: { name: 'rome' }, spec: { clusterID: ROME } });
    there.reconcile(() => ({ outgoing: { phase: 'None' }, incoming: { phase: 'Denied' } }));
    world.seed(foreignClusters, {
      metadata: { name: 'mine' },
      spec: { clusterID: MILAN },
      status: { outgoing: { phase: 'Established' } },
    });
    world.reconcile(() => ended);
  });
  afterEach(async () => there.stop());

  test('cannot be seen from here: it is said that it goes on', async () => {
    const { code, out } = await world.run(unpeerCommand, 'mine');
    expect(code).toBe(0);
    expect(out).toMatch(/the provider removes the request, the account and the namespaces .*\nEnded\. /u);
    const again = await world.run(unpeerCommand, 'mine');
    expect(again.out).not.toContain('the provider removes');
  });

  test('with --to-context, its request is waited for', async () => {
    there.seed(peeringRequests, { metadata: { name: ROME }, spec: { clusterID: ROME } });
    const early = await world.run(unpeerCommand, 'mine --to-context milan --timeout 1s');
    expect(early.code).toBe(1);
    expect(early.out).toContain(`ended; still terminating: PeeringRequest ${ROME}`);
    expect(early.err).toContain(`still terminating: PeeringRequest ${ROME}`);
    there.api.storage.remove('peeringrequests.tributary.dev', ROME);
    const { code, out } = await world.run(unpeerCommand, 'mine --to-context milan --timeout 1s');
    expect(code).toBe(0);
    expect(out).not.toContain('the provider removes');
    expect(out.match(/Ended\. /gu)).toHaveLength(2);
  });

  test('a request here goes once both have ended it', async () => {
    world.seed(peeringRequests, { metadata: { name: MILAN }, spec: { clusterID: MILAN } });
    const early = await world.run(unpeerCommand, 'mine --to-context milan --timeout 1s');
    expect(early.code).toBe(1);
    expect(early.out).not.toContain('stays: PeeringRequest');
    expect(early.err).toContain(`still terminating: PeeringRequest ${MILAN}`);
  });

  test('one that a person has approved is taken to stay after a while', async () => {
    const spec = { clusterID: ROME, approval: 'Approved' };
    there.seed(peeringRequests, { metadata: { name: ROME }, spec });
    const { code, out } = await world.run(unpeerCommand, 'mine --to-context milan --timeout 60s');
    expect(code).toBe(0);
    expect(out).toContain(`stays: PeeringRequest ${ROME}`);
  });
});
