import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { webhook } from '../../src/agent/offloading.ts';
import { controllerMetrics } from '../../src/agent/parts.ts';
import { validatingWebhookConfigurations, GUESTS_CONFIGURATION } from '../../src/api/admission.ts';
import { HOME_LEASE, LABEL_HOME_UID, LABEL_MANAGED_BY } from '../../src/api/names.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { leases, pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { parseConfig } from '../../src/config.ts';
import { guestAdmission } from '../../src/hosting/guests/webhook.ts';
import { Caches } from '../../src/kube/caches.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Lifecycle } from '../../src/lib/lifecycle.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { StockWatcher } from '../../src/peering/offer/stock-watcher.ts';
import { refusalOf } from '../../src/provider/pods/refusal.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { type Answer, type Caller, printed, RightsCluster } from '../support/labs/rights-cluster.ts';
import { LendingWorld, type Peer } from '../support/peering/lending-world.ts';

/**
 * What peers write with their own tokens, before a real API server, with lending and the webhook of role `cluster` under its own
 * account. The policy lends small budgets, so that they are soon spent.
 */

const SYSTEM = 'tributary-system';
const ACCOUNT = { namespace: SYSTEM, name: 'tributary-cluster' };
const KIB = 1024;
/** A minute's worth: four at once. Each write of 15 KiB is charged 16 KiB at least. */
const WRITES = { objectKiB: 16, objects: 70, kibPerMinute: 256 };
const MOST_WRITES = (4 * WRITES.kibPerMinute) / 16;
/** Writes of which one is refused, where a budget is spent and comes back while they are made. */
const SPENT_WRITES = 10;

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
let world: LendingWorld;
let lifecycle: Lifecycle | undefined;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  admin = await lab.admin();
  client = await lab.clientOf(ACCOUNT);
  world = new LendingWorld(client, {}, admin);
  await world.node('real', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.policy({ writes: WRITES, sharePercent: 40 });
  await begin();
});

afterAll(async () => {
  await end();
  await client?.close();
  await admin?.close();
  await lab?.down();
});

/** A process that becomes leader: lending, and the webhook over its tenants. */
async function begin(): Promise<void> {
  await world.start();
  const clock = systemClock;
  const common = { client, clock, log: silentLogger };
  const stock = new StockWatcher({ caches: new Caches(common), clock });
  const guests = guestAdmission({
    ...common,
    account: ACCOUNT,
    pods: stock.pods,
    tenants: world.lending.tenants,
    heedless: (peer, why) => world.lending.suspend(peer, why),
  });
  const registry = new Registry();
  const options = { 'node-address': '127.0.0.1', 'system-namespace': SYSTEM };
  const config = parseConfig({ options, env: {}, hostname: 'lab' });
  const components = webhook([guests], {
    parts: { config, clock, log: silentLogger },
    home: client,
    inPod: false,
    registry,
    metrics: controllerMetrics(registry),
  });
  lifecycle = new Lifecycle([stock, ...components], { clock, log: silentLogger, stopDeadlineMs: 10_000 });
  await lifecycle.start(new AbortController().signal);
}

async function end(): Promise<void> {
  await lifecycle?.stop();
  await world?.stop();
}

const mapsIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const FILLING = 'x'.repeat(14 * KIB);
let turn = 0;
const labels = { [LABEL_MANAGED_BY]: 'rome' };
const mapOf = (name: string, load: string = FILLING): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels },
  data: { load, turn: String(turn++) },
});
const secretOf = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, labels },
  stringData: { load: FILLING.slice(0, 10 * KIB), turn: String(turn++) },
});

interface Attacker {
  peer: Peer;
  call: Caller;
  tenants: string[];
}

const tokenOf = async (peer: Peer): Promise<string> =>
  (await world.lending.credential(peer.identity, new AbortController().signal)).token;
const callerOf = async (peer: Peer): Promise<Caller> => lab.with(await tokenOf(peer));

