import { isIP } from 'node:net';
import { announcementTxt, instanceLabel } from '../announcement.ts';
import type { Announcement } from '../source.ts';
import { SERVICE_NAME } from './instance.ts';
import type { LanInterface } from './interfaces.ts';
import type { LanQuestion, LanRecord } from './wire.ts';
import { nameKey, recordKey, sameName } from './wire.ts';

/** RFC 6763, section 9: by it people find out which service types there are. */
const ENUMERATION = '_services._dns-sd._udp.local';
/** An endpoint is one of eight at most for those who read it. */
const MAX_ADDRESSES = 8;

export interface OwnService {
  announcement: Announcement;
  /** Counts conflicts: part of the name from 2 on. */
  attempt: number;
  ttlSeconds: number;
  /** IP addresses that are dialled instead of this host's own: a load balancer's, say. None: this host's own. */
  hosts: readonly string[];
}

export interface OwnRecords {
  /** The two names that are ours alone. */
  instance: string;
  host: string;
  /** Others may say the same: pointers. */
  shared: LanRecord[];
  /** Claimed by probing: SRV, TXT, A, AAAA. */
  unique: LanRecord[];
  /** What says that there is nothing else of our names. */
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

/** Global addresses first; both families on every link, since a host with one of them may want the other. */
function addressesOf({ hosts }: OwnService, { addresses }: LanInterface): string[] {
  if (hosts.length > 0) return hosts.slice(0, MAX_ADDRESSES);
  const near = addresses.filter(({ address }) => address.startsWith('fe80:'));
  const far = addresses.filter((own) => !near.includes(own));
  return [...far, ...near].slice(0, MAX_ADDRESSES).map(({ address }) => address);
}

export interface Reply {
  answers: LanRecord[];
  additionals: LanRecord[];
}

/**
 * What we answer: our records that are asked for and that the asker does not know (RFC 6762, 7.1), with what leads on
 * from there (RFC 6763, section 12). A type that one of our names does not have is answered with NSEC.
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

export function additionalsOf(own: OwnRecords, answers: ReadonlySet<LanRecord>): LanRecord[] {
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
