import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ClientEventRecorder } from '../../../src/kube/events.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let server: FakeApi;
let client: HttpClient;
let clock: FakeClock;
let recorder: ClientEventRecorder;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  recorder = new ClientEventRecorder({
    client,
    clock,
    log: silentLogger,
    component: 'tributary',
    host: 'node',
  });
});

afterEach(async () => {
  await recorder.stop();
  await client.close();
  await server.stop();
});

const pod = (name: string): Parameters<ClientEventRecorder['event']>[0] => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns', uid: `uid-${name}` },
});

const stored = (): Record<string, unknown>[] => server.storage.list('events');
const counts = (): unknown[] => stored().map(({ count }) => count);

test('an event says what, about whom, and who speaks', async () => {
  recorder.event(pod('a'), 'Warning', 'Refused', 'no room');
  await clock.until('the event', () => stored().length === 1);
  expect(stored()[0]).toMatchObject({
    metadata: { name: expect.stringMatching(/^a\.[0-9a-f]{16}$/), namespace: 'ns' },
    involvedObject: { kind: 'Pod', name: 'a', namespace: 'ns', uid: 'uid-a' },
    type: 'Warning',
    reason: 'Refused',
    message: 'no room',
    count: 1,
    firstTimestamp: '2026-01-01T00:00:00.000Z',
    source: { component: 'tributary', host: 'node' },
  });
});

test('the same news within ten minutes is one Event that counts, written at most each five seconds', async () => {
  for (let index = 0; index < 100; index++) recorder.event(pod('a'), 'Normal', 'Again', 'same');
  await clock.until('the first', () => counts()[0] === 1);
  await clock.until('a timer', () => clock.pending > 0);
  await clock.advance(5000);
  await clock.until('all counted', () => counts()[0] === 100);
  expect(server.count(/^(POST|PATCH)/)).toBe(2);
  expect(stored()).toHaveLength(1);
  await clock.advance(11 * 60_000);
  recorder.event(pod('a'), 'Normal', 'Again', 'same');
  await clock.until('a new one', () => stored().length === 2);
});

test('another message, reason or object is another Event', async () => {
  recorder.event(pod('a'), 'Normal', 'One', 'x');
  recorder.event(pod('a'), 'Normal', 'One', 'y');
  recorder.event(pod('a'), 'Normal', 'Two', 'x');
  recorder.event(pod('b'), 'Normal', 'One', 'x');
  await clock.until('four', () => stored().length === 4);
});

test('an object that talks too much is cut short, others are heard', async () => {
  for (let index = 0; index < 200; index++) recorder.event(pod('a'), 'Normal', 'Chatter', `message ${index}`);
  recorder.event(pod('b'), 'Normal', 'Quiet', 'hello');
  await clock.until('all that may pass', async () => {
    await clock.advance(5000);
    return stored().length === 26;
  });
  // One more each five minutes.
  await clock.advance(5 * 60_000);
  recorder.event(pod('a'), 'Normal', 'Chatter', 'late');
  await clock.until('the late one', () => stored().length === 27);
});

test('errors are swallowed, and the next news is told', async () => {
  server.fault({ status: 403, times: 1 });
  recorder.event(pod('a'), 'Normal', 'Lost', 'x');
  await clock.until('the refusal', () => server.log.length === 1);
  recorder.event(pod('a'), 'Normal', 'Told', 'x');
  await clock.until('the next', () => stored().length === 1);
});

test('an Event that has vanished is begun anew', async () => {
  recorder.event(pod('a'), 'Normal', 'Again', 'same');
  await clock.until('the first', () => stored().length === 1);
  const [event] = stored() as [{ metadata: { name: string } }];
  server.storage.remove('events', `ns/${event.metadata.name}`);
  recorder.event(pod('a'), 'Normal', 'Again', 'same');
  await clock.until('a timer', () => clock.pending > 0);
  await clock.advance(5000);
  await clock.until('the patch that fails', () => server.count(/^PATCH/) === 1);
  await clock.until('a new one', () => {
    recorder.event(pod('a'), 'Normal', 'Again', 'same');
    return stored().length === 1;
  });
});

test('a long message is cut, a long name leaves room for the rest', async () => {
  recorder.event(pod('a'.repeat(253)), 'Normal', 'Long', 'x'.repeat(5000));
  await clock.until('the event', () => stored().length === 1);
  const [event] = stored() as [{ message: string; metadata: { name: string } }];
  expect(event.message).toHaveLength(1024);
  expect(event.metadata.name.length).toBeLessThanOrEqual(253);
});

test('all objects together have one rate, and what is told keeps no controls', async () => {
  for (let index = 0; index < 2000; index++) {
    recorder.event(pod(`p${index}`), 'Warning', 'Refused', `no\u001b[2J room ${index}`);
  }
  await clock.advance(60_000);
  const written = stored().length;
  expect(written).toBeGreaterThan(900);
  expect(written).toBeLessThan(1_700);
  expect(stored()[0]).toMatchObject({ message: 'no [2J room 0' });
});
