import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { flowSchemas, namespaces, pods, serviceAccounts } from '../../../../src/api/resources.ts';
import { Tenants } from '../../../../src/hosting/tenants/tenants.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** What the API server refuses of one thing of a tenant keeps nothing else of it. */

const PEER = 'rome';
const labels = { 'tributary.dev/peer': PEER, 'tributary.dev/tenancy': 'contract' };
const NAMES = ['bank', 'mail', 'shop'];
const HOW = { graceSeconds: 10, elsewhere: [] };
const { signal } = new AbortController();

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let tenants: Tenants;
let lifecycle: Lifecycle;
let warnings: string[];

beforeEach(async () => {
  clock = new FakeClock();
  warnings = [];
  api = new FakeApi({ clock });
  client = api.client();
  for (const name of NAMES) {
    api.seed(namespaces, { metadata: { name, labels } });
    api.seed(pods, {
      metadata: { name: 'web', namespace: name, labels: { 'tributary.dev/home-uid': name } },
      spec: { nodeName: 'node-1', containers: [] },
    });
  }
  api.seed(serviceAccounts, { metadata: { name: PEER, namespace: 'tributary-peers', labels } });
  api.seed(flowSchemas, { metadata: { name: PEER, labels } });
  const log = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
  const parts = { client, clock, log, caches: new Caches({ client, clock, log: silentLogger }) };
  tenants = new Tenants({ ...parts, systemNamespace: 'tributary-system' });
  lifecycle = new Lifecycle(tenants.components(), { clock, log: silentLogger, stopDeadlineMs: 10_000 });
  await clock.during('started', lifecycle.start(signal));
});

afterEach(async () => {
  await clock.during('stopped', lifecycle.stop());
  await client.close();
  await api.stop();
});

const refuse = (verb: string, end: string, status = 403): (() => void) =>
  api.fault({ match: ({ method, path }) => method === verb && path.endsWith(end), status, times: 1000 });
const running = async (): Promise<string[]> =>
  (await client.list(pods)).items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.namespace ?? '');
const fenced = async (): Promise<string[]> =>
  (await client.list(namespaces)).items
    .filter(({ metadata }) => metadata.annotations?.['tributary.dev/fenced'] === 'true')
    .map(({ metadata }) => metadata.name);

test.each([
  ['a pod', 'DELETE', '/namespaces/bank/pods/web', { fenced: NAMES, running: ['bank'] }],
  ['a mark', 'PATCH', '/namespaces/bank', { fenced: ['mail', 'shop'], running: [] }],
  ['the account', 'DELETE', `/serviceaccounts/${PEER}`, { fenced: NAMES, running: [] }],
])('where %s is refused, a fence closes all else, and the refusal is thrown', async (_, verb, end, left) => {
  refuse(verb, end);
  await expect(tenants.close(PEER, HOW, signal)).rejects.toThrow('403');
  expect(await fenced()).toEqual(left.fenced);
  expect(await running()).toEqual(left.running);
});

test('a fence counts the pods of all namespaces', async () => {
  expect(await tenants.close(PEER, HOW, signal)).toBe(3);
  expect(await running()).toEqual([]);
});

test('a pod that may not be deleted keeps no other namespace, and counts as ending; it is logged once', async () => {
  await client.patch(
    namespaces,
    { name: 'bank' },
    { type: 'merge', body: { metadata: { finalizers: ['example.com/never'] } } },
  );
  await client.delete(namespaces, { name: 'bank' });
  await clock.until('seen', () => tenants.namespaces.get('bank')?.metadata.deletionTimestamp !== undefined);
  await clock.advance(61_000);
  const relent = refuse('DELETE', '/namespaces/bank/pods/web', 500);
  const end = async (): Promise<string[]> =>
    (await tenants.end(PEER, signal)).ending.map(({ metadata }) => metadata.name);
  expect(await end()).toEqual(NAMES);
  expect((await client.list(namespaces)).items.map(({ metadata }) => metadata.name)).toEqual(['bank']);
  expect((await client.list(flowSchemas)).items).toEqual([]);
  await clock.until('seen', () => tenants.namespacesOf(PEER).length === 1);
  expect(await end()).toEqual(['bank']);
  expect(warnings).toEqual(['a namespace of a peer cannot be ended yet']);
  relent();
  await end();
  expect((await client.list(pods, { namespace: 'bank' })).items).toEqual([]);
});

test('an account that may not be deleted is told, when all else has ended', async () => {
  refuse('DELETE', `/serviceaccounts/${PEER}`);
  await expect(tenants.end(PEER, signal)).rejects.toThrow('403');
  expect((await client.list(namespaces)).items).toEqual([]);
  expect((await client.list(flowSchemas)).items).toEqual([]);
});
