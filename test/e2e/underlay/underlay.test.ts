import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Program } from '../../../lab/demo/program.ts';
import { GATEWAY_CONFIG_MAP, PRESHARED_SECRET } from '../../../src/api/own-network.ts';
import { ANNOTATION_ROTATE } from '../../../src/api/names.ts';
import { corePath } from '../../support/e2e/api.ts';
import type { DatagramsReport } from './support/datagrams.ts';
import { mbits, resumedAfter, type Datagrams, type Interval, type PodPlace } from './support/pod-place.ts';
import type { City } from '../../support/e2e/peers.ts';
import { SLEEP } from '../../support/e2e/pods.ts';
import { Underlay } from './support/underlay.ts';
import { during, until } from '../../support/e2e/until.ts';
import { longOnly } from '../../support/long.ts';

const NAMESPACE = 'under';
const SYSTEM = 'tributary-system';
const CITIES: readonly City[] = ['rome', 'milan'];
/** Deadlines are multiplied by this, because other work may run on the same two processors. */
const UNDER_LOAD = 10;
const LEASE_MS = 2_000;

let underlay: Underlay;
/** In rome. */
let home: PodPlace;
/** Pods of rome, on milan-1 and on milan-2. */
let one: PodPlace;
let two: PodPlace;
const echoes: Program[] = [];

beforeAll(async () => {
  underlay = await Underlay.open(NAMESPACE);
  home = await underlay.atHome('home', SLEEP);
  one = await underlay.offloaded('one', SLEEP, 'milan-1');
  two = await underlay.offloaded('two', SLEEP, 'milan-2');
  for (const pod of [home, one, two]) {
    echoes.push(await pod.echo());
    await underlay.service(pod.name);
  }
  await underlay.makeActive('milan-2');
}, 500_000);

afterAll(async () => {
  await Promise.all(echoes.map(async (echo) => echo.stop()));
  await underlay?.close();
}, 200_000);

/** The effect of `act` on datagrams from one pod to the other, from its start until they are answered again. */
async function disturbed(
  what: string,
  [from, to]: readonly [PodPlace, PodPlace],
  act: (flow: Datagrams) => Promise<void>,
): Promise<DatagramsReport> {
  const flow = from.send(to.address);
  try {
    await answering(flow);
    await flow.mark();
    await act(flow);
    await answering(flow);
    const report = await flow.look();
    const { gapMs, sent, answered, pauseMs } = report;
    console.info(
      `${what}: gap ${Math.round(gapMs)} ms, ${sent - answered} of ${sent} lost (pause of the sender ${Math.round(pauseMs)} ms)`,
    );
    return report;
  } finally {
    await flow.stop();
  }
}

/** Half a second of answers. */
async function answering(flow: Datagrams): Promise<void> {
  let good = 0;
  await until(
    'datagrams are answered',
    async () => {
      good = (await flow.look()).silentMs < 200 ? good + 1 : 0;
      return good === 5;
    },
    { seen: async () => flow.look() },
  );
}

const wait = async (seconds: number): Promise<void> => during(seconds, async () => Promise.resolve());

async function seenFrom(from: PodPlace, address: string): Promise<string> {
  const flow = from.send(address);
  try {
    await answering(flow);
    return (await flow.look()).seenAs;
  } finally {
    await flow.stop();
  }
}

test('distinct ranges stay as they are where they may: pods are seen under their own addresses, from both nodes', async () => {
  for (const city of CITIES) {
    const { status } = await underlay.tunnel(city);
    expect(status?.views?.length).toBeGreaterThan(1);
    for (const { prefix, as, use } of status?.views ?? []) if (use === 'Pods') expect(as).toBe(prefix);
  }
  for (const remote of [one, two]) {
    expect(await seenFrom(home, remote.address)).toBe(home.address);
    expect(await seenFrom(remote, home.address)).toBe(remote.address);
    expect(await seenFrom(home, await underlay.serviceAddress('rome', remote.name))).toBe(home.address);
    expect(await seenFrom(remote, await underlay.serviceAddress('milan', 'home'))).toBe(remote.address);
  }
});

