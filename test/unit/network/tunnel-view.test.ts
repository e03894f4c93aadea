import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EXPECTED_MS, TunnelView } from '../../../src/network/tunnel-view.ts';
import { tunnels } from '../../../src/api/tunnel.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const PEER = 'a'.repeat(26);
const KEY = 'tunnels.tributary.dev';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let view: TunnelView;
/** While time passes. */
const until = async (what: string, condition: () => boolean): Promise<void> =>
  clock.until(what, condition, 200_000);

function makeView(): TunnelView {
  const caches = new Caches({ client, clock, log: silentLogger });
  const own = caches.of(tunnels, { list: { fieldSelector: `metadata.name=${PEER}` } });
  return new TunnelView({ home: client, provider: PEER, tunnels: own, clock, log: silentLogger });
}

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [tunnels] });
  client = server.client();
  view = makeView();
});
afterEach(async () => {
  await view?.stop();
  await client?.close();
  await server.stop();
});

const start = async (): Promise<void> =>
  clock.during('the view starts', view.start(new AbortController().signal));

const PEER_SAYS = { publicKey: 'k', endpoints: [], pods: ['10.0.0.0/16'], external: [] };
function seed(parts: { peer?: object; ready?: string; name?: string; spec?: object } = {}): void {
  const { peer = PEER_SAYS, ready, name = PEER, spec } = parts;
  server.seed(tunnels, {
    metadata: { name },
    spec: {
      clusterID: name,
      access: 'OffloadedPods',
      transit: 'OffloadedPods',
      ...(Object.keys(peer).length > 0 && { peer }),
      seenAs: [
        { prefix: '10.1.0.0/16', as: '100.99.0.0/16' },
        { prefix: '100.80.0.0/16', as: '100.77.0.0/16' },
      ],
      ...spec,
    },
    status: {
      views: [
        { use: 'Pods', prefix: '10.0.0.0/16', as: '100.64.0.0/16' },
        { use: 'External', prefix: '10.70.0.0/20', as: '100.65.0.0/20' },
      ],
      ...(ready !== undefined && { conditions: [condition(ready)] }),
    },
  });
}
const condition = (status: string): object => ({
  type: 'Ready',
  status,
  reason: status === 'True' ? 'AsExpected' : 'NoAnswer',
  message: 'm',
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
/** Of a peer that has told nothing for so long that nothing is expected. */
function seedSilent(parts: { spec?: object } = {}): void {
  seed({ peer: {}, ...parts });
  clock.jump(EXPECTED_MS);
}
function forgetPeer(): void {
  const tunnel = server.storage.get(KEY, PEER);
  if (tunnel === undefined) throw new Error('there is none');
  const { peer: _peer, ...spec } = tunnel.spec as { peer?: object };
  server.storage.update(KEY, { ...tunnel, spec });
}
function change(status: object): void {
  const tunnel = server.storage.get(KEY, PEER);
  if (tunnel === undefined) throw new Error('there is none');
  server.storage.update(KEY, { ...tunnel, status: { ...(tunnel.status as object), ...status } });
}

test('known when it has started: addresses of both directions', async () => {
  seed({ ready: 'True' });
  await start();
  expect(view.state).toEqual({ kind: 'Up' });
  expect(view.homeViewOf('10.0.3.4')).toBe('100.64.3.4');
  expect(view.homeViewOf('10.9.0.1')).toBeUndefined();
  expect(view.foreignViewOf('10.1.3.4')).toBe('100.99.3.4');
  expect(view.foreignViewOf('100.80.3.4')).toBe('100.77.3.4');
  expect(view.foreignViewOf('192.0.2.1')).toBeUndefined();
  expect(view.isTheirs('100.64.3.4')).toBe(true);
  expect(view.isTheirs('100.65.0.4')).toBe(false);
  expect(view.isTheirs('10.1.3.4')).toBe(false);
  expect(view.nativeOf('100.64.3.4')).toBe('10.0.3.4');
  expect(view.nativeOf('100.65.0.4')).toBeUndefined();
});

describe('in the first moments of a Tunnel', () => {
  const silent = { kind: 'Down', reason: 'PeerHasNotTold' };

  test('the network of its peer is waited for: nobody takes it for none, and it comes up', async () => {
    seed({ peer: {} });
    await start();
    const seen = new Set<string>();
    view.onChange(() => seen.add(view.state.kind));
    expect(view.state).toMatchObject(silent);
    expect(view.homeViewOf('10.0.3.4')).toBeUndefined();
    const tunnel = server.storage.get(KEY, PEER);
    if (tunnel === undefined) throw new Error('there is none');
    server.storage.update(KEY, { ...tunnel, spec: { ...(tunnel.spec as object), peer: PEER_SAYS } });
    change({ conditions: [condition('True')] });
    await until('it is up', () => view.state.kind === 'Up');
    expect(seen).not.toContain('Off');
  });

  test('a peer without a network is one when its time is over', async () => {
    seed({ peer: {} });
    await start();
    await clock.advance(EXPECTED_MS - 1000);
    expect(view.state).toMatchObject(silent);
    await clock.advance(2000);
    expect(view.state).toEqual({ kind: 'Off' });
    expect(view.homeViewOf('10.0.3.4')).toBeUndefined();
  });

  test('not for longer where the clock of the API server is ahead', async () => {
    seed({ peer: {} });
    clock.jump(-3_600_000);
    await start();
    expect(view.state).toMatchObject(silent);
    await clock.advance(EXPECTED_MS + 1000);
    expect(view.state).toEqual({ kind: 'Off' });
  });
});

describe('off', () => {
  test.each([
    ['without a Tunnel', () => undefined, '10.0.3.4'],
    ['with the Tunnel of another peer', () => seed({ name: 'b'.repeat(26), ready: 'True' }), '10.0.3.4'],
    ['with a peer that has told of no network', () => seedSilent(), undefined],
  ])('%s', async (_what, given, shown) => {
    given();
    await start();
    expect(view.state).toEqual({ kind: 'Off' });
    expect(view.homeViewOf('10.0.3.4')).toBe(shown);
    expect(view.foreignViewOf('10.1.3.4')).toBeUndefined();
  });

  test('after a peer of an up tunnel tells nothing any more: never an address of its own', async () => {
    seed({ ready: 'True' });
    await start();
    const seen = new Set<string | undefined>();
    view.onChange(() => seen.add(view.homeViewOf('10.0.3.4')));
    forgetPeer();
    await until('it is down', () => view.state.kind === 'Down');
    await until('it is off', () => view.state.kind === 'Off');
    expect([...seen]).toEqual(['100.64.3.4', undefined]);
    server.storage.remove(KEY, PEER);
    await until('home has no network', () => view.homeViewOf('10.0.3.4') === '10.0.3.4');
    expect(view.state).toEqual({ kind: 'Off' });
  });

  test('a Tunnel without a peer that is made again shows nothing meanwhile', async () => {
    seedSilent();
    view = makeView();
    await start();
    const seen: (string | undefined)[] = [];
    view.onChange(() => seen.push(view.homeViewOf('10.0.3.4')));
    server.storage.remove(KEY, PEER);
    seed({ peer: {} });
    server.storage.remove(KEY, PEER);
    seed({ ready: 'True' });
    await until('it is up', () => view.state.kind === 'Up');
    expect(seen.filter((address) => address !== undefined)).toEqual(['100.64.3.4']);
  });

  test.each([404, 403])('where Tunnels cannot be read (%i), until they can', async (status) => {
    let isClosed = true;
    server.fault({ match: ({ path }) => isClosed && path.includes('tunnels'), times: Infinity, status });
    seed({ ready: 'True' });
    await start();
    expect(view.state).toEqual({ kind: 'Off' });
    isClosed = false;
    await until('it is up', () => view.state.kind === 'Up');
  });
});

describe('where pods over there reach our API server', () => {
  const at = { address: '10.1.15.254', port: 443 };
  test.each<[string, () => void, object]>([
    ['without a Tunnel', () => undefined, { kind: 'None', reason: 'NoNetwork' }],
    ['with a peer without a network', () => seedSilent(), { kind: 'None', reason: 'NoNetwork' }],
    [
      'where it is open',
      () => seed({ spec: { apiServer: at } }),
      { kind: 'At', address: '100.99.15.254', port: 443 },
    ],
    ['where it is not', () => seed({}), { kind: 'None', reason: 'NotAllowed' }],
    [
      'where the provider forbids it',
      () => seed({ peer: { ...PEER_SAYS, forbidsHomeApiServer: true } }),
      { kind: 'None', reason: 'ForbiddenByProvider' },
    ],
    [
      'before the provider has told how it sees us',
      () => seed({ spec: { apiServer: { ...at, address: '10.9.0.1' } } }),
      { kind: 'Unknown', reason: 'PeerHasNoViewOfUs' },
    ],
  ])('%s', async (_what, given, shown) => {
    given();
    await start();
    expect(view.homeApiServer).toMatchObject(shown);
  });
});

test('a ClusterIP that our pods reach over there is still no address of an endpoint', async () => {
  const seenAs = ['10.1.0.0/16', '10.96.0.0/16'].map((prefix) => ({ prefix, as: prefix }));
  seed({ spec: { seenAs, services: ['10.96.0.0/16'] } });
  await start();
  expect(view.foreignViewOf('10.1.3.4')).toBe('10.1.3.4');
  expect(view.foreignViewOf('10.96.0.10')).toBeUndefined();
});

test('our DNS is asked from over there where all of its addresses mean the same', async () => {
  const same = ['10.1.0.0/16', '10.96.0.0/16'].map((prefix) => ({ prefix, as: prefix }));
  const spec = { seenAs: same, services: ['10.96.0.0/16'], dns: { addresses: ['10.1.0.0/16'] } };
  seed({ spec, ready: 'True' });
  await start();
  expect(view.homeDns).toMatchObject({ kind: 'None', reason: 'SeenElsewhere' });
  change({ views: [{ use: 'Pods', prefix: '10.0.0.0/16', as: '10.0.0.0/16' }] });
  await until('it can be asked', () => view.homeDns.kind === 'Open');
  expect(view.homeDns).toEqual({ kind: 'Open', ranges: ['10.96.0.0/16'] });
});

test.each<[string, () => void, object]>([
  ['nobody has chosen it', () => seed({ ready: 'True' }), { kind: 'NotChosen' }],
  ['there is no Tunnel', () => undefined, { kind: 'NotChosen' }],
  [
    'the peer has no network',
    () => seedSilent({ spec: { dns: { addresses: [] } } }),
    { kind: 'None', reason: 'NoNetwork' },
  ],
])('our DNS is not asked where %s', async (_why, given, shown) => {
  given();
  await start();
  expect(view.homeDns).toMatchObject(shown);
});

test('who is refused at first is not taken to have no network', async () => {
  let refused = 0;
  const match = ({ path }: { path: string }): boolean => path.includes('tunnels') && refused++ < 2;
  server.fault({ match, times: Infinity, status: 403 });
  seed({ ready: 'True' });
  view = makeView();
  await start();
  expect(view.state).toEqual({ kind: 'Up' });
  expect(refused).toBeGreaterThan(2);
});

describe('where no gateway runs at home any more', () => {
  const unknown = { ...condition('Unknown'), reason: 'GatewayNotRunning' };
  const views = [{ use: 'Pods', prefix: '10.0.0.0/16', as: '100.66.0.0/16' }];
  const isSeen = (): boolean => view.homeViewOf('10.0.3.4') === '100.66.3.4';

  test.each([
    ['up', 'True', 'Up'],
    ['down', 'False', 'Down'],
  ])('it stays %s', async (_what, ready, kind) => {
    seed({ ready });
    await start();
    change({ conditions: [unknown], views });
    await until('the change is seen', isSeen);
    expect(view.state.kind).toBe(kind);
  });

  test('an agent that starts takes it for up', async () => {
    seed();
    change({ conditions: [unknown] });
    await start();
    expect(view.state).toEqual({ kind: 'Up' });
  });
});

test('down until the gateway has spoken, and in its words', async () => {
  seed();
  await start();
  expect(view.state).toMatchObject({ kind: 'Down', reason: 'Starting' });
  change({ conditions: [condition('False')] });
  await until('its words', () => view.state.kind === 'Down' && view.state.reason === 'NoAnswer');
  server.storage.remove(KEY, PEER);
  await until('it is off', () => view.state.kind === 'Off');
});

test('a Tunnel that is made again is down meanwhile, and all addresses stay', async () => {
  seed({ ready: 'True' });
  view = makeView();
  await start();
  const states: string[] = [];
  view.onChange(() => states.push(view.state.kind));
  server.storage.remove(KEY, PEER);
  await until('it is down', () => view.state.kind === 'Down');
  expect(view.state).toMatchObject({ reason: 'PeerHasNotTold' });
  expect(view.homeViewOf('10.0.3.4')).toBe('100.64.3.4');
  expect(view.foreignViewOf('10.1.3.4')).toBe('100.99.3.4');
  seed({ peer: {} });
  server.storage.remove(KEY, PEER);
  seed({ ready: 'True' });
  await until('it is up', () => view.state.kind === 'Up');
  expect(states).toEqual(['Down', 'Up']);
});

test('nobody is called for what changes with every probe', async () => {
  seed({ ready: 'True' });
  await start();
  let calls = 0;
  const end = view.onChange(() => calls++);
  for (let rttMs = 1; rttMs < 5; rttMs++) change({ connection: { rttMs } });
  change({ views: [{ use: 'Pods', prefix: '10.0.0.0/16', as: '100.66.0.0/16' }] });
  await until('the new view', () => view.homeViewOf('10.0.3.4') === '100.66.3.4');
  expect(calls).toBe(1);
  end();
  change({ conditions: [condition('False')] });
  await until('it is down', () => view.state.kind === 'Down');
  expect(calls).toBe(1);
});
