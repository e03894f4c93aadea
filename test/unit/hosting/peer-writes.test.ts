import { describe, expect, test } from '@jest/globals';
import { PeerWrites, versionBytes } from '../../../src/hosting/peer-writes.ts';
import { StandingBytes } from '../../../src/hosting/standing-bytes.ts';
import type { KubeObject } from '../../../src/api/wire.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const MIB = 1024 * 1024;
const RATE = { burstMiB: 4, mibPerMinute: 6 } as const;

describe('what is written for a peer', () => {
  test('has a budget of bytes; who comes later has a turn after those who came before, and keeps it', async () => {
    const clock = new FakeClock();
    const writes = new PeerWrites({ clock, ...RATE });
    expect(writes.turn('rome', 'a', 4 * MIB)).toBe(0);
    expect(writes.turn('rome', 'b', MIB)).toBe(10_000);
    expect(writes.turn('rome', 'c', MIB)).toBe(20_000);
    // To ask again costs nothing, and brings nobody forward.
    expect(writes.turn('rome', 'c', MIB)).toBe(20_000);
    expect(writes.untilTurn('rome', 'b')).toBe(10_000);
    await clock.advance(10_000);
    expect(writes.untilTurn('rome', 'b')).toBe(0);
    expect(writes.turn('rome', 'b', MIB)).toBe(0);
    expect(writes.turn('rome', 'c', MIB)).toBe(10_000);
    expect(writes.turn('rome', 'b', MIB)).toBe(20_000);
    // Another peer does not wait.
    expect(writes.turn('oslo', 'b', MIB)).toBe(0);
    expect(writes.untilTurn('oslo', 'b')).toBe(0);
  });

  test('and grew while it waited is charged for that', async () => {
    const clock = new FakeClock();
    const writes = new PeerWrites({ clock, ...RATE });
    writes.turn('rome', 'a', 4 * MIB);
    const waitMs = writes.turn('rome', 'b', MIB);
    await clock.advance(waitMs);
    expect(writes.turn('rome', 'b', 3 * MIB)).toBe(0);
    expect(writes.turn('rome', 'c', MIB)).toBe(30_000);
  });

  test('without end is held to the rate', async () => {
    const clock = new FakeClock();
    const writes = new PeerWrites({ clock, ...RATE });
    let bytes = 0;
    while (clock.monotonic() < 10 * 60_000) {
      const waitMs = writes.turn('rome', 'a', MIB / 4);
      if (waitMs === 0) bytes += MIB / 4;
      else await clock.advance(waitMs);
    }
    expect(bytes).toBeLessThanOrEqual((4 + 10 * 6) * MIB);
    expect(bytes).toBeGreaterThan(60 * MIB);
  });
});

test('how much there is is known from what a watch tells, and what shrinks always fits', () => {
  const object = (bytes: number): KubeObject =>
    ({ metadata: { name: 'x'.repeat(bytes) } }) as unknown as KubeObject;
  const size = versionBytes(object(1000));
  const standing = new StandingBytes(2 * size);
  standing.note('shop/a', object(1000));
  expect(standing.fits(['shop', 'depot'], 'depot/b', size)).toBe(true);
  standing.note('depot/b', object(1000));
  expect(standing.fits(['shop', 'depot'], 'depot/c', size)).toBe(false);
  expect(standing.fits(['shop'], 'shop/c', size)).toBe(true);
  expect(standing.fits(['shop', 'depot'], 'shop/a', size + 1)).toBe(false);
  standing.note('shop/a', object(900));
  expect(standing.fits(['shop', 'depot'], 'shop/a', size)).toBe(true);
  standing.note('depot/b', undefined);
  expect(standing.fits(['shop', 'depot'], 'depot/c', size)).toBe(true);
});
