import { describe, expect, test } from '@jest/globals';
import { decode, encode } from 'dns-packet';

import { ServiceCache } from '../../../../src/discovery/lan/cache.ts';
import { Quota } from '../../../../src/lib/quota.ts';
import { queryPackets, readPacket } from '../../../../src/discovery/lan/wire.ts';
import { announcementPacket, loopPacket } from '../../../support/network/lan-packets.ts';
import { fc } from '../../../support/property.ts';

const whole = announcementPacket(
  { id: 'milan'.padEnd(26, 'a'), address: '10.0.0.2' },
  { id: 'rome'.padEnd(26, 'b'), address: 'fd00::2' },
);

/** As the socket does: the library decodes, and what it throws is a warning. */
function read(bytes: Buffer): ReturnType<typeof readPacket> {
  let packet;
  try {
    packet = decode(bytes);
  } catch {
    return undefined;
  }
  return readPacket(packet);
}

describe('hostile packets', () => {
  test.each([1, 2] as const)('names that go in a circle of %i end', (hops) => {
    expect(() => decode(loopPacket(hops))).toThrow('bad pointer');
    expect(read(loopPacket(hops))).toBeUndefined();
  });

  test('long chains of pointers take no long time', () => {
    // Every pointer leads to the one before it, and every record follows the whole chain.
    const chain = Buffer.alloc(2000);
    for (let at = 2; at < chain.length; at += 2) chain.writeUInt16BE(0xc0_00 + 12 + at - 2, at);
    const record = Buffer.from([
      0xc0 + ((12 + 1998) >> 8),
      (12 + 1998) & 255,
      0,
      1,
      0,
      1,
      0,
      0,
      0,
      1,
      0,
      4,
      1,
      2,
      3,
      4,
    ]);
    const records = Array.from({ length: 400 }, () => record);
    const header = Buffer.from([0, 0, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    header.writeUInt16BE(records.length, 6);
    // The chain sits where the first record is expected, so the packet is refused; what counts is that it ends.
    expect(read(Buffer.concat([header, chain, ...records]))).toBeUndefined();
  });

  test('bytes that are changed, cut or made up harm neither reader nor cache', () => {
    const cache = new ServiceCache({
      name: 'eth0',
      quota: new Quota(50),
      random: () => 0,
      now: () => 0,
      onChange: () => undefined,
      onRefused: () => undefined,
    });
    const feed = (bytes: Buffer): void => {
      const message = read(bytes);
      if (message?.kind !== 'response') return;
      cache.receive(message.records, '10.0.0.2');
      const { questions } = cache.sweep();
      // Whatever they named can be asked for.
      for (const packet of queryPackets({ questions, known: cache.knownAnswers(100) }))
        decode(encode(packet));
    };
    const changes = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(changes, fc.nat(whole.length), (edits, length) => {
        const bytes = Buffer.from(whole);
        for (const [at, value] of edits) bytes[at] = value;
        feed(bytes.subarray(0, Math.max(12, length)));
        feed(bytes);
      }),
      { numRuns: 3000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 12, maxLength: 400 }), (bytes) => feed(Buffer.from(bytes))),
      {
        numRuns: 2000,
      },
    );
    expect(cache.size).toBeLessThanOrEqual(50);
  });

  test('other opcodes and error codes are passed over', () => {
    for (const flags of [0x84_01, 0x8c_00]) {
      const bytes = Buffer.from(whole);
      bytes.writeUInt16BE(flags, 2);
      expect(read(bytes)).toBeUndefined();
    }
    expect(read(whole)).toBeDefined();
  });
});

test('a question that wants a unicast reply is a question', () => {
  const bytes = encode({ type: 'query', questions: [{ name: 'a.local', type: 'A' }] });
  bytes.writeUInt16BE(0x80_01, bytes.length - 2);
  expect(read(bytes)).toMatchObject({ kind: 'query', questions: [{ name: 'a.local', type: 'A' }] });
});

test('known answers that do not fit go into further packets, all but the last marked', () => {
  const known = Array.from({ length: 60 }, (_, index) => ({
    type: 'PTR' as const,
    name: '_tributary._tcp.local',
    ttl: 100,
    flush: false,
    data: `some-long-cluster-name-${index}._tributary._tcp.local`,
  }));
  const packets = queryPackets({ questions: [{ name: '_tributary._tcp.local', type: 'PTR' }], known });
  expect(packets.length).toBeGreaterThan(2);
  expect(packets.map(({ flags = 0 }) => (flags & (1 << 9)) !== 0)).toEqual([
    ...packets.slice(1).map(() => true),
    false,
  ]);
  expect(packets.flatMap(({ answers = [] }) => answers)).toEqual(known);
  expect(packets.map(({ questions = [] }) => questions.length)).toEqual([
    1,
    ...packets.slice(1).map(() => 0),
  ]);
  for (const packet of packets) expect(encode(packet).length).toBeLessThan(1472);
});
