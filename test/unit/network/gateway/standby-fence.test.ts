import { expect, test } from '@jest/globals';

import type { Clock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { StandbyFence } from '../../../../src/network/gateway/standby-fence.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { RecordingHost } from '../../../support/network/recording-host.ts';

const fenceOf = (host: RecordingHost, clock: Clock = new FakeClock()): StandbyFence =>
  new StandbyFence({ host, clock, log: silentLogger });

const started = async (): Promise<{ host: RecordingHost; fence: StandbyFence }> => {
  const host = new RecordingHost();
  const fence = fenceOf(host);
  await fence.start();
  return { host, fence };
};

test('a standby leaves nothing of a gateway on its host, before it may lead', async () => {
  const host = new RecordingHost();
  const cleaning = Promise.withResolvers<void>();
  host.cleanUp = async (owner) => {
    await cleaning.promise;
    host.cleaned.push(owner);
  };
  const fence = fenceOf(host);
  fence.taken('n2');
  let ready = false;
  const start = fence.start().then(() => (ready = true));
  await Promise.resolve();
  expect(ready).toBe(false);
  cleaning.resolve();
  await start;
  expect(host.cleaned).toEqual(['gateway']);
});

test('one that comes back to its lease, and one that is stopped, leave the host alone', async () => {
  const { host, fence } = await started();
  await fence.stop();
  expect(host.cleaned).toEqual([]);
});

test('one that has lost the lease to another node cleans up when it has stopped acting, not before', async () => {
  const { host, fence } = await started();
  fence.taken('n2');
  await Promise.resolve();
  expect(host.cleaned).toEqual([]);
  await fence.stop();
  expect(host.cleaned).toEqual(['gateway']);
});

/** Of a host whose clean-up fails so often. */
function failing(times: number): { host: RecordingHost; tries: () => number } {
  const host = new RecordingHost();
  let tries = 0;
  host.cleanUp = async (owner) => {
    if (tries++ < times) return Promise.reject(new Error('no right'));
    host.cleaned.push(owner);
  };
  return { host, tries: () => tries };
}

test('a clean-up that fails is tried again', async () => {
  const { host } = failing(3);
  const clock = new FakeClock();
  fenceOf(host, clock).taken('n2');
  await clock.until('cleaned', () => host.cleaned.length > 0, 600_000);
  await clock.advance(600_000);
  expect(host.cleaned).toEqual(['gateway']);
});

test('a clean-up that fails keeps nobody from leading, and is not tried again under a leader', async () => {
  const { host, tries } = failing(Infinity);
  const clock = new FakeClock();
  const fence = fenceOf(host, clock);
  fence.taken('n2');
  await expect(fence.start()).resolves.toBeUndefined();
  expect(tries()).toBe(1);
  await clock.advance(600_000);
  expect(tries()).toBe(1);
});

test('a clean-up that fails at the end holds up no stop', async () => {
  const { host, tries } = failing(Infinity);
  const fence = fenceOf(host, new FakeClock());
  await fence.start();
  fence.taken('n2');
  await expect(fence.stop()).resolves.toBeUndefined();
  expect(tries()).toBe(1);
});
