import { X509Certificate, createPrivateKey } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import type { CertificateSigningRequest } from '../../../src/api/wire.ts';
import { TributaryError } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { CertificateFiles } from '../../../src/certificates/certificate-files.ts';
import { ServingApprover } from '../../../src/certificates/serving-approver.ts';
import { ServingCertificate, renewalTime } from '../../../src/certificates/serving-certificate.ts';
import type { ServingCertificateState } from '../../../src/certificates/serving-certificate.ts';
import { createAuthority, loadX509 } from '../server/support/certificates.ts';
import { CsrStore } from '../server/support/csr-client.ts';
import { csrObject } from '../server/support/csr.ts';
import { TestClock } from '../server/support/kubelet.ts';

const DAY_MS = 86_400_000;
const USERNAME = 'system:serviceaccount:tributary:agent-milan';
const extra = {
  'authentication.kubernetes.io/pod-name': ['agent-1'],
  'authentication.kubernetes.io/pod-uid': ['u-1'],
};
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** What the cluster's signer does with an approved request. */
async function sign(csr: CertificateSigningRequest, from: number): Promise<string> {
  const x509 = await loadX509();
  const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr.spec.request, 'base64').toString('utf8'));
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ]);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: request.subject,
    issuer: 'CN=cluster',
    publicKey: request.publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    notBefore: new Date(from),
    notAfter: new Date(from + 10 * DAY_MS),
    extensions: [...request.extensions],
  });
  return Buffer.from(certificate.toString('pem')).toString('base64');
}

interface World {
  store: CsrStore;
  clock: TestClock;
  component: ServingCertificate;
  states: ServingCertificateState[];
  addresses: { dnsNames: string[]; ips: string[] };
}

async function start(): Promise<World> {
  const store = new CsrStore();
  const clock = new TestClock();
  const states: ServingCertificateState[] = [];
  const addresses = { dnsNames: ['milan'], ips: ['10.0.0.7'] };
  const component = new ServingCertificate({
    client: store.client(),
    clock,
    log: silentLogger,
    random: () => 0.5,
    nodeName: 'milan',
    addresses: () => addresses,
    changed: (state) => states.push(state),
  });
  stops.push(async () => component.stop());
  await component.start(new AbortController().signal);
  return { store, clock, component, states, addresses };
}

const only = (store: CsrStore, count = 1): CertificateSigningRequest | undefined =>
  store.objects.size === count ? [...store.objects.values()].at(-1) : undefined;

/** Keys are made by another thread, in real time. */
const DEADLINE_MS = 60_000;

/** Moves time on until `found` finds something; every turn lets what is due happen. */
async function during<Found>(
  clock: TestClock,
  found: () => Found | undefined,
  stepMs = 10_000,
): Promise<Found> {
  for (const end = performance.now() + DEADLINE_MS; performance.now() < end;) {
    const result = found();
    if (result !== undefined) return result;
    if (clock.waiting > 0) clock.advance(stepMs);
    await new Promise(setImmediate);
  }
  throw new Error('it did not happen');
}

async function issue({ store, clock }: World, csr: CertificateSigningRequest): Promise<void> {
  const certificate = await sign(csr, clock.now());
  store.put({ ...csr, status: { conditions: [{ type: 'Approved', status: 'True' }], certificate } });
}

const issued = ({ component }: World): string | undefined => {
  const { certificate } = component.current();
  return new X509Certificate(certificate).issuer === 'CN=cluster' ? certificate : undefined;
};

test('self-signed first, then what the cluster issues', async () => {
  const world = await start();
  const { component, store, clock, states } = world;
  expect(new X509Certificate(component.current().certificate).subject).toBe(
    'O=system:nodes\nCN=system:node:milan',
  );
  const csr = await store.until(only);
  expect(csr.spec).toMatchObject({
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'server auth'],
  });
  let changes = 0;
  component.subscribe(() => (changes += 1));
  await issue(world, csr);
  const certificate = new X509Certificate(await during(clock, () => issued(world)));
  expect(certificate.checkIP('10.0.0.7')).toBe('10.0.0.7');
  expect(certificate.checkHost('milan')).toBe('milan');
  expect(certificate.checkPrivateKey(createPrivateKey(component.current().key))).toBe(true);
  expect(changes).toBe(1);
  expect(states.map(({ state }) => state)).toEqual(['selfSigned', 'pendingApproval', 'issued']);
  expect(states[1]?.message).toContain(`kubectl certificate approve ${csr.metadata.name}`);
});

test('a request that a person approves after a while is used at once, and what is waited for is said', async () => {
  const world = await start();
  const { store, clock, states } = world;
  const csr = await store.until(only);
  let turns = 0;
  await during(clock, () => (turns++ < 60 ? undefined : true), 1000);
  store.put({ ...csr, status: { conditions: [{ type: 'Approved', status: 'True' }] } });
  const isSaid = (): true | undefined =>
    states.at(-1)?.message.includes('is approved; waiting for the signer') || undefined;
  await during(clock, isSaid, 1000);
  await issue(world, csr);
  const from = clock.now();
  await during(clock, () => issued(world), 1000);
  expect(clock.now() - from).toBeLessThanOrEqual(5000);
  expect(states.at(-1)?.state).toBe('issued');
});

test('it is renewed in time, with another key', async () => {
  const world = await start();
  const { store, clock, component } = world;
  await issue(world, await store.until(only));
  const first = await during(clock, () => issued(world));
  const { key } = component.current();
  const began = clock.now();
  const second = await during(clock, () => only(store, 2), 600_000);
  const share = (clock.now() - began) / (10 * DAY_MS);
  expect(share).toBeGreaterThan(0.7);
  expect(share).toBeLessThan(0.9);
  await issue(world, second);
  await during(clock, () => (component.current().certificate === first ? undefined : true));
  expect(component.current().key).not.toBe(key);
});

