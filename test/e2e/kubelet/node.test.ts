import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Node, Pod } from '../../../src/api/wire.ts';
import { aPod, conditionOf, podSpec, statusOf } from '../../support/e2e/pods.ts';
import { during, until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

const NODE_PATH = '/api/v1/nodes/foreign';

let world: World;

beforeAll(async () => {
  world = await World.open('node');
});

afterAll(async () => {
  await world.home.remove('/apis/apps/v1/namespaces/node/daemonsets');
  await world.close();
});

const isNodeReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

test('the Node says what it is', async () => {
  const node = await world.home.get<Node>(NODE_PATH);
  expect(node?.metadata.labels).toMatchObject({
    'tributary.dev/node-type': 'virtual-node',
    'tributary.dev/virtual-node': 'foreign',
    'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
  });
  expect(node?.spec?.taints).toContainEqual({
    key: 'tributary.dev/virtual-node',
    value: 'foreign',
    effect: 'NoSchedule',
  });
  expect(node?.status?.capacity).toMatchObject({ cpu: '16', pods: '200' });
  const foreign = await world.foreign.call<{ gitVersion: string }>('GET', '/version');
  expect(node?.status?.nodeInfo?.kubeletVersion).toBe(foreign.gitVersion);
});

test('what nodes serve through the API server is served', async () => {
  const raw = async (path: string): Promise<string> =>
    world.ask(['get', '--raw', `${NODE_PATH}/proxy/${path}`]);
  expect(await raw('healthz')).toBe('ok');
  await world.runPod(aPod('listed'));
  const names = (JSON.parse(await raw('pods')) as { items: Pod[] }).items.map(
    ({ metadata }) => metadata.name,
  );
  expect(names).toContain('listed');
  expect(JSON.parse(await raw('configz'))).toHaveProperty('kubeletconfig');
  expect(JSON.parse(await raw('stats/summary'))).toHaveProperty('node.nodeName', 'foreign');
  expect(await raw('metrics/resource')).toContain('node_cpu_usage_seconds_total');
});

test('a Node that somebody deletes is made again, and its pods go on', async () => {
  const pod = await world.runPod(aPod('survivor'));
  const before = await world.home.get<Node>(NODE_PATH);
  await world.home.remove(NODE_PATH);
  await until('another Node, Ready', async () => {
    const node = await world.home.get<Node>(NODE_PATH);
    return node?.metadata.uid !== before?.metadata.uid && isNodeReady(node);
  });
  await during(3, async () => {
    const now = await world.home.pod('node', 'survivor');
    expect(statusOf(now)?.containerID).toBe(statusOf(pod)?.containerID);
    expect(now?.metadata.deletionTimestamp).toBeUndefined();
  });
});

test('a DaemonSet that tolerates everything waits, with the reason, and is not made again and again', async () => {
  await world.home.create('/apis/apps/v1/namespaces/node/daemonsets', {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'everywhere' },
    spec: {
      selector: { matchLabels: { app: 'everywhere' } },
      template: {
        metadata: { labels: { app: 'everywhere' } },
        spec: podSpec('sleep 3600', { spec: { nodeSelector: {}, tolerations: [{ operator: 'Exists' }] } }),
      },
    },
  });
  const ours = async (): Promise<Pod[]> =>
    (await world.home.pods('node', 'app=everywhere')).filter(({ spec }) => spec?.nodeName === 'foreign');
  await until('a pod that says why it waits', async () =>
    (await ours()).some(
      (pod) => conditionOf(pod, 'tributary.dev/Offloaded')?.reason === 'DaemonSetNotOffloaded',
    ),
  );
  const seen = new Set<string>();
  await during(5, async () => {
    for (const { metadata, status } of await ours()) {
      seen.add(metadata.uid);
      expect(status?.phase).toBe('Pending');
    }
  });
  expect(seen.size).toBe(1);
  await world.home.remove('/apis/apps/v1/namespaces/node/daemonsets/everywhere');
  await until('the DaemonSet pods are gone', async () => (await ours()).length === 0);
});
