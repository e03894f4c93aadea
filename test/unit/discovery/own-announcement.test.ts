import { expect, test } from '@jest/globals';

import { AnnouncementWriter, lanAnnouncement } from '../../../src/discovery/own-announcement.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const own = {
  clusterID: 'milan'.padEnd(26, 'a'),
  clusterName: 'Milan',
  port: 7443,
  protocols: [1],
  endpoints: [],
};

test.each<[string, string[], { port: number; hosts: string[] }]>([
  ['nothing is advertised: this host', [], { port: 7443, hosts: [] }],
  ['an address', ['203.0.113.1:443'], { port: 443, hosts: ['203.0.113.1'] }],
  [
    'both families',
    ['203.0.113.1:443', '[2001:db8::1]:443'],
    { port: 443, hosts: ['203.0.113.1', '2001:db8::1'] },
  ],
  [
    'another port is another service',
    ['203.0.113.1:443', '203.0.113.2:444'],
    { port: 443, hosts: ['203.0.113.1'] },
  ],
  ['names say nothing on the LAN', ['peering.example:443'], { port: 7443, hosts: [] }],
  [
    'a name, then an address',
    ['peering.example:443', '203.0.113.1:8443'],
    { port: 8443, hosts: ['203.0.113.1'] },
  ],
  ['nonsense', ['', ':', '[::1', '203.0.113.1'], { port: 7443, hosts: [] }],
])('%s', (_, endpoints, { port, hosts }) => {
  const { announcement, hosts: said } = lanAnnouncement({ ...own, endpoints });
  expect({ port: announcement.port, hosts: said }).toEqual({ port, hosts });
  expect(announcement).toMatchObject({ clusterID: own.clusterID, clusterName: 'Milan', protocols: [1] });
});

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
  writer.start(new AbortController().signal);
  await clock.advance(5_000);
  expect(written).toEqual([{ name: 'tributary-announcement', namespace: 'system' }]);
  await clock.advance(300_000);
  expect(written).toHaveLength(6);
  await writer.stop();
  await clock.advance(300_000);
  expect(written).toHaveLength(6);
});
