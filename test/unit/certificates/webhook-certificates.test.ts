import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { secrets } from '../../../src/api/resources.ts';
import type { Secret } from '../../../src/api/wire.ts';
import { makeAuthority, periodOf, type WebhookSubject } from '../../../src/certificates/webhook/authority.ts';
import { WebhookCertificates } from '../../../src/certificates/webhook/webhook-certificates.ts';
import {
  bundleOf,
  type Chain,
  chainOf,
  dataOf,
  renewed,
  restMs,
} from '../../../src/certificates/webhook/chain.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { WebhookMetrics } from '../../../src/server/webhook/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { loadX509 } from '../server/support/certificates.ts';

const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const SUBJECT: WebhookSubject = { dnsNames: ['tributary-webhook.tributary-system.svc'], ips: ['10.0.0.1'] };
const REF = { namespace: 'tributary-system', name: 'tributary-webhook' };

beforeEach(async () => void (await loadX509()));

const parsed = (pem: string): X509Certificate => new X509Certificate(pem);
const certificates = (pem: string): X509Certificate[] =>
  pem
    .split(/(?<=-----END CERTIFICATE-----\n)/u)
    .filter((text) => text !== '')
    .map(parsed);

/** As a client does that has this bundle. */
function isTrusted(leaf: string, bundle: string, atMs: number): boolean {
  const { validFromDate, validToDate } = parsed(leaf);
  const isNow = validFromDate.getTime() <= atMs && atMs < validToDate.getTime();
  return (
    isNow &&
    certificates(bundle).some(
      (one) => one.ca && parsed(leaf).checkIssued(one) && parsed(leaf).verify(one.publicKey),
    )
  );
}

test('a first chain: an authority, and a certificate for exactly these names that may serve and nothing else', async () => {
  const chain = await renewed(undefined, SUBJECT, START);
  const leaf = parsed(chain.leaf.certificate);
  expect(leaf.subjectAltName).toBe('DNS:tributary-webhook.tributary-system.svc, IP Address:10.0.0.1');
  expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(leaf.ca).toBe(false);
  expect(isTrusted(chain.leaf.certificate, bundleOf(chain), START)).toBe(true);
  expect(chainOf({ data: dataOf(chain) })).toEqual(chain);
  expect(await renewed(chain, SUBJECT, START + DAY_MS)).toBe(chain);
});

test('over three years, whatever is served is trusted by whoever has the bundle of half an hour ago', async () => {
  let chain = await renewed(undefined, SUBJECT, START);
  let trusted = bundleOf(chain);
  let trustedAtMs = START;
  const leaves = new Set<string>();
  const authorities = new Set<string>();
  for (
    let nowMs = START;
    nowMs < START + 3 * 365 * DAY_MS;
    nowMs += Math.max(60_000, restMs(chain, nowMs) * 24)
  ) {
    const before = bundleOf(chain);
    chain = await renewed(chain, SUBJECT, nowMs);
    if (nowMs - trustedAtMs >= HOUR_MS / 2) trusted = before;
    if (bundleOf(chain) !== before) trustedAtMs = nowMs;
    expect(isTrusted(chain.leaf.certificate, trusted, nowMs)).toBe(true);
    expect(isTrusted(chain.leaf.certificate, bundleOf(chain), nowMs)).toBe(true);
    leaves.add(chain.leaf.certificate);
    authorities.add(chain.signing.certificate);
    expect(certificates(bundleOf(chain)).length).toBeLessThanOrEqual(3);
  }
  // At two thirds of thirty days, and of a year.
  expect(leaves.size).toBeGreaterThan(50);
  expect(authorities.size).toBe(5);
});

test.each<[string, (chain: Chain) => Promise<Partial<Chain>> | Partial<Chain>]>([
  [
    'a key that is another one',
    async () => ({ leaf: { ...(await renewed(undefined, SUBJECT, START)).leaf, key: '' } }),
  ],
  ['a certificate of another authority', async () => ({ signing: await makeAuthority(START) })],
])('%s is replaced', async (_what, change) => {
  const chain = await renewed(undefined, SUBJECT, START);
  const broken = { ...chain, ...(await change(chain)) };
  const mended = await renewed(broken, SUBJECT, START);
  expect(mended.leaf).not.toEqual(broken.leaf);
  expect(isTrusted(mended.leaf.certificate, bundleOf(mended), START)).toBe(true);
});

