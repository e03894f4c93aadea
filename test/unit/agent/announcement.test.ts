import { expect, test } from '@jest/globals';
import { AnnouncementWriter } from '../../../src/agent/announcement.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('what others have deleted is written again, and a failure is got over', async () => {
  const written: unknown[] = [];
  let fails = 1;
  const patch = async (_type: unknown, ref: unknown): Promise<object> => {
    if (fails-- > 0) throw new Error('not now');
    written.push(ref);
    return {};
  };
  const clock = new FakeClock();
  const writer = new AnnouncementWriter({
    client: { patch } as unknown as KubeClient,
    namespace: 'system',
    own: () => ({ clusterID: 'a'.repeat(26), clusterName: 'rome', endpoints: [], port: 1, protocols: [1] }),
    clock,
    log: createLogger({ level: 'error', now: () => 0, write: () => undefined }),
  });
  await writer.start(new AbortController().signal);
  await clock.advance(5_000);
  expect(written).toEqual([{ name: 'tributary-announcement', namespace: 'system' }]);
  await clock.advance(300_000);
  expect(written).toHaveLength(6);
  await writer.stop();
  await clock.advance(300_000);
  expect(written).toHaveLength(6);
});
