import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { killIn } from '../../../lab/node-processes.ts';
import type { Node } from '../../../lab/node.ts';
import { translate } from '../../../src/network/views.ts';
import { App, PORT } from './support/app.ts';
import { difference, ofPeer, ours, snapshot, state } from './support/host.ts';
import { Load, refusals, WatchedPorts } from './support/load.ts';
import {
  CITIES,
  conditionOf,
  endpoints,
  OneNetwork,
  PROVIDERS,
  SHOP,
  type City,
  type Provider,
} from './support/network.ts';
import { FENCED, Fenced, OPEN } from './support/fenced.ts';
import type { Place } from './support/pods.ts';
import { until } from '../../support/e2e/until.ts';

const WEB = ['web-rome', 'web-milan', 'web-turin'] as const;
const BY_PROVIDER = { milan: 'web-milan', turin: 'web-turin' } as const;

let network: OneNetwork;
let app: App;

beforeAll(async () => {
  network = await OneNetwork.open();
  app = await App.start(network);
}, 500_000);

afterAll(async () => network?.close(), 60_000);

const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(1);

/** The address at which `city` sees an address of `peer`. */
async function seen(city: City, peer: City, address: string): Promise<string> {
  const views = (await network.tunnel(city, peer))?.status?.views ?? [];
  const as = translate(views, address);
  if (as === undefined) throw new Error(`${city} has no view of ${address} of ${peer}`);
  return as;
}

/** The address at which a provider sees, through rome, an address of the other provider. */
const seenThroughRome = async (provider: Provider, other: Provider, address: string): Promise<string> =>
  seen(provider, 'rome', await seen('rome', other, address));

test('all three use the same addresses, and rome sees two clusters that differ', async () => {
  const views = await Promise.all(PROVIDERS.map(async (provider) => network.view('rome', provider, 'Pods')));
  expect(new Set([...views, '10.244.0.0/16']).size).toBe(3);
});

test('the other node of rome and of milan answers the gateway through VXLAN', async () => {
  for (const city of ['rome', 'milan'] as const) {
    const answers = async (): Promise<boolean> => (await network.silentNodes(city))?.length === 0;
    await until(`all nodes of ${city} answer`, answers, { seen: async () => network.silentNodes(city) });
  }
});

test.each(PROVIDERS)('pods of both nodes of rome reach one in %s as kubectl shows it', async (provider) => {
  const name = BY_PROVIDER[provider];
  const [row = ''] = (await network.ask(`kubectl -n ${SHOP} get pod ${name} -o wide --no-headers`)).split(
    '\n',
  );
  expect(row).toContain(` ${provider} `);
  const shown = /\b(?:\d+\.){3}\d+\b/.exec(row)?.[0] ?? '';
  for (const from of ['only', 'web-rome'] as const) {
    const source = await seen(provider, 'rome', app.home(from));
    const heard = await app.untilAnswers(app.place(from), `${shown}:${PORT[name]}`, /answers/);
    expect(heard).toBe(`${name} answers ${source}`);
  }
});

test.each(PROVIDERS)(
  'a pod in %s reaches one of rome by the address that EndpointSlices show',
  async (provider) => {
    const from = BY_PROVIDER[provider];
    const wanted = await seen(provider, 'rome', app.home('only'));
    const shown = await until(`endpoints of stock in ${provider}`, async () => {
      const found = await endpoints(network.api(provider), SHOP, 'stock');
      return found.length > 0 && found;
    });
    expect(shown).toEqual([wanted]);
    const heard = await app.untilAnswers(app.place(from), `${wanted}:${PORT.only}`, /answers/);
    // The source is what `kubectl get pod -o wide` shows in rome.
    expect(heard).toBe(`only answers ${app.home(from)}`);
  },
);

test('one Service, its port by name, is all three behind one address, from everywhere', async () => {
  for (const from of ['only', ...WEB] as const) await app.untilAnswering(app.place(from), 'web.shop', WEB);
});

test('a session stays where it is', async () => {
  for (const from of WEB) expect((await app.answering(app.place(from), 'sticky.shop', 12)).size).toBe(1);
});

test.each(['only', 'web-milan', 'web-turin'] as const)('names of Services from %s', async (from) => {
  const place = app.place(from);
  for (const name of ['stock', `stock.${SHOP}`, `stock.${SHOP}.svc.cluster.local`]) {
    await app.untilAnswers(place, name, /^only answers/);
  }
  const stateful = `db-0.db.${SHOP}.svc.cluster.local`;
  await app.untilAnswers(place, `${stateful}:${PORT['db-0']}`, /^db-0 answers/);
  const expected = {
    only: app.home('db-0'),
    'web-milan': app.place('db-0').address,
    'web-turin': await seen('turin', 'rome', app.home('db-0')),
  }[from];
  await until(`db is at ${expected}`, async () => {
    const { stdout } = await place.run(`nslookup db.${SHOP}.svc.cluster.local | sed 1,2d`);
    return stdout.includes(expected);
  });
});

