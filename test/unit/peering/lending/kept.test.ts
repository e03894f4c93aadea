import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  namespaces,
  persistentVolumeClaims,
  pods,
  type ResourceType,
} from '../../../../src/api/resources.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { Draft, KubeObject } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld } from '../../../support/peering/lending-world.ts';

/** `onEnd: Keep`: what a contract leaves behind, and for how long. */

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [peeringRequests, sharingPolicies] });
  client = api.client();
  // The simulator has no controller that would count for quotas.
  world = new LendingWorld(client, { clock, quotaPatienceMs: 0 });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

test('rights go at once, namespaces stay for their time; coming back takes them over', async () => {
  await world.policy({ onEnd: 'Keep', keepForSeconds: 3600 });
  const rome = world.peer();
  await rome.peered();
  await rome.ask(null);
  await clock.until('ended', () => rome.told.grant === undefined);
  expect(await rome.hasAccount()).toBe(false);
  const kept = await client.get(namespaces, { name: rome.tenant() });
  const until = Date.parse(kept.metadata.annotations?.['tributary.dev/keep-until'] ?? '');
  expect(until - clock.now()).toBeGreaterThan(3500_000);
  await rome.peered();
  const again = await client.get(namespaces, { name: rome.tenant() });
  expect(again.metadata.uid).toBe(kept.metadata.uid);
  expect(again.metadata.annotations).not.toHaveProperty(['tributary.dev/keep-until']);
});

/** Lets so much time pass in steps, as timers are set while it does. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) await clock.advance(Math.min(left, 1000));
}

const metadata = { name: 'one' };
test.each([
  ['a pod', pods, { metadata, spec: { containers: [{ name: 'web', image: 'web' }] } }],
  ['data', persistentVolumeClaims, { metadata }],
] as [string, ResourceType<KubeObject>, Draft<KubeObject>][])(
  'a namespace goes before its time, but not while %s is in it',
  async (_, type, body) => {
    await world.policy({ onEnd: 'Keep', keepForSeconds: 3600 });
    const rome = world.peer();
    await rome.peered();
    const namespace = rome.tenant();
    await client.create(type, { ...body, metadata: { ...body.metadata, namespace } });
    await rome.ask(null);
    await clock.until('ended', () => rome.told.grant === undefined);
    await pass(700_000);
    expect(await world.exists(namespace)).toBe(true);
    await client.delete(type, { namespace, name: 'one' });
    const emptied = clock.now();
    await clock.until('gone', async () => !(await world.exists(namespace)), 700_000);
    expect(clock.now() - emptied).toBeLessThan(660_000);
  },
);

test('kept namespaces go when their time is up, without a request that stands for them', async () => {
  await world.policy({ onEnd: 'Keep', keepForSeconds: 600 });
  const rome = world.peer();
  await rome.peered();
  await client.create(pods, {
    metadata: { ...metadata, namespace: rome.tenant() },
    spec: { containers: [{ name: 'web', image: 'web' }] },
  });
  await rome.ask(null);
  await clock.until('ended', () => rome.told.grant === undefined);
  await pass(590_000);
  expect(await world.exists(rome.tenant())).toBe(true);
  await pass(15_000);
  await clock.until('gone', async () => !(await world.exists(rome.tenant())));
});
