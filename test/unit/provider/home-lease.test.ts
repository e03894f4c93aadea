import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Lease } from '../../../src/api/wire.ts';
import type { KubeClient, ObjectRef } from '../../../src/kube/client.ts';
import { type ErrorCode, TributaryError } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { HomeLease, type HomeLeaseOptions } from '../../../src/provider/home-lease.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Leases over there, in memory: namespaces, versions, conflicts. */
class Leases {
  readonly byNamespace = new Map<string, Lease>();
  readonly requests: string[] = [];
  /** What every request is answered with instead. */
  fault: ErrorCode | undefined;
  #version = 0;

  make(namespace: string, spec: NonNullable<Lease['spec']> = { leaseDurationSeconds: 40 }): void {
    const metadata = { name: 'tributary-home', namespace, uid: namespace, creationTimestamp: '' };
    this.#store({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec } as unknown as Lease);
  }

  spec(namespace: string): NonNullable<Lease['spec']> {
    return this.byNamespace.get(namespace)?.spec ?? {};
  }

  readonly client = {
    get: async (_type: unknown, { namespace = '' }: ObjectRef): Promise<Lease> => this.#get('get', namespace),
    replace: async (_type: unknown, lease: Lease): Promise<Lease> => {
      const { namespace = '', resourceVersion } = lease.metadata;
      const known = this.#get('put', namespace);
      if (known.metadata.resourceVersion !== resourceVersion) throw new TributaryError('Conflict', 'changed');
      return this.#store(lease);
    },
  } as unknown as KubeClient;

  #get(verb: string, namespace: string): Lease {
    this.requests.push(`${verb} ${namespace}`);
    if (this.fault !== undefined) throw new TributaryError(this.fault, 'injected');
    const lease = this.byNamespace.get(namespace);
    if (lease === undefined) throw new TributaryError('NotFound', namespace);
    return lease;
  }

  #store(lease: Lease): Lease {
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#version) } };
    this.byNamespace.set(lease.metadata.namespace ?? '', stored);
    return stored;
  }
}

let clock: FakeClock;
let there: Leases;
let running: HomeLease[];
beforeEach(() => {
  clock = new FakeClock();
  there = new Leases();
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map(async (lease) => lease.stop()));
});

async function start(parts: Partial<HomeLeaseOptions> = {}): Promise<HomeLease> {
  const lease = new HomeLease({
    foreign: there.client,
    tenantNamespaces: () => ['b', 'a'],
    identity: 'rome',
    homeAnswers: () => true,
    clock,
    log: silentLogger,
    random: () => 1,
    ...parts,
  });
  running.push(lease);
  lease.start();
  await clock.advance(0);
  return lease;
}

const time = (agoMs: number): string => new Date(clock.now() - agoMs).toISOString().replace('Z', '000Z');
const ageMs = (namespace: string): number =>
  clock.now() - Date.parse(String(there.spec(namespace).renewTime));