test('endpoints leave while the tunnel is down, and come back', async () => {
  const before = await endpoints(network.api('rome'), SHOP, 'web');
  expect(before).toHaveLength(3);
  const began = performance.now();
  await network.cut('turin');
  const down = await network.untilTunnel('rome', 'turin', 'False');
  const { reason, message } = conditionOf(down, 'Ready') ?? {};
  console.info(`cut: Ready=False after ${seconds(began)} s, ${reason}: ${message}`);
  const isUnavailable = async (): Promise<boolean> =>
    conditionOf(await network.virtualNode('turin'), 'NetworkUnavailable')?.status === 'True';
  await until('turin has NetworkUnavailable=True', isUnavailable);
  await until('the endpoint has left', async () => {
    const [rome, milan] = await Promise.all(
      (['rome', 'milan'] as const).map(async (city) => endpoints(network.api(city), SHOP, 'web')),
    );
    return rome?.length === 2 && milan?.length === 2;
  });
  console.info(`cut: no endpoint after ${seconds(began)} s`);
  for (const from of ['only', 'web-milan'] as const) {
    await app.untilAnswering(app.place(from), 'web.shop', ['web-rome', 'web-milan']);
  }
  const again = performance.now();
  await network.cut(undefined);
  await network.untilTunnel('rome', 'turin', 'True');
  await until('turin has its network', async () => !(await isUnavailable()));
  for (const from of WEB) await app.untilAnswering(app.place(from), 'web.shop', WEB);
  expect(await endpoints(network.api('rome'), SHOP, 'web')).toEqual(before);
  console.info(`let through again: all are back after ${seconds(again)} s`);
});

test('pods of rome in milan and turin meet through rome', async () => {
  for (const [here, there] of [
    ['milan', 'turin'],
    ['turin', 'milan'],
  ] as const) {
    const [from, to] = [BY_PROVIDER[here], BY_PROVIDER[there]];
    const host = await seenThroughRome(here, there, app.place(to).address);
    const source = await seenThroughRome(there, here, app.place(from).address);
    const heard = await app.untilAnswers(app.place(from), `${host}:${PORT[to]}`, /answers/);
    expect(heard).toBe(`${to} answers ${source}`);
  }
});

/** Fetches one after the other; none may be answered. */
async function expectSilence(attempts: readonly (readonly [from: Place, host: string])[]): Promise<void> {
  const heard = await Promise.all(
    attempts.map(async ([from, host]) => [from.name, from.node.name, host, await from.fetch(host, '/')]),
  );
  expect(heard.filter(([, , , answer]) => answer !== '')).toEqual([]);
}

test('nothing else passes between milan and turin', async () => {
  const [guest, own] = [app.place('web-turin'), app.place('own-turin')];
  await Promise.all([guest.count(), own.count()]);
  const before = await refusals(network);
  const guestSeen = await seenThroughRome('milan', 'turin', guest.address);
  const ownSeen = await seenThroughRome('milan', 'turin', own.address);
  await expectSilence([
    [app.place('own-milan'), `${guestSeen}:${PORT['web-turin']}`],
    [app.place('own-milan'), `${ownSeen}:${PORT.own}`],
    [app.place('web-milan'), `${ownSeen}:${PORT.own}`],
    // In turin, rome reaches only the pods that turin runs for it.
    [app.place('only'), `${await seen('rome', 'turin', own.address)}:${PORT.own}`],
  ]);
  expect(await refusals(network)).toBeGreaterThan(before);
  expect([await guest.counted(), await own.counted()]).toEqual([0, 0]);
  // This proves that the counter counts.
  await app.untilAnswers(app.place('own-turin'), `${guest.address}:${PORT['web-turin']}`, /answers/);
  await app.untilAnswers(guest, `${own.address}:${PORT.own}`, /answers/);
  expect(await guest.counted()).toBeGreaterThan(0);
  expect(await own.counted()).toBeGreaterThan(0);
});

