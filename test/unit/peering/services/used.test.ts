import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { AcceptancePolicy } from '../../../../src/api/acceptance-policy.ts';
import {
  type Advertisement,
  advertisements,
  type ProviderServiceStatus,
} from '../../../../src/api/advertisement.ts';
import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import { namespaces, services } from '../../../../src/api/resources.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger as log } from '../../../../src/lib/log.ts';
import { UsedServices } from '../../../../src/peering/services/used.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** Home Services of a provider over a simulated API server. */

const PROVIDER = 'abcdefghijklmnopqrstuvwxyz';
const policy = {
  metadata: { name: 'all' },
  spec: {
    services: ['db', 'web', 'zoo'].map((name) => ({ namespace: 'data', name, homeNamespace: 'shop' })),
  },
} as unknown as AcceptancePolicy;
const ofProvider = { 'tributary.dev/offered-service': 'true', [LABEL_PROVIDER]: PROVIDER };
const nothing = (): (() => void) => () => undefined;

let clock: FakeClock;
let api: FakeApi;
let client: HttpClient;
let used: UsedServices;
let lifecycle: Lifecycle;
let told: string[];

beforeEach(async () => {
  told = [];
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [advertisements] });
  client = api.client();
  api.seed(namespaces, { metadata: { name: 'shop' } });
  api.seed(advertisements, {
    metadata: { name: PROVIDER },
    status: {
      contract: { text: '1', consumerSignature: 'c', providerSignature: 'p' },
      virtualNodes: ['milan'],
    },
  });
  const all = new Informer<KubeObject>({ client, clock, log, type: namespaces, list: {} });
  used = new UsedServices({
    client,
    caches: new Caches({ client, clock, log }),
    clock,
    log,
    events: { event: (_subject, _type, reason, message) => void told.push(`${reason}: ${message}`) },
    borrowed: { policyOf: () => policy, onChange: nothing },
    networks: {
      of: () => ({ state: { kind: 'Up' }, podAddress: (theirs) => theirs }),
      forget: () => undefined,
      onChange: nothing,
    },
    linked: () => ({ isLinked: () => true, onChange: nothing }),
    namespaces: all,
  });
  lifecycle = new Lifecycle([all, ...used.components()], { clock, log, stopDeadlineMs: 5000 });
  await lifecycle.start(new AbortController().signal);
  offer(5432);
  await clock.until('the home Service', () => home() !== undefined);
  await clock.until('told', () => advertisement().status?.services?.[0]?.state === 'Used');
});
afterEach(async () => {
  await lifecycle.stop();
  await client.close();
  await api.stop();
});

function offer(port: number, names = ['db']): void {
  const ports = [{ protocol: 'TCP' as const, port, targetPort: 5432 }];
  const endpoints = [{ address: '10.1.0.4', ready: true }];
  const services = names.map((name) => ({ namespace: 'data', name, ports, endpoints }));
  used.received(PROVIDER, { services });
}

const home = (name = 'db'): KubeObject | undefined => api.storage.get('services', `shop/${name}`);
const standing = (name: string): ProviderServiceStatus | undefined =>
  advertisement().status?.services?.find((one) => one.name === name);
const advertisement = (): Advertisement =>
  api.storage.get('advertisements.tributary.dev', PROVIDER) as unknown as Advertisement;
const write = async (status: object): Promise<unknown> =>
  client.patch(
    advertisements,
    { name: PROVIDER },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  );

// Each namespace that comes or goes, and each change of the amounts, is a contract of its own.
test('while another contract is being agreed on, home Services stay as they are', async () => {
  const uid = home()?.metadata.uid;
  await write({ contract: { text: '2', providerSignature: null } });
  const extra = { metadata: { name: 'left', namespace: 'shop', labels: ofProvider } };
  // Swept by the same look that sees the contract.
  await client.create(services, { ...extra, spec: { ports: [] } });
  await clock.until('looked at', () => api.storage.get('services', 'shop/left') === undefined);
  expect(home()?.metadata.uid).toBe(uid);
  await write({ contract: { providerSignature: 'p' } });
  await clock.until('signed', () => advertisement().status?.contract?.providerSignature === 'p');
  expect(home()?.metadata.uid).toBe(uid);
});

test('they go with the contract', async () => {
  await write({ contract: null });
  await clock.until('gone', () => home() === undefined);
});

// A policy engine that wants a label, say: with the Service its cluster IP and every open connection would go.
test('a home Service that may not be changed stays as it is, and people are told', async () => {
  const uid = home()?.metadata.uid;
  const slice = api.storage.get('endpointslices.discovery.k8s.io', 'shop/tributary-db-ipv4');
  expect(slice).toBeDefined();
  client.replace = async () => Promise.reject(new TributaryError('Forbidden', 'a label is missing'));
  offer(5433);
  await clock.until('told', () => advertisement().status?.services?.[0]?.state === 'Failed');
  expect(advertisement().status?.services?.[0]).toMatchObject({
    reason: 'Refused',
    message: 'Service shop/db: a label is missing',
  });
  await clock.advance(50);
  expect(home()?.metadata.uid).toBe(uid);
  expect(api.storage.get('endpointslices.discovery.k8s.io', 'shop/tributary-db-ipv4')).toEqual(slice);
});

// A webhook that fails for one of them, say.
test('a home Service that cannot be made now holds up no other one, and is tried again', async () => {
  const extra = { metadata: { name: 'left', namespace: 'shop', labels: ofProvider } };
  const fails = ({ method, path }: { method: string; path: string }): boolean =>
    (method === 'PUT' && path.endsWith('/services/db')) ||
    (method === 'DELETE' && path.endsWith('/services/left'));
  api.fault({ match: fails, status: 500, times: 1000 });
  await client.create(services, { ...extra, spec: { ports: [] } });
  await client.create(services, {
    metadata: { ...extra.metadata, name: 'old' },
    spec: { ports: [] },
  });
  const uid = home()?.metadata.uid;
  offer(5433, ['db', 'web', 'zoo']);
  await clock.until('the last one', () => home('zoo') !== undefined);
  await clock.until('swept', () => home('old') === undefined);
  await clock.until('told', () => standing('db')?.state === 'Failed' && standing('zoo')?.state === 'Used');
  expect(standing('db')).toMatchObject({
    reason: 'Refused',
    message: 'replace Service db in shop: injected 500; it is tried again',
  });
  expect(home()?.metadata.uid).toBe(uid);
  expect(used.used(PROVIDER)).toEqual([{ address: '10.1.0.4', protocol: 'TCP', port: 5432 }]);
  await clock.until('tried again', () => api.count(/^PUT .*services\/db/) > 2);
  await clock.until('an event', () => told.length > 0);
  expect(told).toEqual([expect.stringMatching(/^ServiceNotUsed: Service data\/db .*injected 500/)]);
});

test('one that was written by somebody at the same time is no failure', async () => {
  api.fault({ match: ({ method }) => method === 'PUT', status: 409, times: 2 });
  offer(5433, ['db', 'web']);
  await clock.until('written', () => JSON.stringify(home()).includes('5433'));
  await clock.until('the other', () => standing('web')?.state === 'Used');
  expect(told).toEqual([]);
});
