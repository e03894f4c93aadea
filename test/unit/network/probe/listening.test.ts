import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { PROBE_PORT } from '../../../../src/api/own-network.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { encodeProbe, PROBE_HEADER } from '../../../../src/network/probe/message.ts';
import type { ProbeResult } from '../../../../src/network/probe/peer-probe.ts';
import { Prober } from '../../../../src/network/probe/prober.ts';
import { Responder } from '../../../../src/network/probe/responder.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { ProbeNetwork } from './support/probe-network.ts';

const LISTENER = '10.70.0.1';
const ASKER = '100.64.0.1';
/** Within so long after its last answer a peer is dead. */
const DEAD_MS = 7_000;

let clock: FakeClock;
let network: ProbeNetwork;
let listener: End;
let asker: End;

interface End {
  prober: Prober;
  responder: Responder;
  misses: string[];
  outer: number;
  isFlowing: boolean;
}

function endAt(address: string, peer: string, listens: boolean): End {
  const end = { misses: [] as string[], outer: 1500, isFlowing: false };
  const prober = new Prober({
    clock,
    sockets: network,
    mtu: 1420,
    pathMtu: async () => Promise.resolve(end.outer),
    isFlowing: () => end.isFlowing,
    random: () => 0.5,
  });
  const responder = new Responder({ clock, log: silentLogger, sockets: network, asked: prober.asked });
  responder.setAddress(address);
  prober.onMiss((id) => end.misses.push(id));
  prober.setTargets([
    { clusterID: 'p', address: peer, source: address, endpoint: '192.0.2.9:51820', listens },
  ]);
  return Object.assign(end, { prober, responder });
}

function start({ prober, responder }: End): void {
  const { signal } = new AbortController();
  responder.start(signal);
  prober.start(signal);
}

beforeEach(async () => {
  clock = new FakeClock();
  network = new ProbeNetwork(clock);
  listener = endAt(LISTENER, ASKER, true);
  asker = endAt(ASKER, LISTENER, false);
  for (const end of [listener, asker]) start(end);
  await clock.advance(20_000);
  for (const end of [listener, asker]) expect(resultOf(end)).toMatchObject({ alive: true, mtu: 1420 });
});

afterEach(async () => {
  for (const { prober, responder } of [listener, asker]) {
    prober.stop();
    responder.stop();
  }
  await clock.advance(2000);
  expect(clock.pending).toBe(0);
});

const resultOf = ({ prober }: End): ProbeResult | undefined => prober.results().get('p');

/** Questions to that end in a minute: of full size, and small ones. */
async function minuteOf(to: string): Promise<{ full: number; small: number }> {
  const before = network.sent.length;
  await clock.advance(60_000);
  const asked = network.sent.slice(before).filter((one) => one.to === `${to}:${PROBE_PORT}`);
  const full = asked.filter(({ size }) => size === 1420).length;
  return { full, small: asked.length - full };
}

test('of two ends of a quiet tunnel one asks, and each measures what fits through its own way', async () => {
  const ofListener = await minuteOf(ASKER);
  const ofAsker = await minuteOf(LISTENER);
  expect(ofAsker.small).toBe(30);
  expect(ofListener.small).toBe(ofListener.full);
  for (const { full } of [ofListener, ofAsker]) {
    expect(full).toBeGreaterThan(6);
    expect(full).toBeLessThan(9);
  }
  expect([...listener.misses, ...asker.misses]).toEqual([]);
  expect(resultOf(listener)).toMatchObject({ alive: true, lossPercent: 0, rttMs: 2 });
  expect(clock.now() - (resultOf(listener)?.lastAnswerMs ?? 0)).toBeLessThan(2100);
});

test.each([
  ['both directions', () => true],
  ['the way to the one that asks', (to: string) => to.startsWith(ASKER)],
  ['the way to the one that listens', (to: string) => to.startsWith(LISTENER)],
])('where %s lose everything, both ends find the other dead as soon as ever', async (_, loses) => {
  for (let step = 0; step < 16; step++) {
    // At any moment of the rhythm.
    await clock.advance(10_000 + step * 130);
    network.loses = loses;
    await clock.advance(DEAD_MS + 100);
    expect([listener, asker].map((end) => resultOf(end)?.alive)).toEqual([false, false]);
    network.loses = () => false;
    await clock.advance(3000);
    expect([listener, asker].map((end) => resultOf(end)?.alive)).toEqual([true, true]);
  }
});

test('a single probe that is lost kills nobody', async () => {
  for (let round = 0; round < 20; round++) {
    let lost = 0;
    network.loses = () => lost++ < 1;
    await clock.advance(10_000 + round * 210);
    expect([listener, asker].map((end) => resultOf(end)?.alive)).toEqual([true, true]);
  }
});

test('when the other end asks no more, the one that listened asks, and all is well', async () => {
  asker.prober.stop();
  const before = network.requests();
  await clock.advance(4600);
  expect(network.requests()).toBeGreaterThan(before);
  expect(await minuteOf(ASKER)).toMatchObject({ small: 30 });
  expect([listener.prober.isCalm, resultOf(listener)?.missed]).toEqual([true, undefined]);
});

test('one of an earlier version asks without saying whether it heard us, so that both ask', async () => {
  asker.prober.stop();
  const socket = await network.bind(ASKER, 0, () => undefined);
  const request = { type: 'request', size: PROBE_HEADER, token: '0123456789abcdef' } as const;
  let cancel = (): void => undefined;
  const ask = (sequence: number): void => {
    void socket.send(encodeProbe({ ...request, sequence }), LISTENER, PROBE_PORT);
    cancel = clock.after(2000, () => ask(sequence + 1));
  };
  ask(1);
  await clock.advance(5000);
  expect(await minuteOf(ASKER)).toMatchObject({ small: 30 });
  cancel();
  socket.close();
  expect([listener.prober.isCalm, resultOf(listener)?.missed]).toEqual([true, undefined]);
});

test('a flow that begins finds a narrower path within two seconds, also where one listens', async () => {
  listener.outer = 1400;
  listener.isFlowing = true;
  await clock.advance(2100);
  expect(resultOf(listener)?.mtu).toBe(1328);
});

test('who asks may change, as with a new key', async () => {
  const target = { clusterID: 'p', address: ASKER, source: LISTENER, endpoint: '192.0.2.9:51820' };
  listener.prober.setTargets([{ ...target, listens: false }]);
  await clock.advance(5000);
  expect(await minuteOf(ASKER)).toMatchObject({ small: 30 });
});