test('neither pods of rome, unasked, nor its nodes are reached by own pods; Services are no part of the network', async () => {
  const only = app.place('only');
  await only.count();
  const rome = network.lab.cluster('rome').nodes;
  const watched = await WatchedPorts.on(rome);
  const before = await refusals(network);
  const attempts: [Place, string][] = [];
  for (const provider of PROVIDERS) {
    const own = app.place(`own-${provider}`);
    attempts.push([own, `${await seen(provider, 'rome', app.home('only'))}:${PORT.only}`]);
    for (const external of await network.externals('rome')) {
      for (const port of WatchedPorts.PORTS) {
        const host = `${await seen(provider, 'rome', external)}:${port}`;
        attempts.push([own, host], [app.place(BY_PROVIDER[provider]), host]);
      }
    }
  }
  await expectSilence(attempts);
  expect(await refusals(network)).toBeGreaterThan(before);
  expect(await only.counted()).toBe(0);
  expect(await watched.counted()).toBe(0);
  await watched.remove();
  await app.untilAnswers(app.place('web-rome'), `${only.address}:${PORT.only}`, /answers/);
  expect(await only.counted()).toBeGreaterThan(0);
  for (const [city, peer] of [
    ['rome', 'milan'],
    ['milan', 'rome'],
    ['turin', 'rome'],
  ] as const) {
    const { spec } = (await network.tunnel(city, peer)) ?? {};
    const exported = [...(spec?.peer?.pods ?? []), ...(spec?.peer?.external ?? [])];
    expect(
      translate(
        exported.map((prefix) => ({ prefix, as: prefix })),
        '10.96.0.1',
      ),
    ).toBeUndefined();
  }
});

test('turin opens itself to rome, or closes itself', async () => {
  const own = `${await seen('rome', 'turin', app.place('own-turin').address)}:${PORT.own}`;
  const guest = `${app.home('web-turin')}:${PORT['web-turin']}`;
  const from = app.place('only');
  expect(await from.fetch(own)).toBe('');
  await network.setAccess('turin', 'rome', 'AllPods');
  await app.untilAnswers(from, own, /^own answers/);
  await app.untilAnswers(from, guest, /^web-turin answers/);
  await network.setAccess('turin', 'rome', 'None');
  await until('turin answers no pod of rome', async () => {
    const heard = await Promise.all([from.fetch(own), from.fetch(guest)]);
    return heard.every((answer) => answer === '');
  });
  await network.setAccess('turin', 'rome', null);
  await app.untilAnswers(from, guest, /^web-turin answers/);
  expect(await from.fetch(own)).toBe('');
});

const startLoad = async (gateway: Node): Promise<Load> =>
  Load.start(app.place('web-rome'), app.place('web-milan'), app.home('web-milan'), [
    gateway,
    await network.gateway('milan'),
  ]);

/** A gap that we cause is there every time; one that other programs cause is not. */
const ATTEMPTS = 3;

test('kill -9 of the gateway during a transfer: no gap and no loss that is not there without it', async () => {
  const ready = async (): Promise<unknown> => conditionOf(await network.tunnel('rome', 'milan'), 'Ready');
  const gateway = await network.gateway('rome');
  const former = await ready();
  const excesses: { gapMs: number; lost: number }[] = [];
  const isFine = (): boolean => excesses.some(({ gapMs, lost }) => gapMs <= 50 && lost <= 0);
  await using load = await startLoad(gateway);
  while (!isFine() && excesses.length < ATTEMPTS) {
    const calm = await load.probe();
    const killed = await load.probe(() => expect(killIn(gateway.netns, /main\.js run gateway/)).toBe(1));
    excesses.push({ gapMs: killed.gapMs - calm.gapMs, lost: killed.lost - calm.lost });
    console.info(`kill -9 of the gateway: ${JSON.stringify({ calm, killed })}; iperf3: ${load.rates()}`);
    await network.untilReady('rome');
    expect(await ready()).toEqual(former);
  }
  if (!isFine()) throw new Error(`beyond the undisturbed runs: ${JSON.stringify(excesses)}`);
});

test('kill -9 of wireguard-go: packets are back', async () => {
  const gateway = await network.gateway('rome');
  await using load = await startLoad(gateway);
  const killed = await load.probe(() => expect(killIn(gateway.netns, /wireguard-go -f/)).toBeGreaterThan(0));
  console.info(`kill -9 of wireguard-go: ${JSON.stringify(killed)}`);
  expect(killed.lost).toBeGreaterThan(0);
  await network.untilTunnel('rome', 'milan', 'True');
  await app.untilAnswers(app.place('web-rome'), `${app.home('web-milan')}:${PORT['web-milan']}`, /answers/);
});

/** Removes something from a host, and waits until our lines are as before. */
async function expectRepair(node: Node, what: string, command: string): Promise<void> {
  const before = await state(node);
  await node.exec(['sh', '-c', command]);
  const began = performance.now();
  await until(
    `${node.name}: ${what} is back`,
    async () => difference(before, await state(node)).length === 0,
    { seen: async () => difference(before, await state(node)) },
  );
  console.info(`${node.name}: ${what} back after ${seconds(began)} s`);
}

