import { parseAnnouncement } from '../announcement.ts';
import type { Candidate } from '../candidates.ts';
import type { Random } from '../../lib/backoff.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Quota } from '../../lib/quota.ts';
import {
  type Address,
  endSoon,
  type Host,
  type Instance,
  isAskable,
  isFlushed,
  isInstanceName,
  isOver,
  livesOf,
  missing,
  newInstance,
  noteMissing,
  SERVICE_NAME,
  type Timed,
  timed,
  wasAsked,
} from './instance.ts';
import { type LanQuestion, type LanRecord, nameKey } from './wire.ts';

/** Addresses kept of one host; it may say more than it can be dialled at. */
const MAX_ADDRESSES = 16;

export type Sighting = Candidate & Pick<Instance, 'firstSeen' | 'source'>;

export interface CacheOptions {
  /** Name of the interface, which is the scope of link-local addresses. */
  name: string;
  quota: Quota;
  random: Random;
  now: () => number;
  /** Called when what is said of a cluster came, changed, was renewed or went. */
  onChange: (clusterID: string) => void;
  onRefused: (why: string, source: string) => void;
}

/** What came in on one interface about instances of our service: PTR, SRV, TXT and addresses, each with its own life. */
export class ServiceCache {
  readonly #options: CacheOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #hosts = new Map<string, Host>();
  readonly #byID = new Map<string, Set<Instance>>();

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** The number of instances that are kept, also of those that are not understood. */
  get size(): number {
    return this.#instances.size;
  }

  /** All clusters that are seen now. */
  clusterIDs(): Iterable<string> {
    return this.#byID.keys();
  }

