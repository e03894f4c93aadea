import { isIP, SocketAddress } from 'node:net';
import type { OwnRecords } from './own-records.ts';
import type { LanRecord } from './wire.ts';
import { nameKey, recordKey } from './wire.ts';

/** Numbers of record types (RFC 1035, 3596, 2782), in whose order a tie is broken. */
const TYPE_NUMBER = { A: 1, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, NSEC: 47 } as const;

/**
 * Records of others about a name that is ours alone. What equals a record of ours is our own packet that comes back,
 * or a second responder that speaks for us; so is an address of this host on another of its interfaces.
 */
export function foreignClaims(
  own: OwnRecords,
  records: readonly LanRecord[],
  isOwnAddress: (address: string) => boolean,
): LanRecord[] {
  const names = new Set([nameKey(own.instance), nameKey(own.host)]);
  const ours = new Set(own.unique.map(recordKey));
  return records.filter((record) => {
    if (record.type === 'PTR' || record.type === 'NSEC' || record.ttl === 0) return false;
    if (!names.has(nameKey(record.name)) || ours.has(recordKey(record))) return false;
    return !((record.type === 'A' || record.type === 'AAAA') && isOwnAddress(record.data));
  });
}

/**
 * Two hosts probe for one name at once: the one whose records come later in order has it (RFC 6762, 8.2.1). Says
 * whether we lose.
 */
export function losesTie(own: OwnRecords, proposed: readonly LanRecord[]): boolean {
  for (const name of [nameKey(own.instance), nameKey(own.host)]) {
    const ofName = (record: LanRecord): boolean => nameKey(record.name) === name;
    const theirs = proposed
      .filter(ofName)
      .map(sortable)
      .toSorted((a, b) => a.compare(b));
    if (theirs.length === 0) continue;
    const ours = own.unique
      .filter(ofName)
      .map(sortable)
      .toSorted((a, b) => a.compare(b));
    const order = compareLists(ours, theirs);
    if (order !== 0) return order < 0;
  }
  return false;
}

function compareLists(ours: readonly Buffer[], theirs: readonly Buffer[]): number {
  for (let index = 0; index < Math.max(ours.length, theirs.length); index++) {
    const [a, b] = [ours[index], theirs[index]];
    if (a === undefined) return -1;
    if (b === undefined) return 1;
    const order = a.compare(b);
    if (order !== 0) return order;
  }
  return 0;
}

/** Class (always IN), type, data as on the wire without compression; the order of the bytes is the order of records. */
function sortable(record: LanRecord): Buffer {
  return Buffer.concat([Buffer.from([TYPE_NUMBER[record.type]]), dataBytes(record)]);
}

function dataBytes({ type, data }: LanRecord): Buffer {
  switch (type) {
    case 'A':
    case 'AAAA':
      return addressBytes(data);
    case 'PTR':
      return nameBytes(data);
    case 'SRV':
      return Buffer.concat([
        Buffer.from([0, 0, 0, 0, data.port >> 8, data.port & 255]),
        nameBytes(data.target),
      ]);
    case 'TXT':
      return Buffer.concat(data.flatMap((part) => [Buffer.from([part.length]), part]));
    case 'NSEC':
    default:
      return Buffer.alloc(0);
  }
}

const nameBytes = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').flatMap((label) => {
      const bytes = Buffer.from(label);
      return [Buffer.from([bytes.length]), bytes];
    }),
    Buffer.from([0]),
  ]);

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  // The one spelling expands `::` nowhere, so fill the gap by hand; the address itself was checked by the library.
  const { address: text } = new SocketAddress({ address, family: 'ipv6' });
  const [head = '', tail = ''] = text.split('::');
  const left = head.split(':').filter((group) => group !== '');
  const right = tail.split(':').filter((group) => group !== '');
  const middle = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return Buffer.concat([...left, ...middle, ...right].map((group) => hexGroup(group)));
}

const hexGroup = (group: string): Buffer => {
  const value = Number.parseInt(group, 16);
  return Buffer.from([value >> 8, value & 255]);
};
