import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { silentLogger } from '../../../../src/lib/log.ts';
import type { ProbeResult, ProbeTarget } from '../../../../src/network/probe/peer-probe.ts';
import { Prober } from '../../../../src/network/probe/prober.ts';
import { Responder } from '../../../../src/network/probe/responder.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { ProbeNetwork } from './support/probe-network.ts';

const HERE = '10.70.0.1';
const THERE = '100.64.0.1';
const TARGET: ProbeTarget = { clusterID: 'p', address: THERE, source: HERE, endpoint: '192.0.2.9:51820' };

let clock: FakeClock;
let network: ProbeNetwork;
let prober: Prober;
let responder: Responder;
let outer: number | undefined;
let changes: string[];

beforeEach(async () => {
  clock = new FakeClock();
  network = new ProbeNetwork(clock);
  network.kernels.add(THERE);
  outer = 1500;
  changes = [];
  prober = new Prober({
    clock,
    sockets: network,
    mtu: 1420,
    pathMtu: async (address) => (address === '192.0.2.9' ? outer : undefined),
    random: () => 0.5,
  });
  prober.onChange((id) => changes.push(id));
  responder = new Responder({ clock, log: silentLogger, sockets: network });
  responder.setAddress(THERE);
  const { signal } = new AbortController();
  responder.start(signal);
  prober.start(signal);
});

afterEach(async () => {
  prober.stop();
  responder.stop();
  await clock.advance(0);
  expect(network.open).toEqual([]);
  // What is under way ends by its own time.
  await clock.advance(2000);
  expect(clock.pending).toBe(0);
});

const result = (id = 'p'): ProbeResult | undefined => prober.results().get(id);

async function peered(): Promise<void> {
  prober.setTargets([TARGET]);
  await clock.advance(3000);
  expect(result()).toMatchObject({ alive: true, mtu: 1420 });
}

test('a peer that answers is alive, with its round-trip time, no loss and the size of the link', async () => {
  const began = clock.now();
  prober.setTargets([TARGET]);
  // Neither alive nor dead: nothing has been measured.
  expect(result()).toBeUndefined();
  await clock.advance(2000);
  expect(result()).toMatchObject({ alive: true, rttMs: 2, lossPercent: 0, mtu: 1420 });
  expect(result()?.since).toBeGreaterThan(began);
  expect(clock.now() - (result()?.lastAnswerMs ?? 0)).toBeLessThan(1200);
  expect(changes).toEqual(['p', 'p']);
});

test('about one small probe and one of full size a second', async () => {
  await peered();
  const before = network.requests();
  await clock.advance(60_000);
  expect(network.requests() - before).toBeGreaterThan(100);
  expect(network.requests() - before).toBeLessThan(140);
});

test('a peer that is gone is dead after five probes, and alive again at the first answer', async () => {
  await peered();
  network.loses = () => true;
  network.kernels.clear();
  await clock.advance(3500);
  expect(result()?.alive).toBe(true);
  await clock.advance(4000);
  expect(result()).toMatchObject({ alive: false, mtu: 1420 });
  expect(result()?.lossPercent).toBeGreaterThan(50);
  const died = result()?.since;
  network.loses = () => false;
  await clock.advance(2500);
  expect(result()?.alive).toBe(true);
  expect(result()?.since).toBeGreaterThan(died ?? Infinity);
});

test.each([2000, 60_000])(
  'what was lost before the first answer, for %i ms, is no loss',
  async (silentMs) => {
    network.loses = () => true;
    network.kernels.clear();
    prober.setTargets([TARGET]);
    await clock.advance(silentMs);
    expect(result()?.alive).toBe(silentMs > 5000 ? false : undefined);
    const first: (number | undefined)[] = [];
    prober.onChange(() => first.push(result()?.lossPercent));
    network.loses = () => false;
    await clock.advance(2500);
    expect(result()).toMatchObject({ alive: true, lossPercent: 0 });
    expect(first[0]).toBe(0);
  },
);

test('loss after a dead time is counted anew, and that of a short silence stays', async () => {
  await peered();
  const silent = async (ms: number): Promise<void> => {
    network.loses = () => true;
    network.kernels.clear();
    await clock.advance(ms);
    network.loses = () => false;
    network.kernels.add(THERE);
    await clock.advance(2500);
    expect(result()?.alive).toBe(true);
  };
  await silent(20_000);
  expect(result()?.lossPercent).toBe(0);
  await silent(3000);
  expect(result()?.lossPercent).toBeGreaterThan(20);
});

test('a peer whose agent is away, but not its kernel, is alive, and nothing is lost but the first probe', async () => {
  await peered();
  responder.setAddress(undefined);
  await clock.advance(60_000);
  expect(result()?.alive).toBe(true);
  expect(result()?.lossPercent).toBeLessThan(35);
  const lost = result()?.lossPercent;
  await clock.advance(60_000);
  expect(result()?.lossPercent).toBe(lost);
});

test('loss is counted while answers come in between', async () => {
  await peered();
  let count = 0;
  network.loses = (to) => to.startsWith(THERE) && (count += 1) % 6 === 0;
  await clock.advance(60_000);
  expect(result()).toMatchObject({ alive: true });
  expect(result()?.lossPercent).toBeGreaterThan(5);
  expect(result()?.lossPercent).toBeLessThan(60);
});

test('a path that swallows large packets is noticed and measured within three seconds', async () => {
  await peered();
  network.mtu = 1220;
  await clock.advance(3000);
  expect(result()).toMatchObject({ alive: true, mtu: 1216 });
});

