import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { deploymentPath, podPath } from '../../support/e2e/api.ts';
import { aDeployment, aPod, conditionOf, isReady } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

/** Ignores SIGTERM. */
const STUBBORN = 'trap "echo no" TERM; while :; do sleep 1 & wait $!; done';

let world: World;

beforeAll(async () => {
  world = await World.open('deletion');
});

afterAll(async () => world.close());

test('gracefully: preStop and SIGTERM are seen over there, and the home pod stays until the end', async () => {
  await world.runPod(
    aPod(
      'polite',
      'trap "echo terminated; sleep 1; exit 0" TERM; echo started; while :; do sleep 1 & wait $!; done',
      {
        // Enough for both to be run on a busy node.
        spec: { terminationGracePeriodSeconds: 60 },
        container: {
          lifecycle: { preStop: { exec: { command: ['sh', '-c', 'echo before stop > /proc/1/fd/1'] } } },
        },
      },
    ),
  );
  const logs = world.start(['logs', '-f', 'polite']);
  await logs.waitFor(/started/);
  await world.ask(['delete', 'pod', 'polite', '--wait=false']);
  await logs.ended;
  expect(logs.stdout).toMatch(/before stop\n(.*\n)*terminated\n/);
  await world.untilGone('polite');
});

test('kubectl delete waits until the pod is gone over there', async () => {
  await world.runPod(aPod('plain'));
  await world.ask(['delete', 'pod', 'plain', '--timeout=60s'], { timeoutMs: 70_000 });
  expect(await world.remote('plain')).toBeUndefined();
});

test('by force: gone at home at once, and over there soon after', async () => {
  await world.runPod(aPod('stubborn', STUBBORN, { spec: { terminationGracePeriodSeconds: 600 } }));
  await world.ask(['delete', 'pod', 'stubborn', '--force', '--grace-period=0', '--timeout=60s'], {
    timeoutMs: 70_000,
  });
  expect(await world.home.pod('deletion', 'stubborn')).toBeUndefined();
  await world.untilGone('stubborn');
});

test('a shorter grace while the pod is ending is passed on', async () => {
  await world.runPod(aPod('slow', STUBBORN, { spec: { terminationGracePeriodSeconds: 600 } }));
  await world.ask(['delete', 'pod', 'slow', '--wait=false']);
  await world.untilRemote(
    'slow',
    'ends with grace 600',
    ({ metadata }) => metadata.deletionGracePeriodSeconds === 600,
  );
  // An API server makes 1 of what has already passed since the first deletion.
  await world.ask(['delete', 'pod', 'slow', '--wait=false', '--grace-period=300']);
  await world.untilRemote(
    'slow',
    'ends with grace 300',
    ({ metadata }) => metadata.deletionGracePeriodSeconds === 300,
  );
  // The foreign kubelet waits for its container runtime, which uses the first grace period; we cannot change that.
  await world.foreign.remove(podPath(world.tenant, 'slow'), { gracePeriodSeconds: 0 });
  await world.untilGone('slow');
});

test('a pod of the same name made at once gets a body of its own', async () => {
  const first = await world.runPod(aPod('phoenix'));
  await world.ask(['delete', 'pod', 'phoenix', '--force', '--grace-period=0', '--timeout=60s'], {
    timeoutMs: 70_000,
  });
  const second = await world.runPod(aPod('phoenix'));
  expect(second.metadata.uid).not.toBe(first.metadata.uid);
  const remote = await world.remote('phoenix');
  expect(remote?.metadata.labels?.['tributary.dev/home-uid']).toBe(second.metadata.uid);
});

test('a pod that a drain evicts over there goes at home at once, and is replaced while its containers end', async () => {
  await world.home.create(deploymentPath('deletion'), aDeployment('moving', 1, STUBBORN));
  await world.ask(['rollout', 'status', 'deployment/moving', '--timeout=60s'], { timeoutMs: 70_000 });
  const [evicted] = await world.home.pods('deletion', 'app=moving');
  const name = evicted?.metadata.name ?? '';
  await world.foreign.create(`${podPath(world.tenant, name)}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: world.tenant },
    deleteOptions: { gracePeriodSeconds: 600 },
  });
  const going = await world.untilPod(
    name,
    'is being deleted',
    ({ metadata }) => metadata.deletionTimestamp !== undefined,
  );
  expect(going.metadata.deletionGracePeriodSeconds).toBe(600);
  expect(going.status?.phase).toBe('Running');
  expect(conditionOf(going, 'DisruptionTarget')).toMatchObject({
    status: 'True',
    reason: 'EvictionByEvictionAPI',
  });
  await until('another pod in its place', async () =>
    (await world.home.pods('deletion', 'app=moving')).some(
      (pod) => pod.metadata.name !== name && isReady(pod),
    ),
  );
  expect((await world.remote(name))?.metadata.deletionTimestamp).toBeDefined();
  await world.foreign.remove(podPath(world.tenant, name), { gracePeriodSeconds: 0 });
  await world.untilGone(name);
});

test('a remote pod deleted over there ends the home pod, and is not made again', async () => {
  const pod = await world.runPod(aPod('taken'));
  await world.foreign.remove(podPath(world.tenant, 'taken'), { gracePeriodSeconds: 0 });
  const ended = await world.untilPod('taken', 'has failed', ({ status }) => status?.phase === 'Failed');
  expect(ended.metadata.uid).toBe(pod.metadata.uid);
  expect(await world.remote('taken')).toBeUndefined();
  await until(
    'an event with the reason',
    async () => (await world.events('taken')).some((line) => line.startsWith('RemotePodLost: ')),
    { seen: async () => world.events('taken') },
  );
});
