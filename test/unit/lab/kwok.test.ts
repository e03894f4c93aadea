import { createServer } from 'node:net';

import { expect, test } from '@jest/globals';

import { freePorts } from '../../../lab/free-ports.ts';
import { kwokNodes } from '../../../lab/kwok.ts';

test('kwok nodes have ranges of their own, room for pods, and the mark of kwok', () => {
  const nodes = kwokNodes({ name: 'home', nodeCount: 2, podCidr: '10.244.0.0/16' });
  expect(nodes.map(({ metadata }) => metadata.name)).toEqual(['home-1', 'home-2']);
  expect(nodes[1]).toMatchObject({
    metadata: {
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { 'kubernetes.io/hostname': 'home-2' },
    },
    spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'] },
    status: { allocatable: { pods: '250' } },
  });
});

test('a node is told what it is when it is made: kwok only says that it is Ready', () => {
  const [node] = kwokNodes({ name: 'home', nodeCount: 1, podCidr: '10.244.0.0/16' });
  expect(node).toMatchObject({
    status: {
      addresses: [
        { type: 'InternalIP', address: '127.0.0.1' },
        { type: 'Hostname', address: 'home-1' },
      ],
      nodeInfo: { architecture: 'amd64', operatingSystem: 'linux' },
    },
  });
  expect(node?.['status']).not.toHaveProperty('conditions');
});

test('ports are free, distinct, and never given out twice', async () => {
  const taken = createServer();
  await new Promise<void>((listening) => taken.listen(20_000, '127.0.0.1', listening));
  try {
    const first = await freePorts(3, () => 0);
    const second = await freePorts(3, () => 0);
    const all = [...first, ...second];
    expect(new Set(all).size).toBe(6);
    expect(all).not.toContain(20_000);
    expect(all.every((port) => port > 20_000 && port < 32_000)).toBe(true);
  } finally {
    await new Promise((closed) => taken.close(closed));
  }
});