test.each([200, 450, 900])(
  'a path that is slow for a while, as on a busy machine, by %i ms each way, is not taken for a narrow one',
  async (delayMs) => {
    await peered();
    for (let i = 0; i < 20; i++) {
      network.delayMs = i % 3 === 2 ? 1 : delayMs;
      await clock.advance(700);
      expect(result()?.mtu).toBe(1420);
    }
  },
);

test('a search while all packets are lost for a moment begins again, with the size that passes', async () => {
  await peered();
  network.mtu = 1300;
  for (let i = 0; i < 30; i++) {
    network.loses = () => i % 2 === 0;
    await clock.advance(170);
  }
  network.loses = () => false;
  await clock.advance(3000);
  expect(result()).toMatchObject({ alive: true, mtu: 1296 });
});

test('one that has become wider again is noticed soon after it was lowered, then ever more rarely', async () => {
  await peered();
  network.mtu = 1300;
  await clock.advance(3000);
  expect(result()?.mtu).toBe(1296);
  network.mtu = 1500;
  await clock.advance(15_000);
  expect(result()?.mtu).toBe(1420);

  network.mtu = 1300;
  await clock.advance(5 * 60_000);
  expect(result()?.mtu).toBe(1296);
  network.sent.length = 0;
  await clock.advance(10 * 60_000);
  const larger = network.sent.filter(({ size }) => size > 1296);
  expect(larger.length).toBeGreaterThan(0);
  expect(larger.length).toBeLessThan(60);
});

test('what the kernel hears from a router counts at once, though small packets go in pieces', async () => {
  await peered();
  outer = 1280;
  await clock.advance(300);
  expect(result()?.mtu).toBe(1216);
  outer = 1500;
  await clock.advance(3000);
  expect(result()?.mtu).toBe(1420);
});

test('a large packet that teaches the kernel only on its way is not believed', async () => {
  network.mtu = 1500;
  outer = 1500;
  let asked = 0;
  network.loses = () => {
    // The first large one comes back as ICMP; from then on they are cut to pieces, and arrive.
    if (network.sent.at(-1)?.size !== 1420) return false;
    outer = 1280;
    return (asked += 1) === 1;
  };
  prober.setTargets([TARGET]);
  await clock.advance(5000);
  expect(result()?.mtu).toBe(1216);
});

test('the address may come later than the target', async () => {
  network.absent.add(HERE);
  prober.setTargets([TARGET]);
  await clock.advance(8000);
  expect(result()?.alive).toBe(false);
  network.absent.clear();
  await clock.advance(2500);
  expect(result()?.alive).toBe(true);
});

test('who is no target any more is forgotten; who stays is not begun again', async () => {
  await peered();
  const other = { ...TARGET, clusterID: 'q', address: '100.64.1.1' };
  const since = result()?.since;
  prober.setTargets([{ ...TARGET, endpoint: '192.0.2.10:1' }, other]);
  expect(result('q')).toBeUndefined();
  await clock.advance(8000);
  expect([...prober.results().keys()]).toEqual(['p', 'q']);
  expect(result('q')).toMatchObject({ alive: false });
  expect(result()?.since).toBe(since);
  prober.setTargets([other]);
  expect([...prober.results().keys()]).toEqual(['q']);
  prober.setTargets([{ ...other, address: THERE }]);
  expect(result('q')).toBeUndefined();
  await clock.advance(2500);
  expect(result('q')?.alive).toBe(true);
});

test('a peer that sees our gateway as something else is asked from another port, and others are not', async () => {
  let as = '10.71.0.1';
  const other = { ...TARGET, clusterID: 'q', address: '100.64.1.1', as };
  // As conntrack has translated the first packet between two ports, and so all that follow.
  const ways = new Map<string, string>();
  network.loses = (...ends) => {
    const way = ends.toSorted().join(' ');
    ways.set(way, ways.get(way) ?? as);
    return ways.get(way) !== as;
  };
  prober.setTargets([{ ...TARGET, as }, other]);
  await clock.advance(3000);
  expect(result()).toMatchObject({ alive: true, lossPercent: 0 });
  const before = network.open;
  expect(before).toHaveLength(2);
  as = '10.72.0.1';
  prober.setTargets([{ ...TARGET, as }, other]);
  expect(result()).toBeUndefined();
  await clock.advance(3000);
  expect(result()).toMatchObject({ alive: true, rttMs: 2, lossPercent: 0, mtu: 1420 });
  expect(network.open).toEqual([...before, expect.stringMatching(/^10\.70\.0\.1:/)]);
  prober.setTargets([{ ...TARGET, as }]);
  await clock.advance(0);
  expect(network.open).toHaveLength(2);
});

test('an answer from elsewhere, or to another process, is none', async () => {
  prober.setTargets([{ ...TARGET, address: '100.64.9.9' }]);
  const liar = await network.bind('100.64.9.9', 7481, (bytes, from) => {
    const answer = Uint8Array.from(bytes.subarray(0, 20));
    answer[4] = 2;
    answer[10] = (answer[10] ?? 0) ^ 1;
    void liar.send(answer, from.address, from.port);
  });
  await clock.advance(10_000);
  expect(result()?.alive).toBe(false);
  liar.close();
});

test('a responder sends no more than came, and not at any rate', async () => {
  let bytes = 0;
  let count = 0;
  const flood = await network.bind('100.64.3.3', 0, (answer) => {
    bytes += answer.length;
    count += 1;
  });
  const request = Buffer.alloc(20);
  request.write('TBP1');
  request[4] = 1;
  request.writeUInt16BE(20, 6);
  for (let i = 0; i < 1000; i++) await flood.send(request, THERE, 7481);
  await flood.send(Buffer.from('hello'), THERE, 7481);
  await clock.advance(1000);
  expect(count).toBeGreaterThan(100);
  expect(count).toBeLessThan(200);
  expect(bytes).toBe(count * 20);
  flood.close();
});