/** A new peer, for which the webhook is in force: too large an object is refused by it. */
async function attacker(namespaces: string[]): Promise<Attacker> {
  const peer = world.peer();
  await peer.peered({ namespaces });
  const call = await callerOf(peer);
  const tenants = namespaces.map((name) => peer.tenant(name));
  for (const tenant of tenants) {
    await answered('the webhook is asked', /of 8192 bytes at most/u, async () =>
      call('POST', `/api/v1/namespaces/${tenant}/pods?dryRun=All`, podOf('huge', 'x'.repeat(10 * KIB))),
    );
  }
  return { peer, call, tenants };
}

/** The API server itself may have too much to do for a moment, and says 429 then: so it is asked again. */
async function answered(
  what: string,
  wanted: RegExp | readonly number[],
  ask: () => Promise<Answer>,
  deadlineMs = 30_000,
): Promise<void> {
  const answers = new Map<string, number>();
  const look = async (): Promise<boolean> => {
    const { status, body } = await ask();
    const text = `${status} ${body}`;
    answers.set(text, (answers.get(text) ?? 0) + 1);
    return wanted instanceof RegExp ? wanted.test(body) : wanted.includes(status);
  };
  await awaited(what, look, { seen: async () => Promise.resolve([...answers]), deadlineMs });
}

/** A request that failed in the API server may have ended the object nevertheless: it is not found then. */
async function ended(call: Caller, path: string): Promise<void> {
  expect((await lab.cluster.api.call('GET', path)).status).toBe(200);
  await answered(`it ends ${path}`, [200, 404], async () => call('DELETE', `${path}?gracePeriodSeconds=0`));
}

/** The API server has too much to do for a moment, or a quota has changed meanwhile. */
const isLater = ({ status, body }: Answer): boolean =>
  status === 409 || (status === 429 && !body.startsWith('{'));

/** Tries one after another until one is refused, which must come within so many. Returns how many were let in, and the refusal. */
async function untilRefused(
  write: (number: number) => Promise<Answer>,
  within: number = MOST_WRITES + 20,
): Promise<{ stored: number; refusal: Answer }> {
  let stored = 0;
  for (let tried = 0; tried < within; tried++) {
    const answer = await write(tried);
    if (answer.status < 300) stored++;
    else if (!isLater(answer)) return { stored, refusal: answer };
  }
  throw new Error(`of ${within} writes, ${stored} were let in, and none was refused`);
}

interface Refusal {
  reason: string;
  message: string;
  details?: { retryAfterSeconds?: number; causes?: { reason: string }[] };
}
const said = ({ body }: Answer): Refusal => JSON.parse(body) as Refusal;

const isSpent = (answer: Answer, peer: Peer): void => {
  expect(answer.status).toBe(429);
  const { reason, message, details } = said(answer);
  expect(reason).toBe('TooManyRequests');
  expect(message).toContain(`budget of writes of peer ${peer.id} is spent: it may write 256 KiB a minute`);
  expect(message).toContain('writes.kibPerMinute of the SharingPolicy');
  expect(details?.causes?.[0]?.reason).toBe('WriteBudgetSpent');
  expect(details?.retryAfterSeconds).toBeGreaterThan(0);
};