describe('a gateway goes away', () => {
  test('its node is cut off: the other one takes over, and it is fenced when it is back', async () => {
    const { gapMs } = await disturbed('loss of the active node', [one, home], async () => {
      await underlay.setCable('milan-2', 'down');
      await until('milan-1 leads', async () => (await underlay.gateway()) === 'milan-1');
    });
    expect(gapMs).toBeGreaterThan(100);
    expect(gapMs).toBeLessThan(LEASE_MS * UNDER_LOAD);
    const back = await disturbed('its return', [one, home], async () => {
      await underlay.setCable('milan-2', 'up');
      await underlay.untilFenced('milan-2');
      await during(5, async () => expect(await underlay.gateway()).toBe('milan-1'));
    });
    expect(back.gapMs).toBeLessThan(LEASE_MS);
    expect(await seenFrom(two, home.address)).toBe(two.address);
  });

  test('its program hangs: the kernel goes on until another one leads', async () => {
    await underlay.gatewaysReady();
    const { gapMs } = await disturbed('a hanging gateway', [one, home], async () =>
      underlay.makeActive('milan-2'),
    );
    expect(gapMs).toBeLessThan(LEASE_MS * UNDER_LOAD);
  });

  test('its pod is deleted', async () => {
    await underlay.gatewaysReady();
    const before = await underlay.gateway();
    const pod = await underlay.gatewayPod(before);
    const { gapMs } = await disturbed('a deleted gateway pod', [one, home], async () => {
      await underlay.removePod(pod);
      await until(
        'it is gone',
        async () =>
          (await underlay.peers.milan.pod(pod.metadata.namespace ?? '', pod.metadata.name)) === undefined,
        { seconds: 60 },
      );
      await underlay.gatewaysReady();
      await wait(3);
    });
    console.info(`before it ${before} led, afterwards ${await underlay.gateway()}`);
    expect(gapMs).toBeLessThan(LEASE_MS * UNDER_LOAD);
  });
});

describe('endpoints move', () => {
  // Packets that come in from milan before any goes out, because the table was flushed a moment ago, must leave no connection
  // entry: NAT needs the address and port that it would hold, and milan's further packets would keep it for good.
  /** For packets to the router itself. */
  const DEAF = 'chain input { type filter hook input priority filter; meta l4proto udp drop; }';

  afterAll(async () => {
    await underlay.setRouter('');
    await underlay.peers.setNetwork('open');
    await underlay.forget();
    for (const city of CITIES) await underlay.untilReady(city);
  });

  test('rome has another address, and nothing arrives at the old one', async () => {
    const old = underlay.node('rome-1').address;
    const { gapMs } = await disturbed('another address of rome', [two, home], async () =>
      underlay.moveRome(),
    );
    expect(gapMs).toBeLessThan(2_000 * UNDER_LOAD);
    const back = await disturbed('the old one again', [two, home], async () => {
      await underlay.setRouter('');
      await until('milan has learnt it', async () => (await underlay.endpointOf('milan')) === `${old}:51820`);
    });
    expect(back.gapMs).toBeLessThan(2_000 * UNDER_LOAD);
  });

  test('milan is behind NAT that nobody gets in by, and the mapping changes', async () => {
    const { router } = underlay.segment('rome');
    const behind = await disturbed('NAT in between', [home, two], async () => {
      await underlay.peers.setNetwork('nat');
      await underlay.setRouter(DEAF);
      await until('rome has learnt it', async () =>
        (await underlay.endpointOf('rome')).startsWith(`${router}:`),
      );
    });
    expect(behind.gapMs).toBeLessThan(2_000 * UNDER_LOAD);
    const forgotten = await disturbed('the router forgets', [home, two], async () => {
      await underlay.forget();
      await wait(2);
    });
    expect(forgotten.gapMs).toBeLessThan(2_000 * UNDER_LOAD);
    for (const port of [40_001, 40_002]) {
      const { gapMs } = await disturbed(`mapped to port ${port}`, [home, two], async () => {
        await underlay.setRouter(
          `${DEAF}\nchain source { type nat hook postrouting priority srcnat - 1; ip daddr ${underlay.node('rome-1').address} udp sport 51820 snat ip to ${router}:${port}; }`,
        );
        await until(
          'rome has learnt it',
          async () => (await underlay.endpointOf('rome')) === `${router}:${port}`,
        );
      });
      expect(gapMs).toBeLessThan(2_000 * UNDER_LOAD);
    }
    expect(await underlay.peers.dropped()).toBeGreaterThan(0);
    expect(await seenFrom(two, home.address)).toBe(two.address);
  });
});

