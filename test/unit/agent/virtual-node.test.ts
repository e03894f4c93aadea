import { getEventListeners } from 'node:events';
import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { AgentParts } from '../../../src/agent/parts.ts';
import { ServedNode } from '../../../src/agent/served-node.ts';
import { VirtualNodeAgent } from '../../../src/agent/virtual-node.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { Caches } from '../../../src/kube/caches.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const clock = new FakeClock();
const log = silentLogger;
const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

test('an agent that has stopped is held by no signal that outlives it', async () => {
  const server = new FakeApi({ clock, types: [virtualNodes] });
  const home = server.client({ clock });
  const caches = new Caches({ client: home, clock, log });
  const parts = { clock, log } as unknown as AgentParts;
  const { signal } = new AbortController();
  const open = (): VirtualNodeAgent =>
    new VirtualNodeAgent({
      parts,
      home,
      caches,
      virtualNode: 'milan',
      address: '10.0.0.1',
      kubeletPort: 0,
      registry: new Registry(),
      metrics: async () => Promise.resolve(''),
    });
  // Each waits for its VirtualNode, which is never made.
  const agent = open();
  const agentStarts = agent.start(signal).catch((error: unknown) => error);
  const node = new ServedNode('milan', { open, close: () => undefined, clock, log });
  const nodeStarts = node.start(signal).catch((error: unknown) => error);
  await clock.advance(5_000);
  expect(listenersOf(signal)).toBe(2);
  await agent.stop();
  await clock.during('the node stops', node.stop());
  await clock.during('the starts end', Promise.all([agentStarts, nodeStarts]));
  expect(listenersOf(signal)).toBe(0);
  await home.close();
  await server.stop();
});