  /**
   * What is said of a cluster. Several instances may speak of it, and any of them may lie. The sweep removes what has expired, and not
   * this method, so that nothing goes without a call of `onChange`.
   */
  sightings(clusterID: string): Sighting[] {
    return [...(this.#byID.get(clusterID) ?? [])].flatMap(({ parsed, expiresAt, firstSeen, source }) =>
      parsed === undefined ? [] : [{ ...parsed, expiresAt, firstSeen, source }],
    );
  }

  /**
   * Takes in a response: PTRs first, then what they lead to, since the order within a packet means nothing. Returns when the next
   * sweep is due for what has changed.
   */
  receive(records: readonly LanRecord[], source: string): number {
    const touched = new Set<string>();
    for (const record of records) if (record.type === 'PTR') this.#pointer(record, source, touched);
    for (const record of records) {
      if (record.type === 'SRV' || record.type === 'TXT') this.#describe(record, touched);
    }
    for (const record of records) {
      if (record.type === 'A' || record.type === 'AAAA') this.#address(record, touched);
    }
    let dueAt = Infinity;
    for (const key of touched) {
      this.#settle(key, source);
      dueAt = Math.min(dueAt, this.#dueAt(key));
    }
    return dueAt;
  }

  /** PTR records to put into a query: those with at least half of their life left (RFC 6762, 7.1). */
  knownAnswers(limit: number): LanRecord[] {
    const now = this.#options.now();
    const known: LanRecord[] = [];
    for (const { name, ptr } of this.#instances.values()) {
      const leftMs = ptr.expiresAt - now;
      if (leftMs * 2 < ptr.ttlMs || known.length >= limit) continue;
      known.push({
        type: 'PTR',
        name: SERVICE_NAME,
        data: name,
        ttl: Math.round(leftMs / 1000),
        flush: false,
      });
    }
    return known;
  }

  /** Drops what has expired. Returns what is to be asked now, and when the next sweep is due. */
  sweep(): { questions: LanQuestion[]; nextAt: number } {
    const now = this.#options.now();
    const questions = new Map<string, LanQuestion>();
    const ask = (question: LanQuestion): void => {
      questions.set(`${question.type} ${nameKey(question.name)}`, question);
    };
    this.#dropOver(now);
    let nextAt = Infinity;
    const keep = (life: Timed, question: LanQuestion): void => {
      if (life.askAt <= now) {
        ask(question);
        wasAsked(life, this.#options.random);
      }
      nextAt = Math.min(nextAt, life.askAt, life.expiresAt);
    };
    for (const instance of this.#instances.values()) {
      const { name, ptr, srv, txt } = instance;
      keep(ptr, { name: SERVICE_NAME, type: 'PTR' });
      if (srv !== undefined) keep(srv, { name, type: 'SRV' });
      if (txt !== undefined) keep(txt, { name, type: 'TXT' });
      for (const question of missing(instance, this.#addressesOf(instance).length, now)) ask(question);
      nextAt = Math.min(nextAt, instance.resolveAt);
    }
    for (const { name, addresses } of this.#hosts.values()) {
      for (const address of addresses.values()) keep(address, { name, type: address.type });
    }
    return { questions: [...questions.values()], nextAt };
  }

  clear(): void {
    for (const key of this.#instances.keys()) this.#forget(key);
  }

  #pointer(record: LanRecord & { type: 'PTR' }, source: string, touched: Set<string>): void {
    if (nameKey(record.name) !== SERVICE_NAME || !isInstanceName(record.data)) return;
    const key = nameKey(record.data);
    const { name, now, random, quota, onRefused } = this.#options;
    const known = this.#instances.get(key);
    if (known !== undefined && record.ttl === 0) {
      endSoon(known.ptr, now());
    } else if (known !== undefined) {
      known.ptr = timed(record.ttl, now(), random);
      known.place.touch();
    } else if (record.ttl > 0) {
      const place = quota.admit(`${name} ${source}`, () => this.#forget(key));
      if (place === undefined) {
        onRefused('too many announcements', source);
        return;
      }
      this.#instances.set(
        key,
        newInstance({ name: record.data, place, source }, timed(record.ttl, now(), random)),
      );
    }
    touched.add(key);
  }

  #describe(record: LanRecord & { type: 'SRV' | 'TXT' }, touched: Set<string>): void {
    const key = nameKey(record.name);
    const instance = this.#instances.get(key);
    if (instance === undefined) return;
    const now = this.#options.now();
    touched.add(key);
    if (record.ttl === 0) {
      endDescription(instance, record, now);
      return;
    }
    const life = timed(record.ttl, now, this.#options.random);
    if (record.type === 'TXT') {
      instance.txt = { ...life, strings: record.data };
    } else if (isAskable(record.data.target)) {
      this.#aim(key, instance, record.data.target);
      instance.srv = { ...life, ...record.data };
    }
  }

  /** Notes on which host the instance is. */
  #aim(key: string, instance: Instance, target: string): void {
    const host = nameKey(target);
    if (instance.srv !== undefined && nameKey(instance.srv.target) !== host) this.#leaveHost(key, instance);
    const entry = this.#hosts.get(host) ?? { name: target, instances: new Set(), addresses: new Map() };
    entry.instances.add(key);
    this.#hosts.set(host, entry);
  }

  #address(record: LanRecord & { type: 'A' | 'AAAA' }, touched: Set<string>): void {
    const host = this.#hosts.get(nameKey(record.name));
    if (host === undefined) return;
    const now = this.#options.now();
    for (const key of host.instances) touched.add(key);
    const known = host.addresses.get(record.data);
    if (record.ttl === 0) {
      if (known !== undefined) endSoon(known, now);
      return;
    }
    if (record.flush) {
      for (const other of host.addresses.values()) {
        if (other.type === record.type && isFlushed(other, now)) endSoon(other, now);
      }
    }
    if (known === undefined && host.addresses.size >= MAX_ADDRESSES) return;
    const life = timed(record.ttl, now, this.#options.random);
    host.addresses.set(record.data, { ...life, type: record.type, address: record.data });
  }

  /** Reads the instance again after something of it has changed, and calls `onChange`. */
  #settle(key: string, source: string): void {
    const instance = this.#instances.get(key);
    if (instance === undefined) return;
    const before = instance.parsed;
    const endedAt = instance.expiresAt;
    this.#read(instance, source);
    this.#index(instance, before);
    const after = instance.parsed;
    if (endedAt === instance.expiresAt && JSON.stringify(before) === JSON.stringify(after)) return;
    for (const clusterID of new Set([before?.clusterID, after?.clusterID])) {
      if (clusterID !== undefined) this.#options.onChange(clusterID);
    }
  }

  #read(instance: Instance, source: string): void {
    const { name, now, onRefused } = this.#options;
    const { ptr, srv, txt } = instance;
    const addresses = this.#addressesOf(instance);
    delete instance.parsed;
    instance.expiresAt = -Infinity;
    if (srv === undefined || txt === undefined || addresses.length === 0) {
      noteMissing(instance, false, now());
      return;
    }
    noteMissing(instance, true, now());
    const reachableUntil = Math.max(...addresses.map(({ expiresAt }) => expiresAt));
    instance.expiresAt = Math.min(ptr.expiresAt, srv.expiresAt, txt.expiresAt, reachableUntil);
    // Always in the same order, whichever came first: IPv4, then IPv6.
    const sorted = addresses.map(({ type, address }) => `${type} ${address}`).toSorted();
    const hosts = [{ port: srv.port, addresses: sorted.map((text) => text.slice(text.indexOf(' ') + 1)) }];
    try {
      instance.parsed = parseAnnouncement({ txt: txt.strings, hosts }, { scope: name });
    } catch (error) {
      onRefused(errorMessage(error), source);
    }
  }

  #index(instance: Instance, before: Instance['parsed']): void {
    const after = instance.parsed?.clusterID;
    if (before?.clusterID === after) return;
    if (before !== undefined) {
      const others = this.#byID.get(before.clusterID);
      others?.delete(instance);
      if (others?.size === 0) this.#byID.delete(before.clusterID);
    }
    if (after !== undefined) this.#byID.set(after, (this.#byID.get(after) ?? new Set()).add(instance));
  }

  #dueAt(key: string): number {
    const instance = this.#instances.get(key);
    if (instance === undefined) return Infinity;
    const lives = livesOf(instance, this.#addressesOf(instance));
    return Math.min(instance.resolveAt, ...lives.flatMap(({ askAt, expiresAt }) => [askAt, expiresAt]));
  }

  #addressesOf({ srv }: Instance): Address[] {
    return srv === undefined ? [] : [...(this.#hosts.get(nameKey(srv.target))?.addresses.values() ?? [])];
  }

  #dropOver(now: number): void {
    for (const [key, instance] of this.#instances) {
      if (isOver(instance, now)) this.#forget(key);
      else this.#dropParts(key, instance, now);
    }
    for (const { addresses, instances } of this.#hosts.values()) {
      const before = addresses.size;
      for (const [key, { expiresAt }] of addresses) if (expiresAt <= now) addresses.delete(key);
      if (addresses.size !== before) for (const key of instances) this.#settle(key, '');
    }
  }

  #dropParts(key: string, instance: Instance, now: number): void {
    const { srv, txt } = instance;
    const srvOver = srv !== undefined && srv.expiresAt <= now;
    const txtOver = txt !== undefined && txt.expiresAt <= now;
    if (srvOver) {
      this.#leaveHost(key, instance);
      delete instance.srv;
    }
    if (txtOver) delete instance.txt;
    if (srvOver || txtOver) this.#settle(key, '');
  }

  #leaveHost(key: string, { srv }: Instance): void {
    if (srv === undefined) return;
    const host = this.#hosts.get(nameKey(srv.target));
    host?.instances.delete(key);
    if (host?.instances.size === 0) this.#hosts.delete(nameKey(srv.target));
  }

  #forget(key: string): void {
    const instance = this.#instances.get(key);
    if (instance === undefined) return;
    this.#instances.delete(key);
    this.#leaveHost(key, instance);
    instance.place.release();
    const before = instance.parsed;
    delete instance.parsed;
    this.#index(instance, before);
    if (before !== undefined) this.#options.onChange(before.clusterID);
  }
}

/** A goodbye names the data of its record. It does not end a record whose data has been replaced meanwhile. */
function endDescription(
  { srv, txt }: Instance,
  record: LanRecord & { type: 'SRV' | 'TXT' },
  now: number,
): void {
  if (record.type === 'SRV') {
    const same = srv?.port === record.data.port && nameKey(srv.target) === nameKey(record.data.target);
    if (same) endSoon(srv, now);
  } else if (txt !== undefined && Buffer.concat([...txt.strings]).equals(Buffer.concat(record.data))) {
    endSoon(txt, now);
  }
}