test('one ConfigMap that is rewritten, by turns in several namespaces and with other kinds, is bounded by one budget', async () => {
  const rome = await attacker(['shop', 'web']);
  const { call, tenants } = rome;
  const [shop = '', web = ''] = tenants;
  for (const tenant of tenants) {
    expect(await call('POST', mapsIn(tenant), mapOf('load'))).toMatchObject({ status: 201 });
  }
  // What a dry run asks for, and what changes nothing, costs nothing.
  const same = JSON.parse((await call('POST', mapsIn(shop), mapOf('small', 'x'))).body) as object;
  for (let dry = 0; dry < 80; dry++) {
    const answer = await call('PUT', `${mapsIn(shop)}/load?dryRun=All`, mapOf('load'));
    expect(answer).toMatchObject({ status: 200 });
  }
  expect(await call('PUT', `${mapsIn(shop)}/small`, same)).toMatchObject({ status: 200 });
  const { stored, refusal } = await untilRefused(async (number) => {
    const tenant = number % 2 === 0 ? shop : web;
    if (number === 10) return call('POST', `/api/v1/namespaces/${shop}/secrets`, secretOf('load'));
    return call('PUT', `${mapsIn(tenant)}/load`, mapOf('load'));
  });
  expect(stored).toBeGreaterThan(MOST_WRITES / 2);
  isSpent(refusal, rome.peer);
  // Of every kind, and in every namespace. A slow machine may take as long for a few requests as a budget for one more.
  const others: ((number: number) => Promise<Answer>)[] = [
    async () => call('PUT', `${mapsIn(web)}/load`, mapOf('load')),
    async () => call('PUT', `/api/v1/namespaces/${shop}/secrets/load`, secretOf('load')),
    async (number) => call('POST', `/api/v1/namespaces/${web}/pods`, podOf(`load-${number}`)),
  ];
  for (const write of others) isSpent((await untilRefused(write, SPENT_WRITES)).refusal, rome.peer);
  // Its heartbeat goes on, which has a budget of its own.
  const spec = { holderIdentity: 'rome', leaseDurationSeconds: 40 };
  await admin.create(leases, { metadata: { namespace: shop, name: HOME_LEASE }, spec });
  const lease = `/apis/coordination.k8s.io/v1/namespaces/${shop}/leases/${HOME_LEASE}`;
  let seen = JSON.parse((await call('GET', lease)).body) as object;
  const beat = async (): Promise<Answer> => {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const answer = await call('PUT', lease, { ...seen, spec: { ...spec, renewTime } });
    if (answer.status === 200) seen = JSON.parse(answer.body) as object;
    return answer;
  };
  expect(await beat()).toMatchObject({ status: 200 });
  const beats = await untilRefused(async () => beat(), 2_000);
  expect(beats.refusal.status).toBe(429);
  expect(said(beats.refusal).message).toMatch(/renews its Leases more often than 12 times a second/u);
  expect(beats.stored).toBeGreaterThan(200);
  // Another peer notices nothing.
  const paris = await attacker(['shop']);
  const [theirs = ''] = paris.tenants;
  expect(await paris.call('POST', mapsIn(theirs), mapOf('load'))).toMatchObject({ status: 201 });
});

const podOf = (name: string, load = 'x'.repeat(4 * KIB)): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { [LABEL_HOME_UID]: name }, annotations: {} },
  spec: {
    containers: [{ name: 'main', image: 'example/none:1', env: [{ name: 'LOAD', value: load }] }],
    nodeSelector: { never: 'there' },
  },
});

test('pods, and changes of them, are charged for all that etcd stores of them; a home is told to wait, and shows it', async () => {
  const { peer, call, tenants } = await attacker(['shop']);
  const path = `/api/v1/namespaces/${tenants[0]}/pods`;
  const { stored, refusal } = await untilRefused(async (number) => call('POST', path, podOf(`p-${number}`)));
  // Six times five KiB and more.
  expect(stored).toBeGreaterThan(15);
  expect(stored).toBeLessThan(35);
  isSpent(refusal, peer);
  const change = (): object => ({ metadata: { annotations: { 'example.com/turn': `${turn++}` } } });
  isSpent((await untilRefused(async () => call('PATCH', `${path}/p-0`, change()))).refusal, peer);
  const own = lab.clientWith(await tokenOf(peer));
  const create = async (number: number): Promise<unknown> => {
    const late = podOf(`late-${number}`) as Pod;
    const metadata = { ...late.metadata, namespace: tenants[0] ?? '' };
    return own.create(pods, { ...late, metadata }).then(
      () => undefined,
      (error: unknown) => error,
    );
  };
  let error: unknown;
  for (let late = 0; error === undefined && late < SPENT_WRITES; late++) error = await create(late);
  await own.close();
  expect(refusalOf(error)).toMatchObject({ reason: 'WriteBudgetSpent', retryAfterMs: expect.any(Number) });
  // It may always end them.
  await ended(call, `${path}/p-0`);
});

