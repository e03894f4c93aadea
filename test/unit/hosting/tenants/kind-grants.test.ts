import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { PolicyRule } from '../../../../src/api/rbac.ts';
import {
  resourceQuotas,
  roleBindings,
  roles,
  selfSubjectRulesReviews,
} from '../../../../src/api/resources.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { Condition } from '../../../../src/api/wire.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld, type Peer } from '../../../support/peering/lending-world.ts';

/** Further kinds of a SharingPolicy: what of them a peer gets, and that nothing else hangs on them. */

const WIDGET = { group: 'shop.example', resource: 'widgets' };
const VERBS = ['list', 'watch', 'create', 'update', 'delete'];
const RULES: PolicyRule[] = [{ apiGroups: ['shop.example'], resources: ['widgets'], verbs: VERBS }];

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let world: LendingWorld;
let rome: Peer;
/** What the API server says of our own rights; undefined: that we may not ask. */
let held: PolicyRule[] | undefined;
let asked = 0;

/** The same client, but for the review of our own rights. */
function reviewed(inner: KubeClient): KubeClient {
  const create = async (type: { plural: string }, ...rest: unknown[]): Promise<unknown> => {
    if (type.plural !== selfSubjectRulesReviews.plural) {
      return (inner.create as (...all: unknown[]) => Promise<unknown>).call(inner, type, ...rest);
    }
    asked += 1;
    if (held === undefined) throw new TributaryError('Forbidden', 'may not ask');
    const status = { resourceRules: held, nonResourceRules: [], incomplete: false };
    return { metadata: {}, spec: {}, status };
  };
  return new Proxy(inner, {
    get: (target, key) => {
      if (key === 'create') return create;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

beforeEach(async () => {
  held = RULES;
  asked = 0;
  clock = new FakeClock();
  api = new FakeApi({ types: [peeringRequests, sharingPolicies], clock });
  client = api.client();
  world = new LendingWorld(reviewed(client), { clock, quotaPatienceMs: 0 }, client);
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

const kinds = async (): Promise<Condition | undefined> =>
  (await rome.object()).status?.conditions?.find(({ type }) => type === 'KindsReflectable');
const role = async (): Promise<{ rules?: unknown[] | undefined; bindings: number }> => {
  const named = { metadata: { name: 'tributary-peer-kinds' } };
  const isNamed = ({ metadata }: typeof named): boolean => metadata.name === named.metadata.name;
  const made = (await client.list(roles)).items.find(isNamed);
  return {
    rules: made?.rules ?? undefined,
    bindings: (await client.list(roleBindings)).items.filter(isNamed).length,
  };
};
async function peeredWith(reflectableKinds: (typeof WIDGET)[]): Promise<void> {
  await world.policy({ reflectableKinds });
  rome = world.peer();
  await rome.peered();
}

test('what lending holds is granted, and taken back when the policy names it no more', async () => {
  await peeredWith([WIDGET]);
  await clock.until('granted', async () => (await kinds())?.status === 'True');
  expect(await role()).toMatchObject({
    rules: [{ apiGroups: ['shop.example'], resources: ['widgets'], verbs: VERBS }],
    bindings: 1,
  });
  await world.changePolicy({ reflectableKinds: [] });
  await clock.until('gone', async () => (await role()).rules === undefined);
  expect((await role()).bindings).toBe(0);
  await clock.until('no condition', async () => (await kinds()) === undefined);
});

test.each([
  ['holds no right to it', []],
  ['may not even ask', undefined],
])(
  'where lending %s, the peering stands, and the right comes later without a restart',
  async (_why, rules) => {
    held = rules;
    await peeredWith([WIDGET]);
    await clock.until('told', async () => (await kinds())?.reason === 'RightsMissing');
    expect((await rome.object()).status?.phase).toBe('Established');
    expect(await role()).toEqual({ rules: undefined, bindings: 0 });
    expect(world.events.filter(({ reason }) => reason === 'RightsMissing')).toHaveLength(1);
    held = RULES;
    for (let left = 40; left > 0; left -= 1) await clock.advance(1000);
    await clock.until('granted', async () => (await kinds())?.status === 'True');
    expect(await role()).toMatchObject({ bindings: 1 });
  },
);

test('a kind that is never for peers is not granted, whatever we hold', async () => {
  held = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  await peeredWith([WIDGET, { group: 'batch', resource: 'jobs' }]);
  await clock.until('told', async () => (await kinds())?.reason === 'KindRefused');
  expect((await role()).rules).toHaveLength(1);
  expect((await rome.object()).status?.phase).toBe('Established');
});

test('without further kinds nobody asks', async () => {
  await world.policy();
  rome = world.peer();
  await rome.peered();
  expect(asked).toBe(0);
});

describe('a quota whose controller does not know the kind', () => {
  const KEY = 'count/widgets.shop.example';
  let where: { namespace: string; name: string };
  const bound = async (): Promise<string | undefined> =>
    (await client.get(resourceQuotas, where)).spec?.hard?.[KEY];
  /** As the quota controller does after a change of the spec. */
  async function count(used: Record<string, string>): Promise<void> {
    const { spec } = await client.get(resourceQuotas, where);
    const body = { status: { hard: spec?.hard, used } };
    await client.patch(resourceQuotas, where, { type: 'merge', body }, { subresource: 'status' });
  }
  const becomes = async (amount: string): Promise<void> =>
    clock.until(`bound ${amount}`, async () => {
      await clock.advance(1000);
      return (await bound()) === amount;
    });

  beforeEach(async () => {
    await peeredWith([WIDGET]);
    await clock.until('granted', async () => (await kinds())?.status === 'True');
    const [quota] = (await client.list(resourceQuotas)).items;
    where = { namespace: quota?.metadata.namespace ?? '', name: quota?.metadata.name ?? '' };
  });

  test('is changed to and fro until it is counted, and then stays as it is', async () => {
    expect(await bound()).toBe('500');
    await count({ pods: '0' });
    await clock.until('told', async () => (await kinds())?.reason === 'KindNotServed');
    expect((await kinds())?.message).toContain('widgets.shop.example: no namespaced kind');
    expect((await rome.object()).status?.phase).toBe('Established');
    const began = clock.monotonic();
    await becomes('501');
    expect(clock.monotonic() - began).toBeGreaterThanOrEqual(10_000);
    await count({ pods: '0' });
    await becomes('500');
    // Also where the controller says nothing at all.
    await becomes('501');
    // Three times ten seconds; each change is seen up to a second after it was made, from which the next ten seconds count.
    expect(clock.monotonic() - began).toBeGreaterThanOrEqual(28_000);
    await count({ pods: '0', [KEY]: '0' });
    await clock.until('all is well', async () => (await kinds())?.status === 'True');
    const { resourceVersion } = (await client.get(resourceQuotas, where)).metadata;
    for (let left = 60; left > 0; left -= 1) await clock.advance(1000);
    expect(await client.get(resourceQuotas, where)).toMatchObject({ metadata: { resourceVersion } });
    expect(await bound()).toBe('501');
  });

  test('is put back where somebody else has changed it', async () => {
    await count({ pods: '0', [KEY]: '0' });
    const body = { spec: { hard: { [KEY]: '7' } } };
    await client.patch(resourceQuotas, where, { type: 'merge', body });
    await clock.until('put back', async () => (await bound()) === '500');
  });
});
