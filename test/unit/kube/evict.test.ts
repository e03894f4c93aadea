import { describe, expect, test } from '@jest/globals';
import type { KubeClient } from '../../../src/kube/client.ts';
import { evict } from '../../../src/kube/evict.ts';
import { Evictions } from '../../../src/kube/evictions.ts';
import { parseStatus, statusError } from '../../../src/kube/status-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const { signal } = new AbortController();
const POD = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
};

const failure = (status: number, body: object, retryAfter?: string): Error =>
  statusError(status, parseStatus(Buffer.from(JSON.stringify(body))), { what: 'create pods', retryAfter });
const budget = (message: string): object => ({
  reason: 'TooManyRequests',
  message: "Cannot evict pod as it would violate the pod's disruption budget.",
  details: { causes: [{ reason: 'DisruptionBudget', message }] },
});

interface Asked {
  deleteOptions?: { preconditions?: object; dryRun?: string[] };
}

/** Answers as told, and keeps what it was asked. */
function server(answer: () => Error | undefined): { client: KubeClient; asked: Asked[] } {
  const asked: Asked[] = [];
  const create = async (_type: unknown, body: Asked): Promise<object> => {
    asked.push(body);
    const error = answer();
    await Promise.resolve();
    if (error !== undefined) throw error;
    return {};
  };
  return { client: { create } as unknown as KubeClient, asked };
}

describe('the answer to an eviction', () => {
  const several =
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
  test.each<[string, Error | undefined, object]>([
    ['done', undefined, { kind: 'Evicted' }],
    ['no such pod', failure(404, { reason: 'NotFound' }), { kind: 'Gone' }],
    ['another pod of that name', failure(409, { reason: 'Conflict' }), { kind: 'Gone' }],
    [
      'held',
      failure(429, budget('The disruption budget web needs 2 healthy pods and has 2 currently')),
      { kind: 'Held', budget: 'shop/web', message: 'needs 2 healthy pods and has 2 currently' },
    ],
    [
      'not counted yet',
      failure(429, budget('The disruption budget web is still being processed by the server.'), '10'),
      {
        kind: 'Held',
        budget: 'shop/web',
        message: 'is still being processed by the server.',
        retryAfterMs: 10_000,
      },
    ],
    [
      'held, in other words',
      failure(429, budget('no')),
      { kind: 'Held', budget: 'of namespace shop', message: 'no' },
    ],
    [
      'several budgets',
      failure(500, { reason: 'InternalError', message: several }),
      { kind: 'Misconfigured', message: 'more than one PodDisruptionBudget selects this pod' },
    ],
  ])('%s', async (_, error, expected) => {
    const { client, asked } = server(() => error);
    await expect(evict(client, POD, { signal })).resolves.toEqual(expected);
    expect(asked[0]?.deleteOptions).toEqual({ preconditions: { uid: 'u' } });
  });

  test.each<[string, Error]>([
    ['a server that has too much to do', failure(429, { reason: 'TooManyRequests' })],
    ['no rights', failure(403, { reason: 'Forbidden' })],
    ['a server in trouble', failure(500, { reason: 'InternalError', message: 'etcd' })],
    ['causes that are none', failure(429, { details: { causes: [null, 'x', {}] } })],
  ])('is none: %s', async (_, error) => {
    await expect(evict(server(() => error).client, POD, { signal })).rejects.toBe(error);
  });

  test('a dry run says so', async () => {
    const { client, asked } = server(() => undefined);
    await evict(client, POD, { dryRun: true, signal });
    expect(asked[0]?.deleteOptions?.dryRun).toEqual(['All']);
  });
});

test('what a budget holds is asked for again, ever more rarely, and not for ever as the server says', async () => {
  const clock = new FakeClock();
  let error: Error | undefined = failure(429, budget('The disruption budget web is not now'), '3600');
  const { client, asked } = server(() => error);
  const evictions = new Evictions({ client, clock, random: () => 0.5 });
  const held = { pod: POD, budget: 'shop/web', message: 'is not now' };
  expect(await evictions.run([POD], signal)).toEqual([held]);
  expect(await evictions.run([POD], signal)).toEqual([held]);
  expect(asked).toHaveLength(1);
  await clock.advance(15_000);
  expect(await evictions.run([POD], signal)).toEqual([held]);
  expect(asked).toHaveLength(2);
  error = undefined;
  await clock.advance(16_000);
  expect(await evictions.run([POD], signal)).toEqual([]);
});

test('what goes wrong with one pod is told, and keeps no other', async () => {
  let count = 0;
  const { client } = server(() => (++count === 1 ? failure(403, { message: 'no' }) : undefined));
  const evictions = new Evictions({ client, clock: new FakeClock() });
  const other = { metadata: { ...POD.metadata, name: 'other', uid: 'v' } };
  const held = await evictions.run([POD, other], signal);
  expect(held).toEqual([{ pod: POD, message: 'create pods: no' }]);
});
