import { expect, test } from '@jest/globals';
import type { Pod } from '../../../../src/api/wire.ts';
import { Ending } from '../../../../src/provider/pods/ending.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const home = homePod({
  metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 },
  spec: { restartPolicy: 'Never' },
  status: RUNNING,
});
const ended = { ...home, status: { ...RUNNING, phase: 'Failed' } };
const body = (metadata: object): Pod => remotePod(home, { metadata, status: RUNNING });
const { signal } = new AbortController();

/** `last`: what the cache knew of the remote pod when it went; `live`: what is over there. */
function begin({ last, live }: { last?: Pod; live?: Pod }): {
  finish: (home: Pod) => Promise<unknown>;
  clock: FakeClock;
  said: string[];
} {
  const said: string[] = [];
  const note = (what: string) => async (): Promise<void> => {
    said.push(what);
    return Promise.resolve();
  };
  const clock = new FakeClock();
  const ending = new Ending({
    clock,
    home: { delete: note('delete') },
    tenants: { of: () => ({ lastState: () => last }) },
    context: () => CONTEXT,
    remotes: { live: async () => note('read')().then(() => live) },
    putStatus: note('status'),
    reclaim: async () => note('reclaim')().then(() => ({})),
  });
  const finish = async (pod: Pod): Promise<unknown> =>
    ending.finish({ do: 'finish', home: pod, tenantNamespace: 'tenant' }, signal);
  return { finish, clock, said };
}

test('a remote pod whose kubelet has let it go is not asked for again', async () => {
  const { finish, said } = begin({ last: body({ deletionTimestamp: NOW, deletionGracePeriodSeconds: 0 }) });
  await finish(home);
  await finish(ended);
  expect(said).toEqual(['status', 'delete']);
});

test.each([
  ['that the cache has lost', undefined],
  ['whose label was taken off', body({})],
  [
    'whose label was taken off while it was ending',
    body({ deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 }),
  ],
])('one %s is read before anything is said of it', async (_, last) => {
  const found = begin({ ...(last && { last }), live: body({}) });
  await found.finish(home);
  await found.finish(ended);
  expect(found.said).toEqual(['read', 'reclaim', 'read', 'reclaim']);
  const gone = begin({ ...(last && { last }) });
  await gone.finish(home);
  await gone.finish(ended);
  expect(gone.said).toEqual(['read', 'status', 'read', 'delete']);
});

const forEver = { ...home, spec: { ...home.spec, restartPolicy: 'Always' } } as Pod;
const gone = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 0 };

test.each<[string, Pod, Pod, string[]]>([
  ['is not made up for one that was to run for ever', forEver, body(gone), ['delete']],
  [
    'is made up where a finalizer waits for it',
    { ...forEver, metadata: { ...forEver.metadata, finalizers: ['batch.kubernetes.io/job-tracking'] } },
    body(gone),
    ['status'],
  ],
  ['is made up for one that was to end', home, body(gone), ['status']],
  [
    'is shown as its kubelet has said it',
    forEver,
    remotePod(forEver, { metadata: gone, status: { ...RUNNING, phase: 'Succeeded' } }),
    ['status'],
  ],
])('the end of a pod %s', async (_, pod, last, expected) => {
  const { finish, said } = begin({ last });
  await finish(pod);
  expect(said).toEqual(expected);
});

test('what is being removed is asked to go once in a second, and its successor at once', async () => {
  const { finish, clock, said } = begin({});
  await finish(ended);
  expect(await finish(ended)).toEqual({ requeueAfterMs: 1000 });
  await finish({ ...ended, metadata: { ...ended.metadata, uid: 'another' } });
  await clock.advance(1000);
  await finish({ ...ended, metadata: { ...ended.metadata, uid: 'another' } });
  expect(said).toEqual(['read', 'delete', 'read', 'delete', 'read', 'delete']);
});

test.each([
  ['is answered', true],
  ['fails', false],
])('a pod whose deletion was asked for is no news until that %s', async (_, isDone) => {
  const clock = new FakeClock();
  const answer = Promise.withResolvers<void>();
  const ending = new Ending({
    clock,
    home: { delete: async () => answer.promise },
    tenants: { of: () => ({ lastState: () => body(gone) }) },
    context: () => CONTEXT,
    remotes: { live: async () => Promise.resolve(undefined) },
    putStatus: async () => Promise.resolve(),
    reclaim: async () => Promise.resolve({}),
  });
  const going: Pod = { ...ended, metadata: { ...ended.metadata, deletionGracePeriodSeconds: 0 } };
  expect(ending.isAsked(going)).toBe(false);
  const finishing = ending.finish({ do: 'finish', home: ended, tenantNamespace: 'tenant' }, signal);
  await clock.advance(2_000);
  expect(ending.isAsked(going)).toBe(true);
  // It is not on its way yet.
  expect(ending.isAsked(ended)).toBe(false);
  if (isDone) answer.resolve();
  else answer.reject(new TributaryError('Unreachable', 'no answer'));
  await finishing.catch(() => undefined);
  expect(ending.isAsked(going)).toBe(isDone);
  await clock.advance(1_000);
  expect(ending.isAsked(going)).toBe(false);
});

test('a deletion that fails is asked for again at once', async () => {
  const said: string[] = [];
  const ending = new Ending({
    clock: new FakeClock(),
    home: {
      delete: async () => {
        said.push('delete');
        return said.length === 1 ? Promise.reject(new Error('no')) : Promise.resolve();
      },
    },
    tenants: { of: () => ({ lastState: () => body(gone) }) },
    context: () => CONTEXT,
    remotes: { live: async () => Promise.resolve(undefined) },
    putStatus: async () => Promise.resolve(),
    reclaim: async () => Promise.resolve({}),
  });
  const finish = async (): Promise<unknown> =>
    ending.finish({ do: 'finish', home: ended, tenantNamespace: 'tenant' }, signal);
  await expect(finish()).rejects.toThrow('no');
  await finish();
  expect(said).toEqual(['delete', 'delete']);
});
