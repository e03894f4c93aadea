import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pods, runtimeClasses } from '../../../../src/api/resources.ts';
import { peeringRequests, type PeeringRequest } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld, type Peer } from '../../../support/peering/lending-world.ts';

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let world: LendingWorld;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ types: [peeringRequests, sharingPolicies], clock });
  client = api.client();
  world = new LendingWorld(client, { clock, quotaPatienceMs: 0 });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

async function run(namespace: string, name: string, cpu: string): Promise<void> {
  const containers = [{ name: 'main', image: 'x', resources: { requests: { cpu } } }];
  await client.create(pods, { metadata: { namespace, name }, spec: { nodeName: 'node-1', containers } });
}

const statusOf = async (peer: Peer): Promise<NonNullable<PeeringRequest['status']>> =>
  (await peer.object()).status ?? {};

/** Time stands still but for what is waited for here; the stock tells of changes every 250 ms. */
async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  await clock.until(what, async () => {
    await clock.advance(250);
    return condition();
  });
}

test('use is summed over all namespaces; beyond the contract it is a condition and an event, until it is within again', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered({ namespaces: ['shop', 'web'] });
  expect(await statusOf(rome)).toMatchObject({ used: { pods: '0' } });
  const within = async (): Promise<object | undefined> =>
    (await statusOf(rome)).conditions?.find(({ type }) => type === 'WithinContract');
  expect(await within()).toMatchObject({ status: 'True' });
  await run(rome.tenant(), 'a', '3');
  await run(rome.tenant('web'), 'b', '3');
  await run('default', 'ours', '1');
  await until('a breach', async () => (await within())?.['status' as never] === 'False');
  expect(await within()).toMatchObject({
    reason: 'ContractExceeded',
    message: expect.stringContaining('cpu 6 of '),
  });
  expect(await statusOf(rome)).toMatchObject({ phase: 'Established', used: { cpu: '6', pods: '2' } });
  expect(world.events).toContainEqual(
    expect.objectContaining({ type: 'Warning', reason: 'ContractExceeded' }),
  );
  await client.delete(pods, { namespace: rome.tenant(), name: 'a' }, { gracePeriodSeconds: 0 });
  await until('within again', async () => (await within())?.['status' as never] === 'True');
});

test('what moves with every pod is not written with every pod', async () => {
  await world.policy({ thresholdPercent: 100 });
  const rome = world.peer();
  await rome.peered();
  await run(rome.tenant(), 'first', '100m');
  await until('written', async () => (await statusOf(rome)).used?.['pods'] === '1');
  const before = api.count(/^PUT .*peeringrequests/);
  for (let index = 0; index < 10; index++) {
    await run(rome.tenant(), `more-${index}`, '100m');
    await clock.advance(500);
  }
  expect(api.count(/^PUT .*peeringrequests/) - before).toBeLessThanOrEqual(1);
  await clock.advance(11_000);
  await until('written in the end', async () => (await statusOf(rome)).used?.['pods'] === '11');
  expect(api.count(/^PUT .*peeringrequests/) - before).toBeLessThanOrEqual(3);
});

test('a policy shows about whom it decides and what is free', async () => {
  await world.policy();
  const rome = world.peer();
  await rome.peered();
  await until('shown', async () => {
    const { status } = await client.get(sharingPolicies, { name: 'everybody' });
    return status?.peers?.includes(rome.id) === true && status.free?.['cpu'] !== undefined;
  });
});

test('what each pod costs besides is told: default requests, and the overhead of the runtime class as it is now', async () => {
  await client.create(runtimeClasses, {
    metadata: { name: 'kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '250m', memory: '160Mi' } },
  });
  await world.policy({ runtimeClassName: 'kata', defaultRequests: { cpu: '5m' } });
  const rome = world.peer();
  await rome.peered();
  expect((await statusOf(rome)).offer).toMatchObject({
    defaultRequests: { cpu: '5m', memory: '0', 'ephemeral-storage': '0' },
    podOverhead: { cpu: '250m', memory: '160Mi' },
  });
  await client.patch(
    runtimeClasses,
    { name: 'kata' },
    { type: 'merge', body: { overhead: { podFixed: { cpu: '300m' } } } },
  );
  await until('told anew', async () => (await statusOf(rome)).offer?.podOverhead?.['cpu'] === '300m');
});

test('a runtime class that is not there is told on the SharingPolicy, until it is', async () => {
  await world.policy({ runtimeClassName: 'gvisor' });
  const reason = async (): Promise<string | undefined> =>
    (await client.get(sharingPolicies, { name: 'everybody' })).status?.conditions?.find(
      ({ type }) => type === 'RuntimeClassFound',
    )?.reason;
  await clock.until('it is told', async () => (await reason()) === 'RuntimeClassMissing');
  await client.create(runtimeClasses, { metadata: { name: 'gvisor' }, handler: 'runsc' });
  await clock.until('it is there', async () => (await reason()) === 'AsExpected');
});
