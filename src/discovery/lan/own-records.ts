import { isIP, SocketAddress } from 'node:net';

import { announcementTxt, instanceLabel } from '../announcement.ts';
import type { Announcement } from '../candidates.ts';
import { SERVICE_NAME } from './instance.ts';
import type { LanInterface } from './interfaces.ts';
import { type LanQuestion, type LanRecord, nameKey, recordKey, sameName } from './wire.ts';

/** RFC 6763, section 9: by this name people find out which service types there are. */
const ENUMERATION = '_services._dns-sd._udp.local';
/** Whoever reads an announcement takes at most eight endpoints. */
const MAX_ADDRESSES = 8;

export interface OwnService {
  announcement: Announcement;
  /** Counts conflicts. From 2 on it is part of the name. */
  attempt: number;
  ttlSeconds: number;
  /** IP addresses to dial instead of this host's own, for example those of a load balancer. Empty: this host's own. */
  hosts: readonly string[];
}

export interface OwnRecords {
  /** The two names that are ours alone. */
  instance: string;
  host: string;
  /** Pointers, which others may announce as well. */
  shared: LanRecord[];
  /** Claimed by probing: SRV, TXT, A, AAAA. */
  unique: LanRecord[];
  /** NSEC records, which say that our names have no other records. */
  negative: LanRecord[];
}

/** What we say on a link of this interface. */
export function ownRecords(service: OwnService, iface: LanInterface): OwnRecords {
  const { announcement, ttlSeconds: ttl } = service;
  const label = instanceLabel(announcement, service.attempt);
  const instance = `${label}.${SERVICE_NAME}`;
  const host = `${label}.local`;
  const shared = { ttl, flush: false };
  const unique = { ttl, flush: true };
  const addresses = addressesOf(service, iface).map((address): LanRecord => {
    return { ...unique, name: host, type: isIP(address) === 4 ? 'A' : 'AAAA', data: address };
  });
  const addressTypes = [...new Set(addresses.map(({ type }) => type))].toSorted();
  return {
    instance,
    host,
    shared: [
      { ...shared, name: SERVICE_NAME, type: 'PTR', data: instance },
      { ...shared, name: ENUMERATION, type: 'PTR', data: SERVICE_NAME },
    ],
    unique: [
      { ...unique, name: instance, type: 'SRV', data: { target: host, port: announcement.port } },
      {
        ...unique,
        name: instance,
        type: 'TXT',
        data: announcementTxt(announcement).map((text) => Buffer.from(text)),
      },
      ...addresses,
    ],
    negative: [
      { ...unique, name: instance, type: 'NSEC', data: { nextDomain: instance, rrtypes: ['TXT', 'SRV'] } },
      { ...unique, name: host, type: 'NSEC', data: { nextDomain: host, rrtypes: addressTypes } },
    ],
  };
}

/** Global addresses come first. Both families are told on every link, since a host that asks by one may want the other. */
function addressesOf({ hosts }: OwnService, { addresses }: LanInterface): string[] {
  if (hosts.length > 0) return hosts.slice(0, MAX_ADDRESSES);
  const near = addresses.filter(({ address }) => address.startsWith('fe80:'));
  const far = addresses.filter((own) => !near.includes(own));
  return [...far, ...near].slice(0, MAX_ADDRESSES).map(({ address }) => address);
}

interface Reply {
  answers: LanRecord[];
  additionals: LanRecord[];
}

/**
 * Our answer: those of our records that are asked for and that the asker does not know (RFC 6762, 7.1), and the records to which they
 * lead (RFC 6763, section 12). A type that one of our names does not have is answered with NSEC.
 */
export function replyTo(
  own: OwnRecords,
  questions: readonly LanQuestion[],
  known: readonly LanRecord[],
): Reply {
  const answers = new Set<LanRecord>();
  for (const question of questions) {
    const found = [...own.shared, ...own.unique].filter((record) => isAsked(record, question));
    const none = found.length > 0 ? [] : own.negative.filter(({ name }) => sameName(name, question.name));
    for (const record of [...found, ...none]) if (!isKnown(record, known)) answers.add(record);
  }
  return { answers: [...answers], additionals: additionalsOf(own, answers) };
}

const isAsked = (record: LanRecord, { name, type }: LanQuestion): boolean =>
  (type === 'ANY' || type === record.type) && sameName(record.name, name);

const isKnown = (record: LanRecord, known: readonly LanRecord[]): boolean =>
  known.some((other) => other.ttl * 2 >= record.ttl && recordKey(other) === recordKey(record));

function additionalsOf(own: OwnRecords, answers: ReadonlySet<LanRecord>): LanRecord[] {
  const names = new Set<string>();
  for (const answer of answers) {
    if (answer.type === 'PTR' && sameName(answer.data, own.instance)) {
      names.add(nameKey(own.instance)).add(nameKey(own.host));
    }
    if (answer.type === 'SRV') names.add(nameKey(own.host));
  }
  return [...own.unique, ...own.negative].filter(
    (record) => names.has(nameKey(record.name)) && !answers.has(record),
  );
}

/** Numbers of record types (RFC 1035, 3596, 2782). Their order decides a tie. */
const TYPE_NUMBER = { A: 1, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, NSEC: 47 } as const;

/**
 * Records of others about a name that is ours alone. A record that equals ours comes from our own packet, or from a second responder
 * that speaks for us, and so does an address of this host on another of its interfaces.
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
 * Whether we lose when two hosts probe for one name at the same time. The host whose records come later in the order has it (RFC 6762,
 * 8.2.1).
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
  // The one spelling keeps `::`, so the gap is filled here. The library has checked the address itself.
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
