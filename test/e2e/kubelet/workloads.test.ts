import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { deploymentPath } from '../../support/e2e/api.ts';
import { aDeployment, aPod, conditionOf, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('workloads');
  await world.home.create(deploymentPath('workloads'), aDeployment('shop', 3));
  await world.ask(['rollout', 'status', 'deployment/shop', '--timeout=60s'], { timeoutMs: 70_000 });
});

afterAll(async () => world.close());

/** Both clusters have that many pods, under the same names, each remote pod with the UID of its home pod. */
async function untilMirrored(count: number): Promise<void> {
  const sides = async (): Promise<string[][]> => {
    const [home, remote] = await Promise.all([
      world.home.pods('workloads', 'app=shop'),
      world.foreign.pods(world.tenant, 'app=shop'),
    ]);
    return [
      home.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort(),
      remote.map(({ metadata }) => `${metadata.name} ${metadata.labels?.['tributary.dev/home-uid']}`).sort(),
    ];
  };
  await until(
    `${count} pods at home and the same over there`,
    async () => {
      const [home = [], remote] = await sides();
      return home.length === count && JSON.stringify(home) === JSON.stringify(remote);
    },
    { seconds: 60, seen: sides },
  );
}

test('the pods of a Deployment run over there', async () => {
  await untilMirrored(3);
  const [home] = await world.home.pods('workloads', 'app=shop');
  const remote = await world.remote(home?.metadata.name ?? '');
  expect(home?.spec?.nodeName).toBe('foreign');
  expect(remote?.spec?.nodeName).toBe('foreign-1');
  expect(statusOf(home)?.containerID).toBe(statusOf(remote)?.containerID);
  expect(home?.status).toMatchObject({
    phase: 'Running',
    qosClass: 'Burstable',
    startTime: remote?.status?.startTime,
  });
});

test('kubectl scale', async () => {
  await world.ask(['scale', 'deployment/shop', '--replicas=6']);
  await world.ask(['rollout', 'status', 'deployment/shop', '--timeout=60s'], { timeoutMs: 70_000 });
  await untilMirrored(6);
  await world.ask(['scale', 'deployment/shop', '--replicas=2']);
  await untilMirrored(2);
});

test('kubectl rollout restart and undo', async () => {
  const names = async (): Promise<string[]> =>
    (await world.foreign.pods(world.tenant, 'app=shop')).map(({ metadata }) => metadata.name).sort();
  const before = await names();
  await world.ask(['rollout', 'restart', 'deployment/shop']);
  await world.ask(['rollout', 'status', 'deployment/shop', '--timeout=60s'], { timeoutMs: 70_000 });
  await untilMirrored(2);
  const after = await names();
  expect(after.filter((name) => before.includes(name))).toEqual([]);

  await world.ask(['set', 'env', 'deployment/shop', 'COLOUR=green']);
  await world.ask(['rollout', 'undo', 'deployment/shop']);
  await world.ask(['rollout', 'status', 'deployment/shop', '--timeout=60s'], { timeoutMs: 70_000 });
  await untilMirrored(2);
});

test('a pod bound by nodeName runs over there, without the scheduler', async () => {
  await world.runPod(aPod('pinned', undefined, { spec: { nodeName: 'foreign', nodeSelector: {} } }));
  expect((await world.remote('pinned'))?.spec?.nodeName).toBe('foreign-1');
});

test('readiness over there is readiness at home', async () => {
  const readinessProbe = {
    exec: { command: ['test', '-e', '/tmp/ready'] },
    periodSeconds: 1,
    failureThreshold: 1,
  };
  await world.home.create(
    '/api/v1/namespaces/workloads/pods',
    aPod('moody', undefined, { container: { readinessProbe } }),
  );
  await world.untilPod(
    'moody',
    'runs, not ready',
    (pod) => statusOf(pod)?.state?.running !== undefined && conditionOf(pod, 'Ready')?.status === 'False',
  );
  await world.ask(['exec', 'moody', '--', 'touch', '/tmp/ready']);
  await world.untilPod('moody', 'ready', (pod) => conditionOf(pod, 'Ready')?.status === 'True');
  await world.ask(['exec', 'moody', '--', 'rm', '/tmp/ready']);
  await world.untilPod('moody', 'not ready again', (pod) => conditionOf(pod, 'Ready')?.status === 'False');
});

test('init containers, sidecars and restarts are reported', async () => {
  const pod = aPod('family', 'sleep 2; exit 3', {
    spec: {
      initContainers: [
        { name: 'before', image: 'lab.local/busybox:1', command: ['true'] },
        {
          name: 'sidecar',
          image: 'lab.local/busybox:1',
          command: ['sleep', '3600'],
          restartPolicy: 'Always',
        },
      ],
    },
  });
  await world.home.create('/api/v1/namespaces/workloads/pods', pod);
  const seen = await world.untilPod(
    'family',
    'has restarted',
    (one) => (statusOf(one)?.restartCount ?? 0) >= 1,
  );
  expect(statusOf(seen)?.lastState?.terminated?.exitCode).toBe(3);
  const [before, sidecar] = seen.status?.initContainerStatuses ?? [];
  expect(before?.state?.terminated?.exitCode).toBe(0);
  expect(sidecar?.state?.running).toBeDefined();
});
