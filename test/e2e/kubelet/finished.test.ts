import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { podPath } from '../../support/e2e/api.ts';
import { aPod, podSpec, statusOf } from '../../support/e2e/pods.ts';
import { during } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

const NAMESPACE = 'finished';

let world: World;

beforeAll(async () => {
  world = await World.open(NAMESPACE);
});

afterAll(async () => world.close());

test('a Job runs to its end, and its logs can still be read', async () => {
  const spec = podSpec('echo computed', { spec: { restartPolicy: 'Never' } });
  await world.home.create(`/apis/batch/v1/namespaces/${NAMESPACE}/jobs`, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'sum' },
    spec: { completions: 3, parallelism: 2, template: { spec } },
  });
  await world.ask(['wait', '--for=condition=Complete', 'job/sum', '--timeout=60s'], { timeoutMs: 70_000 });
  const pods = await world.home.pods(NAMESPACE, 'job-name=sum');
  expect(pods.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded', 'Succeeded']);
  expect(await world.ask(['logs', 'job/sum'])).toBe('computed\n');
});

test('what has finished never runs again, not even when its remote pod is taken away', async () => {
  await world.home.create(
    podPath(NAMESPACE),
    aPod('once', 'echo over; exit 3', { spec: { restartPolicy: 'Never' } }),
  );
  const before = await world.untilPod('once', 'has failed', ({ status }) => status?.phase === 'Failed');
  expect(statusOf(before)?.state?.terminated?.exitCode).toBe(3);
  await world.foreign.remove(podPath(world.tenant, 'once'), { gracePeriodSeconds: 0 });
  await world.home.patch(podPath(NAMESPACE, 'once'), { metadata: { labels: { looked: 'at' } } });
  await during(3, async () => expect(await world.remote('once')).toBeUndefined());
  const after = await world.home.pod(NAMESPACE, 'once');
  expect(after?.status).toEqual(before.status);
});

test('activeDeadlineSeconds ends a pod with its reason', async () => {
  await world.home.create(
    podPath(NAMESPACE),
    aPod('late', undefined, { spec: { activeDeadlineSeconds: 2, restartPolicy: 'Never' } }),
  );
  await world.untilPod(
    'late',
    'failed by its deadline',
    ({ status }) => status?.phase === 'Failed' && status.reason === 'DeadlineExceeded',
  );
});
