import { beforeEach, expect, test } from '@jest/globals';

import { formatAmounts, parseAmounts } from '../../../../src/api/amounts.ts';
import type { CountedPod } from '../../../../src/api/pod-requests.ts';
import type { ResourceList } from '../../../../src/api/wire.ts';
import { type Charge, Ledger, type LivePods } from '../../../../src/hosting/guests/ledger.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

type Listener = Parameters<LivePods['onChange']>[0];

class FakePods implements LivePods {
  contact: LivePods['contact'] = { failingSince: undefined };
  readonly #pods = new Map<string, CountedPod>();
  readonly #listeners = new Set<Listener>();

  get = (key: string): CountedPod | undefined => this.#pods.get(key);
  list = (): Iterable<CountedPod> => this.#pods.values();
  onChange = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Undefined: it is gone, or has finished. */
  set(
    key: string,
    cpu: string | undefined,
    { uid = key, overdueMs }: { uid?: string; overdueMs?: number } = {},
  ): void {
    const previous = this.#pods.get(key);
    const [namespace = '', name = ''] = key.split('/');
    const current: CountedPod | undefined =
      cpu === undefined
        ? undefined
        : {
            metadata: { name, namespace, uid, resourceVersion: '1', creationTimestamp: '' },
            node: '',
            requests: [...parseAmounts({ cpu, pods: '1' })],
            ...(overdueMs !== undefined && { overdueMs }),
          };
    if (current === undefined) this.#pods.delete(key);
    else this.#pods.set(key, current);
    for (const listener of this.#listeners) listener(key, current, previous);
  }
}

let clock: FakeClock;
let pods: FakePods;
let ledger: Ledger;
let grant: ResourceList | undefined;

beforeEach(async () => {
  clock = new FakeClock();
  pods = new FakePods();
  grant = { cpu: '4', memory: '1Gi', pods: '100' };
  ledger = new Ledger({
    clock,
    pods,
    tenants: {
      namespacesOf: (peer) => (peer === 'rome' ? ['a', 'b'] : ['c']),
      grantOf: (peer) => (peer === 'nobody' ? undefined : grant),
    },
  });
  ledger.start(new AbortController().signal);
});

const ask = (key: string, cpu: string, more: Partial<Charge> = {}): string | undefined => {
  const [namespace = '', name = ''] = key.split('/');
  const cost = parseAmounts({ cpu, pods: '1' });
  return ledger.ask({ peer: 'rome', namespace, name, uid: key, cost, isNew: true, isDryRun: false, ...more });
};
const usedCpu = (): string | undefined => formatAmounts(ledger.used('rome'))['cpu'];
const FULL = /^exceeded quota of peer rome over all its namespaces: requested cpu=/u;

test('the sum over all namespaces is what counts, and the refusal names it', () => {
  pods.set('a/one', '2');
  pods.set('b/two', '1');
  pods.set('c/other', '100');
  expect(ask('b/three', '2')).toBe(
    'exceeded quota of peer rome over all its namespaces: requested cpu=2, used cpu=3, granted cpu=4',
  );
  expect(ask('b/three', '1')).toBeUndefined();
  expect(ask('a/four', '1m')).toMatch(FULL);
  expect(ask('c/more', '1', { peer: 'milan', namespace: 'c' })).toMatch(/peer milan.*used cpu=100/u);
});

test('what was let in counts before anybody has seen it, and once', () => {
  expect(
    Array.from({ length: 50 }, (_, index) => ask(`a/${index}`, '1')).filter((it) => it === undefined),
  ).toHaveLength(4);
  expect(usedCpu()).toBe('4');
  pods.set('a/0', '1');
  expect(usedCpu()).toBe('4');
  pods.set('a/0', undefined);
  expect(usedCpu()).toBe('3');
});

test('what is tried again counts once, by the larger of both', () => {
  expect(ask('a/web', '1', { uid: 'u1' })).toBeUndefined();
  expect(ask('a/web', '3', { uid: 'u2' })).toBeUndefined();
  expect(ask('a/web', '1', { uid: 'u3' })).toBeUndefined();
  expect(usedCpu()).toBe('3');
  pods.set('a/web', '3', { uid: 'u2' });
  expect(usedCpu()).toBe('3');
});

test('events of an older pod of that name end no reservation', () => {
  pods.set('a/web-0', '1', { uid: 'old' });
  expect(ask('a/web-0', '2', { uid: 'new' })).toBeUndefined();
  pods.set('a/web-0', '1', { uid: 'old' });
  pods.set('a/web-0', undefined, { uid: 'old' });
  expect(usedCpu()).toBe('2');
  pods.set('a/web-0', '2', { uid: 'new' });
  pods.set('a/web-0', undefined);
  expect(usedCpu()).toBeUndefined();
});

test('what is never seen is given up after a while', async () => {
  expect(ask('a/web', '4')).toBeUndefined();
  await clock.advance(14_999);
  expect(ask('a/other', '1')).toMatch(FULL);
  await clock.advance(1);
  expect(ask('a/other', '1')).toBeUndefined();
});

test('a dry run reserves nothing', () => {
  for (let index = 0; index < 9; index++) expect(ask(`a/${index}`, '4', { isDryRun: true })).toBeUndefined();
  expect(usedCpu()).toBeUndefined();
  expect(ask('a/web', '5', { isDryRun: true })).toMatch(FULL);
});

test('of a resize the difference counts', () => {
  pods.set('a/web', '3');
  expect(ask('a/web', '5', { isNew: false })).toBe(
    'exceeded quota of peer rome over all its namespaces: requested cpu=2, used cpu=3, granted cpu=4',
  );
  expect(ask('a/web', '4', { isNew: false })).toBeUndefined();
  expect(ask('b/two', '1')).toMatch(FULL);
  pods.set('a/web', '4');
  // Smaller takes nothing, even where too much is used.
  grant = { cpu: '1' };
  expect(ask('a/web', '2', { isNew: false })).toBeUndefined();
  expect(usedCpu()).toBe('4');
});

test('a resize within the room of a creation that failed holds that room for as long as any other', async () => {
  expect(ask('a/web', '4', { uid: 'u1' })).toBeUndefined();
  expect(ask('a/web', '1', { uid: 'u2' })).toBeUndefined();
  pods.set('a/web', '1', { uid: 'u2' });
  await clock.advance(14_000);
  expect(ask('a/web', '4', { uid: 'u2', isNew: false })).toBeUndefined();
  await clock.advance(2000);
  expect(ask('b/two', '1')).toMatch(FULL);
  pods.set('a/web', '4', { uid: 'u2' });
  expect(usedCpu()).toBe('4');
});

test('what the grant does not name is bounded by others, except what every quota bounds', () => {
  grant = { memory: '1Gi' };
  const cost = parseAmounts({ 'example.com/gpu': '8' });
  expect(ask('a/web', '0', { cost })).toBeUndefined();
  expect(ask('a/web', '1')).toMatch(/requested cpu=1,pods=1, used cpu=0,pods=0, granted cpu=0,pods=0$/u);
});

test('without a contract nothing is granted', () => {
  expect(ask('a/web', '0', { peer: 'nobody' })).toMatch(/nothing is granted to peer nobody/u);
});

test('a pod that should have been gone for long counts no longer', async () => {
  pods.set('a/lost', '4', { overdueMs: clock.now() + 60_000 });
  expect(ask('b/instead', '4')).toMatch(FULL);
  await clock.advance(60_001);
  expect(ask('b/instead', '4')).toBeUndefined();
  pods.set('a/lost', undefined);
  expect(usedCpu()).toBe('4');
});

test('nobody is let in while it is not known what is used', async () => {
  const early = new Ledger({ clock, pods, tenants: { namespacesOf: () => [], grantOf: () => grant } });
  const entry = {
    peer: 'rome',
    namespace: 'a',
    name: 'x',
    uid: 'x',
    cost: new Map(),
    isNew: true,
    isDryRun: true,
  };
  expect(() => early.ask(entry)).toThrow(/not known what peers use/u);
  expect(ask('a/web', '1')).toBeUndefined();
  pods.contact = { failingSince: clock.monotonic() };
  await clock.advance(9_000);
  expect(ask('a/more', '1')).toBeUndefined();
  await clock.advance(2_000);
  expect(() => ask('a/late', '1')).toThrow(/not known what peers use/u);
  await clock.advance(20_000);
  // What was let in before may have been made all the while.
  pods.contact = { failingSince: clock.monotonic() - 1 };
  expect(ask('a/again', '3')).toMatch(FULL);
  pods.contact = { failingSince: undefined };
  expect(ask('a/again', '3')).toMatch(FULL);
  pods.set('a/web', '1');
  pods.set('a/more', '1');
  expect(usedCpu()).toBe('2');
  await clock.advance(15_000);
  expect(ask('a/again', '2')).toBeUndefined();
});

test('pods from before the start count, whatever becomes of them', async () => {
  ledger.stop();
  pods.set('a/one', '3');
  const next = new Ledger({ clock, pods, tenants: { namespacesOf: () => ['a'], grantOf: () => grant } });
  next.start(new AbortController().signal);
  expect(formatAmounts(next.used('rome'))).toEqual({ cpu: '3', pods: '1' });
  pods.set('a/one', '1');
  expect(formatAmounts(next.used('rome'))).toEqual({ cpu: '1', pods: '1' });
  pods.set('a/one', undefined);
  expect(formatAmounts(next.used('rome'))).toEqual({});
});
