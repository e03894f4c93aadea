import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { PROBE_PORT } from '../../../../src/api/own-network.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Prober } from '../../../../src/network/probe/prober.ts';
import { Responder } from '../../../../src/network/probe/responder.ts';
import { countingSockets } from '../../../../src/network/probe/sockets.ts';
import { Traffic } from '../../../../src/network/probe/traffic.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { ProbeNetwork } from './support/probe-network.ts';

const HERE = '10.70.0.1';
const THERE = '100.64.0.1';

let clock: FakeClock;
let network: ProbeNetwork;
let prober: Prober;
let responder: Responder;
/** Packets of pods, beside the probes. */
let ofPods: number;
let looks: number;
let outer: number;
let misses: string[];

beforeEach(async () => {
  clock = new FakeClock();
  network = new ProbeNetwork(clock);
  [ofPods, looks, outer, misses] = [0, 0, 1500, []];
  const sockets = countingSockets(network);
  const { isFlowing } = new Traffic({
    clock,
    linkPackets: () => ofPods + sockets.sentPackets(),
    probePackets: sockets.sentPackets,
  });
  prober = new Prober({
    clock,
    sockets,
    mtu: 1420,
    pathMtu: async () => {
      looks += 1;
      return Promise.resolve(outer);
    },
    isFlowing,
    random: () => 0.5,
  });
  prober.onMiss((id) => misses.push(id));
  responder = new Responder({ clock, log: silentLogger, sockets: network });
  responder.setAddress(THERE);
  const { signal } = new AbortController();
  responder.start(signal);
  prober.start(signal);
  prober.setTargets([{ clusterID: 'p', address: THERE, source: HERE, endpoint: '192.0.2.9:51820' }]);
  await clock.advance(10_000);
  expect(prober.results().get('p')).toMatchObject({ alive: true, mtu: 1420 });
});

afterEach(async () => {
  prober.stop();
  responder.stop();
  await clock.advance(2000);
  expect(clock.pending).toBe(0);
});

/** Probes of full size and small ones, and looks at the kernel's path MTU, in a minute. */
async function minute(): Promise<{ full: number; small: number; looks: number }> {
  const [before, looksBefore] = [network.sent.length, looks];
  await clock.advance(60_000);
  const sent = network.sent.slice(before).filter(({ to }) => to.startsWith(THERE));
  const full = sent.filter(({ size }) => size === 1420).length;
  return { full, small: sent.length - full, looks: looks - looksBefore };
}

test('while only probes pass, the beats go on and all else is rarer', async () => {
  const quiet = await minute();
  expect(quiet.small).toBe(30);
  expect(quiet.full).toBeLessThan(quiet.small / 3);
  expect(quiet.looks).toBe(quiet.full);
  const flow = setFlow();
  const busy = await minute();
  flow();
  expect(busy.full).toBeGreaterThan(50);
  expect(busy.looks).toBeGreaterThan(200);
});

test('all peers are asked at once, at even seconds of the wall clock', async () => {
  const others = ['q', 'r', 's'].map((clusterID, index) => ({
    clusterID,
    address: `100.64.1.${index}`,
    source: HERE,
  }));
  const log = silentLogger;
  const responders = others.map(({ address }) => {
    const one = new Responder({ clock, log, sockets: network });
    one.setAddress(address);
    one.start(new AbortController().signal);
    return one;
  });
  const times: number[] = [];
  await clock.advance(300);
  prober.setTargets([{ clusterID: 'p', address: THERE, source: HERE }, ...others]);
  await clock.advance(20_000);
  network.onSend = (to) => {
    if (to.endsWith(`:${PROBE_PORT}`)) times.push(clock.now());
  };
  await clock.advance(20_000);
  expect(new Set(times.map((time) => time % 2000))).toEqual(new Set([0]));
  expect(times.length).toBeGreaterThanOrEqual(40);
  for (const one of responders) one.stop();
});

/** Pods send a packet every 200 ms, until the answer is called. */
function setFlow(): () => void {
  let cancel = (): void => undefined;
  const send = (): void => {
    ofPods += 1;
    cancel = clock.after(200, send);
  };
  send();
  return () => cancel();
}

test('a flow that begins in a quiet tunnel finds a narrower path within two seconds', async () => {
  await clock.advance(20_000);
  outer = 1400;
  const flow = setFlow();
  await clock.advance(2000);
  flow();
  expect(prober.results().get('p')?.mtu).toBe(1328);
});

test('a path that swallows large packets is noticed, though nothing flows', async () => {
  network.mtu = 1300;
  await clock.advance(8000);
  expect(prober.results().get('p')?.mtu).toBeLessThanOrEqual(1300);
  expect(prober.isCalm).toBe(true);
});

test('a peer that falls silent is told of at the first miss, and dead as soon as in a tunnel in use', async () => {
  // The last beat has its answer.
  await clock.advance(100);
  expect([prober.isCalm, misses]).toEqual([true, []]);
  network.loses = () => true;
  await clock.advance(4100);
  expect([prober.isCalm, misses]).toEqual([false, ['p']]);
  expect(prober.results().get('p')).toMatchObject({ alive: true, missed: 2 });
  await clock.advance(3000);
  expect(prober.results().get('p')?.alive).toBe(false);
  expect(misses).toEqual(['p']);
});

test('what is not known, and a link that begins anew, count as in use', async () => {
  let link: number | undefined = 10;
  const { isFlowing } = new Traffic({ clock, linkPackets: () => link, probePackets: () => 4 });
  expect(isFlowing()).toBe(true);
  await clock.advance(5000);
  expect(isFlowing()).toBe(false);
  link = undefined;
  await clock.advance(250);
  expect(isFlowing()).toBe(true);
  link = 2;
  await clock.advance(250);
  expect(isFlowing()).toBe(true);
  await clock.advance(5000);
  expect(isFlowing()).toBe(false);
  link = 3;
  await clock.advance(250);
  expect(isFlowing()).toBe(true);
});
