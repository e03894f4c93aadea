import { expect, test } from '@jest/globals';

import { Allowance, EventInbox } from '../../../../src/provider/events/inbox.ts';
import type { RemoteEvent } from '../../../../src/provider/events/remote-events.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const event = (podUid: string, count = 1): RemoteEvent => ({
  uid: 'e',
  podName: 'web',
  podUid,
  type: 'Normal',
  reason: 'Pulled',
  message: '',
  component: 'kubelet',
  firstAt: 0,
  lastAt: 0,
  count,
});

test('one pod has a burst, then one a minute, and no turn beyond ten minutes', async () => {
  const clock = new FakeClock();
  const allowance = new Allowance(clock);
  const turns = Array.from({ length: 60 }, () => allowance.turn('a'));
  expect(turns.filter((ms) => ms === 0)).toHaveLength(25);
  expect(turns.filter((ms) => ms !== undefined && ms > 0)).toHaveLength(10);
  expect(turns.filter((ms) => ms === undefined)).toHaveLength(25);
  // Another pod does not suffer for it.
  expect(allowance.turn('b')).toBe(0);
  await clock.advance(11 * 60_000);
  expect(allowance.turn('a')).toBe(0);
});

test('many pods share a rate, whatever their names', () => {
  const allowance = new Allowance(new FakeClock());
  const turns = Array.from({ length: 20_000 }, (_, index) => allowance.turn(`pod-${index}`));
  expect(turns.filter((ms) => ms === 0)).toHaveLength(200);
  // Ten a second for ten minutes, and then no more.
  expect(turns.filter((ms) => ms !== undefined).length).toBeLessThanOrEqual(200 + 6001);
});

test('what waits is bounded, by pod and in all; a later state takes the place of the earlier', () => {
  const inbox = new EventInbox();
  for (let index = 0; index < 100; index++) inbox.offer(`shop/a-${index}`, event('a'), 0);
  expect([inbox.size, inbox.dropped]).toEqual([32, 68]);
  expect(inbox.offer('shop/a-0', event('a', 2), 5)).toBe(true);
  expect(inbox.get('shop/a-0')).toMatchObject({ event: { count: 2 }, receivedAt: 0 });
  for (let index = 0; index < 10_000; index++) inbox.offer(`shop/p-${index}`, event(`p-${index}`), 0);
  expect(inbox.size).toBe(4096);
  for (let index = 0; index < 100; index++) inbox.remove(`shop/a-${index}`);
  expect(inbox.offer('shop/a-new', event('a'), 0)).toBe(true);
});

test('what could not be told waits again, unless a later state has come', () => {
  const inbox = new EventInbox();
  inbox.offer('shop/a', event('a'), 0);
  const waiting = inbox.get('shop/a');
  if (waiting === undefined) throw new Error('not there');
  inbox.remove('shop/a');
  expect(inbox.putBack('shop/a', waiting)).toBe(true);
  expect(inbox.get('shop/a')).toBe(waiting);
  inbox.remove('shop/a');
  inbox.offer('shop/a', event('a', 2), 1);
  expect(inbox.putBack('shop/a', waiting)).toBe(true);
  expect(inbox.get('shop/a')).toMatchObject({ event: { count: 2 } });
});