test('what is removed by hand comes back', async () => {
  const gateway = await network.gateway('rome');
  const other = network.lab.cluster('rome').nodes.find(({ name }) => name !== gateway.name) ?? gateway;
  const view = await network.view('rome', 'milan', 'Pods');
  const things: [Node, string, string][] = [
    [gateway, 'the table of the gateway', 'nft delete table inet tributary_gateway'],
    [gateway, 'the route into the tunnel', `ip route del ${view} dev tributary`],
    [gateway, 'the rule of the return path', 'ip rule del pref 7480'],
    [gateway, 'the VXLAN link', 'ip link del tributary-vx'],
    [other, 'the VXLAN link', 'ip link del tributary-vx'],
    [other, 'the table of the node', 'nft delete table inet tributary_node'],
    [other, 'the route to the gateway', `ip route del ${view} dev tributary-vx`],
  ];
  for (const [node, what, command] of things) await expectRepair(node, what, command);
  for (const from of ['only', 'web-rome'] as const) {
    await app.untilAnswers(app.place(from), `${app.home('web-milan')}:${PORT['web-milan']}`, /answers/);
  }
});

/** The address at which a pod in `from` reaches one in `city`. */
async function addressIn(to: Place, city: City, from: City): Promise<string> {
  if (from === city) return to.address;
  if (from === 'rome' || city === 'rome') return seen(from, city, to.address);
  return seenThroughRome(from, city, to.address);
}

test('default-deny with three exceptions: the same twelve connections at home and over three clusters', async () => {
  const fenced = await Fenced.create(network);
  await fenced.place({ front: 'rome', api: 'rome', db: 'rome', probe: 'rome' });
  await fenced.untilAsSaid('all pods at home', addressIn);
  const namespaces = [SHOP, FENCED];
  await network.ask(
    `kubectl patch acceptancepolicy test --type merge -p '${JSON.stringify({ spec: { namespaces } })}'`,
  );
  await fenced.place({ front: 'milan', api: 'turin', db: 'rome', probe: 'rome' });
  await fenced.untilAsSaid('front in milan, api in turin', addressIn);
  await fenced.place({ front: 'rome', api: 'milan', db: 'milan', probe: 'rome' });
  await fenced.untilAsSaid('api and db in milan', addressIn);

  // The enforcer of the provider ends, and what it has put in force stays.
  await fenced.killEnforcer('api');
  expect(await fenced.open(addressIn)).toEqual(OPEN);
  // A pod that is made after that is not covered by the provider, but by home on its way to and from home.
  await fenced.renew('api');
  const open = await fenced.open(addressIn);
  console.info(`without the enforcer of milan, api made anew: ${open.join(', ')}`);
  expect(open).toContain('probe api');
  expect(open).not.toContain('api front');
  await fenced.remove();
});

test('un-peering takes a peer off all hosts, and clean-up leaves them as they were', async () => {
  const views = (await network.tunnel('rome', 'turin'))?.status?.views?.map(({ as }) => as) ?? [];
  const turin = network.id.turin;
  const rome = network.lab.cluster('rome').nodes;
  for (const node of rome) expect(await ofPeer(node, turin, views)).not.toEqual([]);
  await app.remove();
  await network.unpeer('turin');
  await until('no Tunnel between rome and turin', async () => {
    const both = await Promise.all([network.tunnel('rome', 'turin'), network.tunnel('turin', 'rome')]);
    return both.every((tunnel) => tunnel === undefined);
  });
  for (const node of rome) {
    await until(
      `${node.name}: nothing of turin`,
      async () => (await ofPeer(node, turin, views)).length === 0,
      {
        seen: async () => ofPeer(node, turin, views),
      },
    );
  }
  await network.untilTunnel('rome', 'milan', 'True');
  await network.unpeer('milan');
  await Promise.all(
    CITIES.map(async (city) => {
      for (const role of ['gateway', 'node'] as const) await network.remove(city, role);
      await network.cleanUp(city);
      for (const role of ['cluster', 'crds'] as const) await network.remove(city, role);
    }),
  );
  for (const node of network.nodes) {
    await until(`${node.name}: nothing of ours`, async () => (await ours(node)).length === 0, {
      seconds: 90,
      seen: async () => ours(node),
    });
    const before = network.before[node.name] ?? [];
    await until(
      `${node.name}: as before`,
      async () => difference(before, await snapshot(node)).length === 0,
      { seen: async () => difference(before, await snapshot(node)) },
    );
  }
}, 300_000);