test.each<[string, (world: World, csr: CertificateSigningRequest) => void]>([
  [
    'denied',
    ({ store }, csr) =>
      void store.put({ ...csr, status: { conditions: [{ type: 'Denied', status: 'True' }] } }),
  ],
  [
    'failed',
    ({ store }, csr) =>
      void store.put({ ...csr, status: { conditions: [{ type: 'Failed', status: 'True' }] } }),
  ],
  ['deleted', ({ store }, csr) => store.delete(csr.metadata.name)],
])('a request that was %s is made again', async (_name, happen) => {
  const world = await start();
  const { store, clock } = world;
  const first = await store.until(only);
  happen(world, first);
  const again = await during(clock, () =>
    [...store.objects.values()].find(({ metadata }) => metadata.name !== first.metadata.name),
  );
  await issue(world, again);
  await during(clock, () => issued(world));
});

test('an API server that is away for a while costs nothing but time', async () => {
  const world = await start();
  const { store, clock } = world;
  const csr = await store.until(only);
  store.failures.push(...Array.from({ length: 20 }, () => new TributaryError('Unreachable', 'away')));
  await issue(world, csr);
  await during(clock, () => issued(world));
  expect(store.objects.size).toBe(1);
});

test('a node that gets another address asks anew', async () => {
  const world = await start();
  const { store, clock, addresses } = world;
  await issue(world, await store.until(only));
  await during(clock, () => issued(world));
  addresses.ips = ['10.0.0.8'];
  const before = clock.now();
  await during(clock, () => only(store, 2));
  expect(clock.now() - before).toBeLessThan(3 * 60_000);
});

test('the time of renewal is between 70 and 90 % of the life', async () => {
  const authority = await createAuthority();
  const notBefore = new Date(1_000_000_000_000);
  const notAfter = new Date(1_000_001_000_000);
  const { certificate } = await authority.issue('CN=a', { notBefore, notAfter });
  expect(renewalTime(certificate, () => 0)).toBe(1_000_000_700_000);
  expect(renewalTime(certificate, () => 1)).toBe(1_000_000_900_000);
});

test('the approver lets the agent have its certificate, and another not', async () => {
  const world = await start();
  const { store, clock } = world;
  const csr = await store.until(only);
  const approver = new ServingApprover({
    client: store.client(),
    clock,
    log: silentLogger,
    random: () => 0.5,
    virtualNodes: () => [{ nodeName: 'milan', username: USERNAME }],
    podOf: (username) =>
      username === USERNAME ? { name: 'agent-1', uid: 'u-1', ips: ['10.0.0.7'] } : undefined,
  });
  store.put({ ...csr, spec: { ...csr.spec, username: USERNAME, extra } });
  stops.push(async () => approver.stop());
  approver.start(new AbortController().signal);
  const verdict = async (name: string): Promise<string | undefined> =>
    store.until(({ objects }) => objects.get(name)?.status?.conditions?.[0]?.type);
  expect(await verdict(csr.metadata.name)).toBe('Approved');
  store.put(csrObject('bad', { request: 'eA==', username: USERNAME, extra }));
  expect(await verdict('bad')).toBe('Denied');
  store.put(csrObject('other', { username: 'system:node:worker-1' }));
  store.failures.push(new TributaryError('Conflict', 'changed'));
  store.put(csrObject('again', { request: 'eA==', username: USERNAME, extra }));
  await new Promise(setImmediate);
  store.put(csrObject('again', { request: 'eA==', username: USERNAME, extra }));
  expect(await verdict('again')).toBe('Denied');
  expect(store.objects.get('other')?.status).toBeUndefined();
});

test('files are read again, and only a pair that belongs together is taken', async () => {
  const authority = await createAuthority();
  const [one, two] = [await authority.issue('CN=one'), await authority.issue('CN=two')];
  const folder = await mkdtemp(path.join(tmpdir(), 'certificate-files-'));
  stops.push(async () => rm(folder, { recursive: true }));
  const certificatePath = path.join(folder, 'tls.crt');
  const keyPath = path.join(folder, 'tls.key');
  const clock = new TestClock();
  const ends: number[] = [];
  const files = new CertificateFiles({
    certificatePath,
    keyPath,
    changed: ({ expiresMs }) => ends.push(expiresMs),
    clock,
    log: silentLogger,
  });
  stops.push(async () => files.stop());
  await expect(files.start(new AbortController().signal)).rejects.toThrow('tls.crt');
  await writeFile(certificatePath, one.certificate);
  await writeFile(keyPath, two.key);
  await expect(files.start(new AbortController().signal)).rejects.toThrow('is not the key of');
  await writeFile(keyPath, one.key);
  await files.start(new AbortController().signal);
  expect(files.current().certificate).toBe(one.certificate);
  await writeFile(certificatePath, two.certificate);
  const changed = new Promise<void>((resolve) => void files.subscribe(resolve));
  clock.advance(30_000);
  await writeFile(keyPath, two.key);
  let done = false;
  void changed.then(() => (done = true));
  await during(clock, () => (done ? true : undefined), 30_000);
  expect(files.current()).toEqual({ certificate: two.certificate, key: two.key });
  const endOf = ({ certificate }: { certificate: string }): number =>
    new X509Certificate(certificate).validToDate.getTime();
  expect(ends).toEqual([one, two].map(endOf));
});