describe('renewal', () => {
  test('every 10 s, in the first namespace that has a Lease, with its duration left as the provider made it', async () => {
    there.make('b');
    there.make('c');
    await start({ tenantNamespaces: () => ['c', 'b', 'a', 'b'] });
    expect(there.spec('b')).toMatchObject({ holderIdentity: 'rome', leaseDurationSeconds: 40 });
    expect(there.spec('c')).toEqual({ leaseDurationSeconds: 40 });
    expect(there.requests).toEqual(['get a', 'get b', 'put b']);
    const since = there.spec('b').acquireTime;
    await clock.advance(60_000);
    expect(there.requests).toHaveLength(9);
    expect(ageMs('b')).toBeLessThanOrEqual(10_000);
    expect(there.spec('b').acquireTime).toBe(since);
  });

  test.each<[unknown, number]>([
    [15, 3_200],
    [1, 1_000],
    [0, 9_600],
    [Number.NaN, 9_600],
    ['x', 9_600],
    [1e300, 9_600],
  ])('where it lasts for %p s, every %d ms', async (leaseDurationSeconds, everyMs) => {
    there.make('a', { leaseDurationSeconds: leaseDurationSeconds as number });
    await start();
    await clock.advance(everyMs - 1);
    expect(there.requests).toHaveLength(2);
    await clock.advance(1);
    expect(there.requests).toHaveLength(3);
  });

  test('not while the home does not answer, and soon after it does again', async () => {
    there.make('a');
    let answers = true;
    await start({ homeAnswers: () => answers });
    answers = false;
    const before = there.requests.length;
    await clock.advance(120_000);
    expect(there.requests).toHaveLength(before);
    answers = true;
    await clock.advance(2_500);
    expect(ageMs('a')).toBeLessThanOrEqual(2_500);
  });

  test('is not given up at the end', async () => {
    there.make('a');
    const lease = await start();
    const before = there.spec('a');
    await lease.stop();
    await clock.advance(60_000);
    expect(there.spec('a')).toEqual(before);
  });

  test('moves on when the Lease goes with its namespace', async () => {
    there.make('a');
    there.make('b');
    await start();
    there.byNamespace.delete('a');
    await clock.advance(10_000);
    expect(there.spec('b').holderIdentity).toBe('rome');
  });

  test('two agents of one home take turns without a quarrel', async () => {
    there.make('a');
    await start();
    await clock.advance(1_000);
    await start({ identity: 'rome-2' });
    const before = there.requests.length;
    for (let second = 0; second < 300; second++) {
      await clock.advance(1_000);
      expect(ageMs('a')).toBeLessThanOrEqual(20_000);
    }
    // At most what a lost race costs: a write, and the read that shows who won it.
    expect(there.requests.length - before).toBeLessThanOrEqual(30 * 2 * 2);
  });

  test('an older provider is asked ever more rarely, down to once a minute', async () => {
    const lease = await start();
    await clock.advance(600_000);
    expect(there.requests.length).toBeLessThan(2 * 20);
    expect(lease.patienceMs()).toBe(0);
    there.make('a');
    await clock.advance(60_000);
    expect(there.spec('a').holderIdentity).toBe('rome');
  });

  test('is tried again after any error', async () => {
    there.make('a');
    await start();
    there.fault = 'Unavailable';
    await clock.advance(30_000);
    there.fault = undefined;
    await clock.advance(10_000);
    expect(ageMs('a')).toBeLessThanOrEqual(10_000);
  });
});

describe('how long losses are not believed', () => {
  test('15 s after the home has come back', async () => {
    there.make('a', { leaseDurationSeconds: 40, renewTime: time(600_000), acquireTime: time(900_000) });
    const lease = await start();
    expect(lease.patienceMs()).toBe(15_000);
    await clock.advance(10_000);
    expect(lease.patienceMs()).toBe(5_000);
    await clock.advance(5_000);
    expect(lease.patienceMs()).toBe(0);
  });

  test('not at all after an update of the agent', async () => {
    there.make('a', { leaseDurationSeconds: 40, renewTime: time(20_000), acquireTime: time(900_000) });
    expect((await start()).patienceMs()).toBe(0);
  });

  test('where another agent of this home has just come back, as long as it waits', async () => {
    there.make('a', { leaseDurationSeconds: 40, renewTime: time(1_000), acquireTime: time(6_000) });
    expect((await start()).patienceMs()).toBe(9_000);
  });

  test.each(['2100-01-01T00:00:00Z', 'yesterday', ''])(
    'with the clock at %p: as after a return',
    async (renewTime) => {
      there.make('a', { leaseDurationSeconds: 40, renewTime, acquireTime: renewTime });
      expect((await start()).patienceMs()).toBe(15_000);
    },
  );

  test('after the way to the provider was cut for longer than the Lease lasts', async () => {
    there.make('a', { leaseDurationSeconds: 40, renewTime: time(1_000), acquireTime: time(900_000) });
    const lease = await start();
    there.fault = 'Unreachable';
    await clock.advance(60_000);
    expect(lease.patienceMs()).toBe(1_000);
    there.fault = undefined;
    await clock.advance(10_000);
    const left = lease.patienceMs();
    expect(left).toBeGreaterThan(4_000);
    expect(left).toBeLessThanOrEqual(15_000);
    expect(Date.parse(String(there.spec('a').acquireTime))).toBeGreaterThan(clock.now() - 11_000);
  });

  test('for no longer than 30 s where it can never be renewed', async () => {
    there.fault = 'Unavailable';
    const lease = await start();
    expect(lease.patienceMs()).toBe(1_000);
    await clock.advance(29_000);
    expect(lease.patienceMs()).toBe(1_000);
    await clock.advance(1_000);
    expect(lease.patienceMs()).toBe(0);
  });
});
