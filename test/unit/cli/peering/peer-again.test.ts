import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { peerCommand } from '../../../../src/cli/peering/peer-command.ts';
import { soon } from '../../../support/settle.ts';
import { CliWorld } from '../support/cli-world.ts';

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