// How soon transfers go on depends on the whole machine. test/integration/network-mtu.test.ts tries the same without clusters, in each run.
const describeLong = longOnly('ways in which the path of two real clusters becomes narrower', describe);
describeLong('the path becomes narrower', () => {
  const NARROW = 1280;
  const SILENT = `chain forward { type filter hook forward priority filter; meta l4proto udp meta length > ${NARROW} counter drop; }`;
  /** MTU of the tunnel: 1500 less 60 is more than the link takes. */
  const WHOLE = 1420;
  const mtuOf = async (city: City): Promise<number> =>
    (await underlay.tunnel(city)).status?.connection?.mtu ?? 0;

  beforeAll(async () => underlay.withoutBatches());
  afterAll(async () => {
    await underlay.setRouterMtu(1500);
    await underlay.setRouter('');
  });

  const ways = [
    {
      name: 'the router says so',
      narrow: async () => underlay.setRouterMtu(NARROW),
      lost: async () => undefined,
      widen: async () => {
        await underlay.setRouterMtu(1500);
        // The kernel believes it for ten minutes (mtu_expires).
        await underlay.forgetPathMtu();
      },
    },
    {
      name: 'larger packets are lost in silence',
      narrow: async () => underlay.setRouter(SILENT),
      lost: async () => underlay.counted(),
      widen: async () => underlay.setRouter(''),
    },
  ];
  test.each(ways)('$name', async ({ name, narrow, lost, widen }) => {
    for (const city of CITIES) {
      await until(`${city} sees a whole path`, async () => (await mtuOf(city)) === WHOLE, { seconds: 60 });
    }
    // Without this, the pods would send small packets from the start, because of what they have learnt before.
    for (const pod of [home, one, two]) await pod.run(['ip', 'route', 'flush', 'cache']);
    const before = performance.now();
    const [there, back] = [home.iperf(one, 20, 5201), two.iperf(home, 20, 5202)];
    await wait(5);
    const at = (performance.now() - before) / 1000;
    await narrow();
    const began = performance.now();
    const known: string[] = [];
    for (const city of CITIES) {
      await until(`${city} knows`, async () => (await mtuOf(city)) < WHOLE && (await mtuOf(city)) > 0);
      known.push(`${city} ${await mtuOf(city)} after ${shown(began)}`);
    }
    for (const [way, transfer] of [
      ['rome to milan', there],
      ['milan to rome', back],
    ] as const) {
      const intervals: Interval[] = await transfer();
      const resumed = resumedAfter(intervals, at);
      console.info(
        `${name}, ${way}: Mbit/s ${mbits(intervals)}; narrow at ${at.toFixed(1)} s, goes on after ${resumed} s`,
      );
      expect(resumed).toBeLessThan(10);
    }
    for (const city of CITIES) {
      expect(await mtuOf(city)).toBeGreaterThanOrEqual(NARROW - 60 - 2 * 16);
      expect(await mtuOf(city)).toBeLessThanOrEqual(NARROW - 60);
    }
    expect(await lost()).not.toBe(0);
    const fresh = await home.iperf(one, 2, 5203)();
    expect(Math.max(...fresh.map(({ bytes }) => bytes))).toBeGreaterThan(100_000);
    await widen();
    const widened = performance.now();
    for (const city of CITIES) {
      await until(`${city} sees a whole path again`, async () => (await mtuOf(city)) === WHOLE, {
        seconds: 150,
      });
      known.push(`${city} ${WHOLE} again after ${shown(widened)}`);
    }
    console.info(`${name}: ${known.join(', ')}`);
  });
});

const shown = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;

test('keys are exchanged anew on request; each pair of clusters has a preshared one', async () => {
  const { peers } = underlay;
  const preshared = await Promise.all(
    CITIES.map(async (city) => {
      const secret = await peers.api(city).get(corePath(SYSTEM, 'secrets', PRESHARED_SECRET));
      return secret?.data?.[peers.id[city === 'rome' ? 'milan' : 'rome']];
    }),
  );
  expect(preshared[0]).toMatch(/.{40}/);
  expect(preshared[1]).toBe(preshared[0]);
  const used = `kubectl -n tributary-network exec deployment/tributary-gateway -c wireguard -- wg show tributary preshared-keys`;
  expect(await peers.ask(used)).not.toMatch(/none|^$/);
  const keyOf = async (): Promise<string> => (await underlay.tunnel('milan')).spec.peer?.publicKey ?? '';
  for (const [from, to] of [
    [one, home],
    [home, two],
  ] as const) {
    const old = await keyOf();
    await disturbed(`a new key, ${from.name} to ${to.name}`, [from, to], async () => {
      const path = corePath(SYSTEM, 'configmaps', GATEWAY_CONFIG_MAP);
      await peers.rome.patch(path, { metadata: { annotations: { [ANNOTATION_ROTATE]: from.name } } });
      await until('milan has the new key', async () => (await keyOf()) !== old);
      await wait(3);
    });
    await underlay.untilReady('milan');
  }
});
