import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { podPath } from '../../support/e2e/api.ts';
import { aPod, statusOf } from '../../support/e2e/pods.ts';
import { World } from './support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.open('changes');
});

afterAll(async () => world.close());

const at = (name: string): string => podPath('changes', name);

test('another image restarts the container over there', async () => {
  await world.runPod(aPod('repainted'));
  // The only other image that a real node has, too.
  const container = { name: 'main', image: 'lab.local/coredns:1' };
  await world.home.patch(at('repainted'), { spec: { containers: [container] } }, 'strategic');
  const remote = await world.untilRemote(
    'repainted',
    'has the image',
    ({ spec }) => spec?.containers[0]?.image === 'lab.local/coredns:1',
  );
  expect(remote.metadata.name).toBe('repainted');
  await world.untilPod(
    'repainted',
    'shows the restart',
    (pod) => (statusOf(pod)?.restartCount ?? 0) >= 1 && statusOf(pod)?.image?.includes('coredns') === true,
  );
});

test('more CPU and memory in place, without a restart', async () => {
  const resources = { requests: { cpu: '5m', memory: '8Mi' }, limits: { cpu: '50m', memory: '32Mi' } };
  const before = await world.runPod(aPod('grown', undefined, { container: { resources } }));
  const wanted = { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '80m', memory: '48Mi' } };
  await world.home.patch(
    `${at('grown')}/resize`,
    { spec: { containers: [{ name: 'main', resources: wanted }] } },
    'strategic',
  );
  const after = await world.untilPod(
    'grown',
    'runs with the new resources',
    (pod) => statusOf(pod)?.resources?.limits?.['memory'] === '48Mi',
  );
  expect(statusOf(after)?.resources).toMatchObject(wanted);
  expect(statusOf(after)?.containerID).toBe(statusOf(before)?.containerID);
  const limit = await world.ask([
    'exec',
    'grown',
    '--',
    'sh',
    '-c',
    'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -1',
  ]);
  expect(limit.trim()).toBe(String(48 * 1024 * 1024));
});

test('tolerations that the provider opens and labels follow', async () => {
  const opened = { metadata: { annotations: { 'tributary.dev/own-tolerations': 'rack' } } };
  await world.foreign.patch(`/api/v1/namespaces/${world.tenant}`, opened);
  await world.runPod(aPod('tagged', undefined, { labels: { tier: 'silver', old: 'yes' } }));
  await world.home.patch(at('tagged'), { metadata: { labels: { tier: 'gold', old: null } } });
  await world.untilRemote(
    'tagged',
    'has the labels',
    ({ metadata }) => metadata.labels?.['tier'] === 'gold' && !('old' in metadata.labels),
  );
  const pod = await world.home.pod('changes', 'tagged');
  const tolerations = [
    ...(pod?.spec?.tolerations ?? []),
    { key: 'rack', operator: 'Exists', effect: 'NoExecute' },
  ];
  await world.home.patch(at('tagged'), { spec: { tolerations } });
  await world.untilRemote('tagged', 'has the toleration', ({ spec }) =>
    (spec?.tolerations ?? []).some(({ key }) => key === 'rack'),
  );
});

test('the home generation is observed once the change has been acted on', async () => {
  const pod = await world.runPod(aPod('counted'));
  await world.home.patch(at('counted'), { spec: { activeDeadlineSeconds: 3600 } });
  await world.untilPod(
    'counted',
    'has observed the new generation',
    ({ metadata, status }) =>
      (metadata.generation ?? 0) > (pod.metadata.generation ?? 0) &&
      status?.observedGeneration === metadata.generation,
  );
  const remote = await world.remote('counted');
  expect(remote?.spec?.activeDeadlineSeconds).toBe(3600);
});
