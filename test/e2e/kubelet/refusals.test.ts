import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { podPath } from '../../support/e2e/api.ts';
import { aPod, conditionOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('refusals');
});

afterAll(async () => world.close());

const cpu = (amount: string): Record<string, unknown> => ({
  resources: { requests: { cpu: amount, memory: '8Mi' } },
});
const MIGHTY = { securityContext: { privileged: true } };
const HOST_PATH = { volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] };

test.each([
  [
    'hostNetwork',
    'Forbidden',
    /violates PodSecurity "baseline:latest".*hostNetwork=true/,
    aPod('hostnetwork', undefined, { spec: { hostNetwork: true } }),
  ],
  [
    'hostPath',
    'Forbidden',
    /violates PodSecurity "baseline:latest".*hostPath/,
    aPod('hostpath', undefined, { spec: HOST_PATH }),
  ],
  [
    'privileged',
    'Forbidden',
    /violates PodSecurity "baseline:latest".*privileged/,
    aPod('privileged', undefined, { container: MIGHTY }),
  ],
  [
    'quota',
    'ExceededQuota',
    /exceeded quota: tributary, requested: requests.cpu=5/,
    aPod('quota', undefined, { container: cpu('5') }),
  ],
])('%s is refused with reason %s, in the words of the provider', async (name, reason, message, pod) => {
  const podName = name.toLowerCase();
  await world.home.create(podPath('refusals'), pod);
  const refused = await world.untilPod(
    podName,
    'says why',
    (one) => conditionOf(one, 'tributary.dev/Offloaded')?.status === 'False',
  );
  expect(conditionOf(refused, 'tributary.dev/Offloaded')).toMatchObject({
    reason,
    message: expect.stringMatching(message),
  });
  expect(refused.status).toMatchObject({ phase: 'Pending', reason });
  await until('an event with the reason', async () =>
    (await world.events(podName)).some((line) => line.startsWith(`${reason}: `) && message.test(line)),
  );
  expect(await world.ask(['describe', 'pod', podName])).toMatch(message);
  expect(await world.remote(podName)).toBeUndefined();
  await world.ask(['delete', 'pod', podName, '--timeout=60s'], { timeoutMs: 70_000 });
});

test('a runtime class that only home knows', async () => {
  await world.home.create('/apis/node.k8s.io/v1/runtimeclasses', {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'hardened' },
    handler: 'runc',
  });
  await world.home.create(
    podPath('refusals'),
    aPod('classy', undefined, { spec: { runtimeClassName: 'hardened' } }),
  );
  const pod = await world.untilPod(
    'classy',
    'says why',
    (one) => conditionOf(one, 'tributary.dev/Offloaded')?.status === 'False',
  );
  expect(conditionOf(pod, 'tributary.dev/Offloaded')?.message).toMatch(/RuntimeClass "hardened" not found/);
});

test('a full foreign cluster is told in the words of its scheduler', async () => {
  // More than the one foreign node has, and within the quota.
  await world.home.create(podPath('refusals'), aPod('big', undefined, { container: cpu('3500m') }));
  const pod = await world.untilPod(
    'big',
    'says why',
    (one) => conditionOf(one, 'tributary.dev/Offloaded')?.reason === 'Unschedulable',
  );
  expect(conditionOf(pod, 'tributary.dev/Offloaded')?.message).toMatch(
    /the foreign cluster cannot place the pod: 0\/1 nodes are available: 1 Insufficient cpu/,
  );
  expect(conditionOf(pod, 'PodScheduled')?.status).toBe('True');
  expect(pod.status?.phase).toBe('Pending');
});
