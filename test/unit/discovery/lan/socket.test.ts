import { describe, expect, test } from '@jest/globals';

import { Guard } from '../../../../src/discovery/lan/socket.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { announcementPacket } from '../../../support/network/lan-packets.ts';
import { onlyInterface } from './support/lan-wire.ts';

const from = (address: string, port = 5353): { address: string; port: number } => ({ address, port });
const packet = announcementPacket({ id: 'milan'.padEnd(26, 'a'), address: '10.0.0.2' });
const query = Buffer.from(packet);
query.writeUInt16BE(0, 2);

describe('before a packet is parsed', () => {
  const makeGuard = (clock = new FakeClock()): Guard => new Guard(onlyInterface('10.0.0.1'), clock);

  test.each([
    [undefined, packet, from('10.0.0.2')],
    ['OffLink', packet, from('192.0.2.1')],
    ['TooLarge', Buffer.concat([packet, Buffer.alloc(9000)]), from('10.0.0.2')],
    ['TooShort', packet.subarray(0, 11), from('10.0.0.2')],
    ['TooShort', Buffer.alloc(0), from('10.0.0.2')],
    ['WrongPort', packet, from('10.0.0.2', 5354)],
    // Ordinary resolvers ask from ports of their own (RFC 6762, 6.7).
    [undefined, query, from('10.0.0.2', 40_000)],
  ])('it is judged: %s', (expected, bytes, source) => {
    expect(makeGuard().refusal(bytes, source)).toBe(expected);
  });

  test('one that says it has many records is refused', () => {
    const bytes = Buffer.from(packet);
    bytes.writeUInt16BE(513, 10);
    expect(makeGuard().refusal(bytes, from('10.0.0.2'))).toBe('TooManyRecords');
  });

  test('a host has a rate, and another host its own', async () => {
    const clock = new FakeClock();
    const guard = makeGuard(clock);
    const many = (address: string, count: number): number =>
      Array.from({ length: count }, () => guard.refusal(packet, from(address))).filter(
        (why) => why === undefined,
      ).length;
    expect(many('10.0.0.2', 500)).toBe(100);
    expect(many('10.0.0.3', 10)).toBe(10);
    await clock.advance(1000);
    expect(many('10.0.0.2', 500)).toBe(20);
  });

  test('all hosts together have one, too', () => {
    const guard = makeGuard();
    const passed = Array.from({ length: 5000 }, (_, index) =>
      guard.refusal(packet, from(`10.0.0.${(index % 250) + 2}`)),
    ).filter((why) => why === undefined);
    expect(passed).toHaveLength(2000);
  });
});
