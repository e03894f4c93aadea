import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Tunnel, tunnels } from '../../../../src/api/tunnel.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Reports } from '../../../../src/network/gateway/reports.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const PEER = 'p'.repeat(26);

let clock: FakeClock;
let api: FakeApi;
let client: HttpClient;
let cache: Informer<Tunnel>;
let reports: Reports;
let lifecycle: Lifecycle;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [tunnels] });
  client = api.client();
  const spec = { clusterID: PEER, access: 'OffloadedPods', transit: 'OffloadedPods' } as const;
  await clock.during('made', client.create(tunnels, { metadata: { name: PEER }, spec }));
  const common = { client, clock, log: silentLogger };
  cache = new Informer<Tunnel>({ ...common, type: tunnels, list: {} });
  reports = new Reports({ ...common, events: { event: () => undefined }, tunnels: cache });
  lifecycle = new Lifecycle([cache, reports.controller], { clock, log: silentLogger, stopDeadlineMs: 1_000 });
  await clock.during('started', lifecycle.start(new AbortController().signal));
});

afterEach(async () => {
  await clock.during('stopped', lifecycle.stop());
  await client.close();
  await api.stop();
});

const writes = (): number => api.log.filter((line) => /^PATCH.*tunnels/.test(line)).length;
const shown = (): number | undefined => cache.get(PEER)?.status?.connection?.mtu;

/** A look at the peer, of which another MTU was measured. */
function look(mtu: number): void {
  reports.observe({
    now: clock.now(),
    gateway: 'one',
    linkMtu: 1420,
    tunnels: [...cache.list()],
    exported: [],
    dialable: true,
    refused: new Map(),
    probes: new Map([[PEER, { alive: true, since: 0, lossPercent: 0, rttMs: 1, mtu }]]),
    endpointOf: () => '192.0.2.1:51820',
    stateOf: () => undefined,
    receivedMs: () => undefined,
  });
}

test('a peer of which each look tells something else is written further and further apart, and as it is in the end', async () => {
  for (let round = 0; round < 20; round++) {
    look(1400 - round);
    await clock.advance(1_000);
    expect(shown()).toBe(1400 - round);
  }
  const before = writes();
  for (let round = 0; round < 600; round++) {
    look(1300 + (round % 2));
    await clock.advance(1_000);
  }
  expect(writes() - before).toBeLessThan(80);
  look(1234);
  await clock.until('the last one is shown', () => shown() === 1234, 60_000);
});