test('many small objects over many namespaces are counted together', async () => {
  const homes = Array.from({ length: 4 }, (_, index) => `shop-${index}`);
  const { peer, call, tenants } = await attacker(homes);
  // The pods that are lent come on top, and so do ConfigMaps that this cluster puts into each namespace.
  const lent = Number((await peer.object()).status?.promised?.['pods'] ?? 0);
  const most = WRITES.objects + lent;
  const { stored, refusal } = await untilRefused(
    async (number) => call('POST', mapsIn(tenants[number % tenants.length] ?? ''), mapOf(`n-${number}`, '')),
    most + 10,
  );
  expect(refusal.status).toBe(403);
  expect(said(refusal).message).toMatch(
    new RegExp(
      `exceeded quota of peer ${peer.id} over all its namespaces: used \\d+ objects, granted ${most}`,
      'u',
    ),
  );
  expect(stored).toBeLessThanOrEqual(most);
  expect(stored).toBeGreaterThan(most - 4 * tenants.length);
  // What goes makes room: more of them than this cluster may have put there meanwhile.
  for (let number = 0; number < 2 * tenants.length; number++) {
    await ended(call, `${mapsIn(tenants[number % tenants.length] ?? '')}/n-${number}`);
  }
  // The controller of quotas counts nothing for 30 s and more while kinds come and go, as other tests make them do.
  const again = async (): Promise<Answer> => call('POST', mapsIn(tenants[1] ?? ''), mapOf('again', ''));
  await answered('there is room again', [201], again, 90_000);
});

test('a peer that does not wait loses its rights, keeps its pods, and goes on when a person says so', async () => {
  const { peer, call, tenants } = await attacker(['shop']);
  const [tenant = ''] = tenants;
  const path = `/api/v1/namespaces/${tenant}/pods`;
  // A busy API server may answer that the quota has changed meanwhile (409).
  await answered('a pod that stays', [201], async () => call('POST', path, podOf('stays', 'x')));
  await answered('a ConfigMap', [201], async () => call('POST', mapsIn(tenant), mapOf('load')));
  await eventually('it is refused as nobody that is known here', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => call('PUT', `${mapsIn(tenant)}/load`, mapOf('load'))),
    );
    return answers.every(({ status }) => status === 401 || status === 403);
  });
  await peer.granted('Pending');
  const { grant } = peer.told;
  expect(grant).toMatchObject({ reason: 'Suspended' });
  expect(grant?.message).toMatch(/suspended until .* more than 10 times what it may write/u);
  await expect(callerOf(peer)).rejects.toThrow('no contract is in force');
  const suspended = await peer.object();
  expect(suspended.status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Suspended', status: 'True', reason: 'WritesTooMuch' }),
  );
  expect(suspended.status?.suspension).toMatchObject({ count: 1 });
  expect(world.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'WritesTooMuch' }));
  expect(
    (await admin.get(pods, { namespace: tenant, name: 'stays' })).metadata.deletionTimestamp,
  ).toBeUndefined();

  // Another leader finds it as it is.
  await end();
  await begin();
  world.linked.add(peer.id);
  await world.until(
    'the other leader has looked',
    async () => (await peer.object()).status?.suspension?.count === 1,
  );
  expect(peer.told.grant).toMatchObject({ state: 'Pending', reason: 'Suspended' });

  const body = { metadata: { annotations: { 'tributary.dev/resume': 'true' } } };
  await admin.patch(peeringRequests, { name: peer.id }, { type: 'merge', body });
  await peer.granted('Active');
  await eventually('it writes again', async () => {
    const again = await callerOf(peer).catch(() => undefined);
    return (await again?.('GET', mapsIn(tenant)))?.status === 200;
  });
  const resumed = await peer.object();
  expect(resumed.status?.suspension).toBeUndefined();
  expect(resumed.status?.conditions?.some(({ type }) => type === 'Suspended')).toBe(false);
  await eventually('the word is taken off', async () => {
    const { metadata } = await peer.object();
    return metadata.annotations?.['tributary.dev/resume'] === undefined;
  });
});

test('webhooks say what happens while nobody answers them; the priority level of peers borrows nothing', async () => {
  const { webhooks = [] } = await admin.get(validatingWebhookConfigurations, {
    name: GUESTS_CONFIGURATION,
  });
  expect(
    Object.fromEntries(webhooks.map(({ name, failurePolicy }) => [name.split('.')[0], failurePolicy])),
  ).toEqual({
    quota: 'Fail',
    storage: 'Fail',
    writes: 'Fail',
    deletions: 'Ignore',
    heartbeats: 'Ignore',
  });
  const level = await lab.cluster.api.get<{ spec: { limited: object } }>(
    '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/tributary-peers',
  );
  expect(level?.spec.limited).toMatchObject({ borrowingLimitPercent: 0 });
});
