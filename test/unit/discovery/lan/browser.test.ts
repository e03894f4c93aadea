import { expect, test } from '@jest/globals';
import type { Packet } from 'dns-packet';

import { Browser } from '../../../../src/discovery/lan/browser.ts';
import { ServiceCache } from '../../../../src/discovery/lan/cache.ts';
import { Quota } from '../../../../src/lib/quota.ts';
import type { LanRecord } from '../../../../src/discovery/lan/wire.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const SERVICE = '_tributary._tcp.local';

function makeBrowser(maxIntervalMs: number): { clock: FakeClock; browser: Browser; sent: Packet[] } {
  const clock = new FakeClock();
  const sent: Packet[] = [];
  const cache = new ServiceCache({
    name: 'eth0',
    quota: new Quota(1000),
    random: () => 0,
    now: () => clock.monotonic(),
    onChange: () => undefined,
    onRefused: () => undefined,
  });
  const link = {
    family: 4 as const,
    send: async (packet: Packet) => Promise.resolve(void sent.push(packet)),
    close: async () => Promise.resolve(),
  };
  return {
    clock,
    sent,
    browser: new Browser({ clock, random: () => 0, cache, links: () => [link], maxIntervalMs }),
  };
}

test('in the long run it asks once in the longest interval', async () => {
  const { clock, browser, sent } = makeBrowser(3_600_000);
  browser.start();
  await clock.advance(3 * 3_600_000);
  sent.length = 0;
  await clock.advance(3_600_000);
  expect(sent).toHaveLength(1);
  browser.stop();
  await clock.advance(10 * 3_600_000);
  expect(sent).toHaveLength(1);
});

test('a flood of names does not become a flood of questions', async () => {
  const { clock, browser, sent } = makeBrowser(3_600_000);
  const names = Array.from({ length: 500 }, (_, index): LanRecord => {
    return { type: 'PTR', name: SERVICE, data: `x${index}.${SERVICE}`, ttl: 120, flush: false };
  });
  browser.receive(names, '10.0.0.66');
  await clock.advance(200);
  const questions = sent.flatMap((packet) => packet.questions ?? []);
  expect(questions).toHaveLength(60);
  expect(sent).toHaveLength(4);
  await clock.advance(60_000);
  expect(sent.length).toBeLessThan(40);
  browser.stop();
});
