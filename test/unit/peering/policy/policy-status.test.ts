/** What people see of their policies. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { sharingPolicies, type SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import {
  type PolicyConditions,
  type PolicyEffect,
  PolicyStatusKeeper,
} from '../../../../src/peering/policy/policy-status.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeCollection } from '../../../support/fake-api/fake-collection.ts';
import { soon } from '../../../support/settle.ts';

let clock: FakeClock;
let server: FakeApi;
let client: KubeClient;
let policies: FakeCollection<SharingPolicy>;
let keeper: PolicyStatusKeeper<SharingPolicy>;
let effect: () => PolicyEffect;
let conditions: PolicyConditions;
let look: (policy?: string) => void;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [sharingPolicies] });
  client = server.client();
  policies = new FakeCollection<SharingPolicy>();
  effect = () => ({ peers: ['b', 'a'], free: { cpu: '3' } });
  conditions = {};
  keeper = new PolicyStatusKeeper({
    client,
    type: sharingPolicies,
    policies,
    effect: () => effect(),
    conditions: () => conditions,
    onChange: (listener) => {
      look = listener;
      return () => undefined;
    },
    clock,
    log: silentLogger,
  });
  keeper.start(new AbortController().signal);
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

test('further conditions stand beside it, valid or not, and go when they are not to be there', async () => {
  const found = { type: 'Found', status: 'False', reason: 'Missing', message: 'there is none' } as const;
  /** As it is now, and as the cache would bring it. */
  const seen = async (): Promise<void> => policies.set(await client.get(sharingPolicies, { name: 'half' }));
  conditions = { Found: found };
  await made('half');
  await soon('both', async () => (await read('half'))?.conditions?.length === 2);
  expect((await read('half'))?.conditions).toMatchObject([{ type: 'Valid', status: 'True' }, found]);
  effect = () => {
    throw new TributaryError('Invalid', 'no quantity');
  };
  conditions = { Found: { ...found, status: 'True' } };
  await seen();
  await soon('not valid', async () => (await valid('half')) === 'False');
  expect((await read('half'))?.conditions?.[1]).toMatchObject({ type: 'Found', status: 'True' });
  conditions = { Found: undefined };
  await seen();
  await soon('one again', async () => (await read('half'))?.conditions?.length === 1);
  await seen();
  // One at a time: when the next policy has its status, this one has been looked at again.
  await made('next');
  await soon('the next one', async () => (await valid('next')) === 'False');
  expect(server.log.filter((line) => /^PUT .*half/.test(line))).toHaveLength(3);
});

test('a policy that is named is looked at at once, any of them after a while', async () => {
  let looks = 0;
  effect = () => {
    looks++;
    return { peers: ['a'] };
  };
  await made('half');
  await soon('the status', async () => (await valid('half')) === 'True');
  policies.set(await client.get(sharingPolicies, { name: 'half' }));
  await soon('nothing is to be written', () => looks === 2);
  look();
  await clock.advance(4_999);
  expect(looks).toBe(2);
  look('half');
  await soon('at once', () => looks === 3);
  await clock.advance(1);
  await soon('after a while', () => looks === 4);
});