test('another address, or a clock that was set back by days, is a new certificate', async () => {
  const chain = await renewed(undefined, SUBJECT, START);
  const moved = await renewed(chain, { ...SUBJECT, ips: ['fd00::1'] }, START);
  expect(moved.signing).toBe(chain.signing);
  expect(parsed(moved.leaf.certificate).checkIP('fd00::1')).toBe('fd00::1');
  const back = await renewed(chain, SUBJECT, START - 9 * DAY_MS);
  expect(isTrusted(back.leaf.certificate, bundleOf(back), START - 9 * DAY_MS)).toBe(true);
});

test.each([
  ['nothing', {}],
  ['garbage', { 'ca.crt': 'eA==', 'ca.key': 'eA==', 'tls.crt': 'eA==', 'tls.key': 'eA==' }],
  ['too much', { 'ca.crt': 'A'.repeat(100_000) }],
])('a Secret with %s holds no chain', (_what, data) => {
  expect(chainOf({ data })).toBeUndefined();
});

let api: FakeApi;
let client: KubeClient;
let stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  api = new FakeApi();
  client = api.client();
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  await client.close();
  await api.stop();
  stops = [];
});

async function started(clock: FakeClock): Promise<WebhookCertificates> {
  const one = new WebhookCertificates({
    client,
    namespace: REF.namespace,
    subject: SUBJECT,
    clock,
    random: () => 0.5,
    log: silentLogger,
    metrics: new WebhookMetrics(new Registry()),
  });
  await clock.during('the start', one.start(new AbortController().signal));
  stops.push(async () => one.stop());
  return one;
}

const stored = async (): Promise<Secret> => client.get(secrets, REF);

test('are kept in a Secret, which the next process goes on with', async () => {
  const clock = new FakeClock(START);
  const first = await started(clock);
  const second = await started(clock);
  expect(second.current()).toEqual(first.current());
  expect(second.bundle()).toBe(first.bundle());
  expect((await stored()).data).toMatchObject(dataOf(chainOf(await stored()) as Chain));
});

test.each([
  ['GET', 503],
  ['POST', 409],
])('a start outlasts a %s that is answered with %d', async (verb, status) => {
  api.fault({ match: ({ method }) => method === verb, status, times: 2 });
  const one = await started(new FakeClock(START));
  expect(dataOf(chainOf(await stored()) as Chain)['tls.crt']).toBe(
    Buffer.from(one.current().certificate).toString('base64'),
  );
});

test('are renewed at two thirds of their life while the process runs, and say so', async () => {
  const clock = new FakeClock(START);
  const one = await started(clock);
  const before = one.current().certificate;
  let news = 0;
  one.subscribe(() => news++);
  await clock.advance(19 * DAY_MS);
  expect(one.current().certificate).toBe(before);
  expect(news).toBe(0);
  clock.jump(2 * DAY_MS);
  await clock.advance(HOUR_MS);
  await eventually('a new certificate', () => one.current().certificate !== before);
  expect(news).toBe(1);
  expect(periodOf(one.current())?.toMs).toBeGreaterThan(START + 40 * DAY_MS);
  expect(Buffer.from((await stored()).data?.['tls.crt'] ?? '', 'base64').toString()).toBe(
    one.current().certificate,
  );
});

test('a Secret that is deleted comes back with what is in use; one that is spoilt is made anew', async () => {
  const clock = new FakeClock(START);
  const one = await started(clock);
  const before = one.current();
  await client.delete(secrets, REF);
  const isBack = async (): Promise<boolean> =>
    stored().then(
      () => true,
      () => false,
    );
  await eventually('it is back', async () => {
    await clock.advance(HOUR_MS);
    return isBack();
  });
  expect(one.current()).toEqual(before);
  await client.replace(secrets, { ...(await stored()), data: { 'ca.crt': 'eA==' } });
  await eventually('it holds a chain', async () => {
    await clock.advance(HOUR_MS);
    return chainOf(await stored()) !== undefined;
  });
});

test('what cannot be stored is not served, and is tried again', async () => {
  const clock = new FakeClock(START);
  const one = await started(clock);
  const before = one.current().certificate;
  api.fault({ match: ({ method }) => method === 'PUT', times: 2, status: 500 });
  clock.jump(25 * DAY_MS);
  await eventually('it is renewed all the same', async () => {
    await clock.advance(30 * 60_000);
    return one.current().certificate !== before;
  });
  expect(api.log.filter((line) => line.startsWith('PUT')).length).toBeGreaterThanOrEqual(3);
});
