import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { podMetrics, type PodSample } from '../../../src/api/pod-usage.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { ForeignUsage } from '../../../src/provider/usage.ts';
import { World } from './support/world.ts';

const NOTHING_ELSE = { recordFailure: () => expect(undefined).toBe('an answer'), prune: () => undefined };

let world: World;
beforeEach(async () => {
  world = await new World({ types: [podMetrics] }).up();
});
afterEach(async () => world.down());

test('what a pod uses is told under its name and UID at home; of swap, what the foreign cluster says', async () => {
  const { provider } = await world.start();
  const uid = world.addPod('web', {
    containers: [
      { name: 'main', image: 'web:1' },
      { name: 'side', image: 'side:1' },
    ],
  });
  await world.settled();
  world.foreign.seed(podMetrics, {
    metadata: { name: 'web', namespace: 'tenant' },
    timestamp: new Date(world.clock.now()).toISOString(),
    window: '15s',
    containers: [
      { name: 'main', usage: { cpu: '250m', memory: '64Mi', swap: '4Ki' } },
      { name: 'side', usage: { cpu: '0', memory: '1Mi' } },
    ],
  });
  const recorded: PodSample[] = [];
  const record = { record: (samples: readonly PodSample[]) => recorded.push(...samples), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  expect(recorded).toMatchObject([{ namespace: 'shop', name: 'web', uid, windowMs: 15_000 }]);
  const [main, side] = recorded[0]?.containers ?? [];
  expect(main).toMatchObject({ name: 'main', cpu: '250m', memory: '64Mi', swap: '4Ki' });
  expect(side).toMatchObject({ name: 'side', cpu: '0', memory: '1Mi' });
  expect(side).not.toHaveProperty('swap');
});

test('a sample comes from no time that a node could be measured at: not the future, and not none', async () => {
  const { provider } = await world.start();
  const timestamps = { ahead: '2099-01-01T00:00:00Z', odd: 'yesterday', none: undefined };
  for (const [name, timestamp] of Object.entries(timestamps)) {
    world.addPod(name);
    world.foreign.seed(podMetrics, {
      metadata: { name, namespace: 'tenant' },
      ...(timestamp !== undefined && { timestamp }),
      window: '15s',
      containers: [{ name: 'main', usage: { cpu: '1', memory: '64Mi' } }],
    });
  }
  await world.settled();
  const recorded: PodSample[] = [];
  const record = { record: (samples: readonly PodSample[]) => recorded.push(...samples), ...NOTHING_ELSE };
  const usage = new ForeignUsage(provider, record, { clock: world.clock, log: silentLogger });
  await world.clock.during('read', usage.refresh());
  expect(recorded.map(({ name }) => name)).toEqual(['ahead']);
  expect(recorded[0]?.timestampMs).toBeLessThanOrEqual(world.clock.now());
});
