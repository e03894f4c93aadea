/** What people see of their policies. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { sharingPolicies, type SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { PolicyStatusKeeper, type PolicyEffect } from '../../../../src/peering/policy/policy-status.ts';
import { FakeApi } from '../../../support/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeCollection } from '../../../support/fake-collection.ts';

let clock: FakeClock;
let server: FakeApi;
let client: KubeClient;
let policies: FakeCollection<SharingPolicy>;
let keeper: PolicyStatusKeeper<SharingPolicy>;
let effect: () => PolicyEffect;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [sharingPolicies] });
  client = server.client();
  policies = new FakeCollection<SharingPolicy>();
  effect = () => ({ peers: ['b', 'a'], free: { cpu: '3' } });
  keeper = new PolicyStatusKeeper({
    client,
    type: sharingPolicies,
    policies,
    effect: () => effect(),
    onChange: () => () => undefined,
    clock,
    log: silentLogger,
  });
  await keeper.start(new AbortController().signal);
});

afterEach(async () => {
  await keeper.stop();
  await client.close();
  await server.stop();
});

const made = async (name: string): Promise<void> => {
  policies.set(
    await client.create(sharingPolicies, { metadata: { name }, spec: { peers: { anyone: true } } }),
  );
};
const read = async (name: string): Promise<SharingPolicy['status']> =>
  (await client.get(sharingPolicies, { name })).status;
const valid = async (name: string): Promise<string | undefined> =>
  (await read(name))?.conditions?.[0]?.status;

test('a policy says about whom it decides, and what is free', async () => {
  await made('half');
  await clock.until('the status', async () => (await valid('half')) === 'True');
  expect(await read('half')).toMatchObject({ peers: ['a', 'b'], free: { cpu: '3' } });
});

test('what cannot be read in it is said in a condition, and written once', async () => {
  effect = () => {
    throw new TributaryError('Invalid', 'limits.cpu: "lots" is no quantity');
  };
  await made('half');
  await clock.until('the status', async () => (await valid('half')) === 'False');
  expect((await read('half'))?.conditions?.[0]?.message).toBe('limits.cpu: "lots" is no quantity');
  policies.set(await client.get(sharingPolicies, { name: 'half' }));
  // One at a time: when the next policy has its status, this one has been looked at again.
  await made('next');
  await clock.until('the next one', async () => (await valid('next')) === 'False');
  expect(server.log.filter((line) => /^PUT .*half/.test(line))).toHaveLength(1);
});
