import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';
import { createLogger } from '../../../../src/lib/log.ts';
import { PeeringCertificate } from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const HOUR_MS = 3_600_000;
const signer = Identity.generate();
let clock: FakeClock;
let certificate: PeeringCertificate;
let renewals: number;
let lines: string[];
let broken: boolean;

beforeEach(async () => {
  clock = new FakeClock();
  [renewals, lines, broken] = [0, [], false];
  certificate = new PeeringCertificate({
    signer: {
      clusterID: signer.clusterID,
      publicKey: signer.publicKey,
      certificateKeys: () => {
        if (broken) throw new Error('no entropy');
        return signer.certificateKeys();
      },
    },
    clock,
    random: () => 0.5,
    log: createLogger({ level: 'info', now: () => 0, write: (line) => lines.push(line) }),
  });
  await certificate.start(new AbortController().signal);
  certificate.subscribe(() => renewals++);
});
afterEach(async () => certificate.stop());

/** Renewing takes real time, in which the clock stands still. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 60_000) {
    await clock.advance(Math.min(left, 60_000));
    await eventually('it sleeps again', () => clock.pending > 0);
  }
}
const validTo = (): number => new X509Certificate(certificate.current().certificate).validToDate.getTime();

describe('our leaf', () => {
  test('is valid for a day, from an hour ago', () => {
    const { validFromDate, validToDate } = new X509Certificate(certificate.current().certificate);
    expect(validToDate.getTime() - clock.now()).toBe(24 * HOUR_MS);
    expect(clock.now() - validFromDate.getTime()).toBe(HOUR_MS);
    expect(certificate.current().certificate.match(/BEGIN/g)).toHaveLength(2);
    expect(certificate.current().key).toContain('BEGIN PRIVATE KEY');
  });

  test('is replaced at about two thirds of its life, again and again', async () => {
    await pass(15 * HOUR_MS);
    expect(renewals).toBe(0);
    await pass(HOUR_MS);
    expect(renewals).toBe(1);
    expect(validTo()).toBeGreaterThan(clock.now() + 23 * HOUR_MS);
    await pass(48 * HOUR_MS);
    expect(renewals).toBe(4);
  });

  test('follows the wall clock where that is set, either way', async () => {
    clock.jump(17 * HOUR_MS);
    await pass(120_000);
    expect(renewals).toBe(1);
    expect(validTo()).toBeGreaterThan(clock.now() + 23 * HOUR_MS);
    clock.jump(-10 * HOUR_MS);
    await pass(120_000);
    expect(renewals).toBe(2);
    await pass(HOUR_MS);
    expect(renewals).toBe(2);
  });

  test('stays as it is while no new one can be made, which is tried again', async () => {
    const before = certificate.current();
    broken = true;
    await pass(17 * HOUR_MS);
    expect(certificate.current()).toBe(before);
    expect(lines.filter((line) => line.includes('no entropy')).length).toBeGreaterThan(1);
    broken = false;
    await pass(120_000);
    expect(renewals).toBe(1);
    expect(certificate.current()).not.toBe(before);
  });
});
