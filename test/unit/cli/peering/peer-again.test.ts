import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type ForeignCluster, foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { peerCommand } from '../../../../src/cli/peering/peer-command.ts';
import { soon } from '../../../support/settle.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const ROME = 'rome'.padEnd(26, 'b');
const TOKEN = `${MILAN}.door.${'s'.repeat(43)}`;

let world: CliWorld;
beforeEach(async () => {
  world = CliWorld.start();
});
afterEach(async () => world.stop());

const endpoint = (): string | undefined => world.cluster('10.0.0.1')?.spec?.endpoint;

test('a name that was made for another port is told, and what to do', async () => {
  world.answers = ['y', 'y', 'y'];
  await world.run(peerCommand, '10.0.0.1:1 --timeout 1s');
  const { code, err } = await world.run(peerCommand, '10.0.0.1:2 --timeout 1s');
  expect(code).toBe(1);
  expect(err).toContain('ForeignCluster 10.0.0.1 exists already, and is dialled at 10.0.0.1:1.');
  expect(err).toContain('tributary peer 10.0.0.1:2 --name 10.0.0.1');
  expect(err).toContain('kubectl delete foreigncluster 10.0.0.1');
  expect(endpoint()).toBe('10.0.0.1:1');
  await world.run(peerCommand, '10.0.0.1:2 --name 10.0.0.1 --timeout 1s');
  expect(endpoint()).toBe('10.0.0.1:2');
});

test('who interrupts it while nobody answers is told what stays', async () => {
  world.answers = ['y'];
  const running = world.run(peerCommand, '10.0.0.1:1');
  await soon('made', () => endpoint() !== undefined);
  world.abort.abort(new Error('got SIGINT'));
  expect(await running).toMatchObject({
    code: 1,
    err: 'ForeignCluster 10.0.0.1 stays, and the role cluster goes on asking there. To end that: kubectl delete foreigncluster 10.0.0.1\ninterrupted\n',
  });
});

describe('where another cluster answers', () => {
  const another: ForeignCluster['status'] = {
    outgoing: { phase: 'Pending', reason: 'WrongIdentity', since: '2026-01-01T00:00:00Z' },
    answeredBy: ROME,
    foundBy: 'Manual',
  };

  test('it is told at once, and what was made goes', async () => {
    world.reconcile(() => another);
    const { code, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN} --token ${TOKEN}`);
    expect(code).toBe(1);
    expect(err).toBe(
      `At 10.0.0.1:1 the cluster ${ROME} answers, not ${MILAN}. If that is the one that you mean: ` +
        `tributary peer 10.0.0.1:1 --id ${ROME}\nForeignCluster ${MILAN} is deleted.\n`,
    );
    expect(world.cluster(MILAN)).toBeUndefined();
  });

  test('one that was known stays', async () => {
    world.seed(foreignClusters, { metadata: { name: MILAN }, spec: { clusterID: MILAN } });
    world.reconcile(() => another);
    const { code, err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(code).toBe(1);
    expect(err).toContain(`ForeignCluster ${MILAN} stays`);
    expect(world.cluster(MILAN)).toBeDefined();
  });

  test('this cluster itself is told as such', async () => {
    world.seedOwn(ROME, configMaps);
    world.reconcile(() => another);
    const { err } = await world.run(peerCommand, `10.0.0.1:1 --id ${MILAN}`);
    expect(err).toContain(`answers, not ${MILAN}. That is this cluster itself.\n`);
  });
});
