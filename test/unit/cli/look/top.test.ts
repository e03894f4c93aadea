import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { nodes, pods } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { bytesText, topCommand } from '../../../../src/cli/look/top.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const TURIN = 'turin'.padEnd(26, 'b');

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  for (const [name, id] of [
    ['milan', MILAN],
    ['turin', TURIN],
  ] as const) {
    world.seed(foreignClusters, { metadata: { name }, spec: { clusterID: id } });
    world.seed(virtualNodes, {
      metadata: { name: `${name}-node`, labels: { 'tributary.dev/provider': id } },
      spec: { resources: {}, labels: { 'tributary.dev/cluster': name } },
    });
    world.seed(nodes, {
      metadata: { name: `${name}-node`, labels: { 'tributary.dev/node-type': 'virtual-node' } },
      status: { allocatable: { cpu: '4', memory: '8Gi', pods: '10', 'ephemeral-storage': '100Gi' } },
    });
    world.seed(tunnels, {
      metadata: { name: id },
      spec: { clusterID: id },
      status: {
        connection: {
          rttMs: 9.5,
          lossPercent: 1,
          receivedBytes: 2048,
          sentBytes: name === 'milan' ? 5 : 5e6,
        },
      },
    });
  }
  const requests = { cpu: '3', memory: '1Gi' };
  world.seed(pods, {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { nodeName: 'turin-node', containers: [{ name: 'a', resources: { requests } }] },
    status: { phase: 'Running' },
  });
});
afterEach(async () => world.stop());

test('the most used comes first', async () => {
  const { code, out } = await world.run(topCommand, '');
  expect(code).toBe(0);
  expect(out).toBe(`VIRTUAL NODE   CLUSTER   CPU          MEMORY           PODS          STORAGE
turin-node     turin     3/4 (75 %)   1Gi/8Gi (12 %)   1/10 (10 %)   0/100Gi (0 %)
milan-node     milan     0/4 (0 %)    0/8Gi (0 %)      0/10 (0 %)    0/100Gi (0 %)

TUNNEL TO   RTT      LOSS   RECEIVED   SENT
turin       9.5 ms   1 %    2.0 KiB    4.8 MiB
milan       9.5 ms   1 %    2.0 KiB    5 B
`);
});

test.each([['milan'], [MILAN], ['milan-node']])('one peer alone, as %s', async (name) => {
  const { out } = await world.run(topCommand, [name, '-o', 'json']);
  expect(JSON.parse(out)).toMatchObject({
    virtualNodes: [{ name: 'milan-node' }],
    tunnels: [{ cluster: 'milan' }],
  });
});

test('a peer that nobody knows is a mistake', async () => {
  const { code, err } = await world.run(topCommand, 'rome');
  expect([code, err]).toEqual([
    1,
    'no ForeignCluster has the name or ClusterID "rome"; see: tributary peerings\n',
  ]);
});

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [5e18, '4547473.5 TiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
