import { type Candidate, SERVICE_TYPE } from '../candidates.ts';
import type { Random } from '../../lib/backoff.ts';
import type { Place } from '../../lib/quota.ts';
import { type LanQuestion, nameKey } from './wire.ts';

export const SERVICE_NAME: string = `${SERVICE_TYPE}.local`;

/** What is missing of an instance is asked for after 0.1, 1.1, 3.1 and 7.1 s. Then the instance is given up. */
const FIRST_ASK_MS = 100;
const FIRST_RETRY_MS = 1000;
const RETRY_LIMIT_MS = 10_000;

const MAX_NAME_BYTES = 253;
const MAX_LABEL_BYTES = 63;

/** RFC 6762, 5.2: at 80, 85, 90 and 95 % of its life, each up to 2 % later so that hosts do not ask together. */
const REFRESH_AT = [0.8, 0.85, 0.9, 0.95];
const REFRESH_SPREAD = 0.02;
/** RFC 6762, 10.1 and 10.2: goodbye and cache flush take effect after a second. */
const GRACE_MS = 1000;

/** A record's life on the monotonic clock. */
export interface Timed {
  receivedAt: number;
  expiresAt: number;
  /** TTL of the record in milliseconds, also where its end was brought forward. */
  ttlMs: number;
  /** When it is asked for next, to keep it. Infinity: never. */
  askAt: number;
  asked: number;
}

/** A service instance as far as it is known. */
export interface Instance {
  name: string;
  place: Place;
  /** Address of the host from which it was first heard. */
  source: string;
  firstSeen: number;
  /** Infinity while nothing is missing. */
  resolveAt: number;
  retryMs: number;
  ptr: Timed;
  srv?: Timed & { target: string; port: number };
  txt?: Timed & { strings: readonly Uint8Array[] };
  /** What the instance says, once all records are there and in order. */
  parsed?: Omit<Candidate, 'expiresAt'>;
  expiresAt: number;
}

export interface Address extends Timed {
  type: 'A' | 'AAAA';
  address: string;
}

/** A host that instances point at. */
export interface Host {
  name: string;
  instances: Set<string>;
  addresses: Map<string, Address>;
}

export const newInstance = (
  { name, place, source }: Pick<Instance, 'name' | 'place' | 'source'>,
  ptr: Timed,
): Instance => ({
  name,
  place,
  source,
  ptr,
  firstSeen: ptr.receivedAt,
  resolveAt: ptr.receivedAt + FIRST_ASK_MS,
  retryMs: FIRST_RETRY_MS,
  expiresAt: -Infinity,
});

/** Notes when to ask for what is missing. */
export function noteMissing(instance: Instance, complete: boolean, now: number): void {
  if (complete) {
    instance.resolveAt = Infinity;
    instance.retryMs = FIRST_RETRY_MS;
  } else if (instance.resolveAt === Infinity) {
    instance.resolveAt = now;
  }
}

/** Whether its pointer has expired, or its other records never came. */
export function isOver({ ptr, parsed, retryMs }: Instance, now: number): boolean {
  return ptr.expiresAt <= now || (parsed === undefined && retryMs > RETRY_LIMIT_MS);
}

/** Questions for what the instance lacks. Empty when it is not yet time for them. */
export function missing(instance: Instance, addresses: number, now: number): LanQuestion[] {
  if (instance.resolveAt > now) return [];
  instance.resolveAt = now + instance.retryMs;
  instance.retryMs *= 2;
  const { name, srv, txt } = instance;
  const questions: LanQuestion[] = [];
  if (srv === undefined) questions.push({ name, type: 'SRV' });
  if (txt === undefined) questions.push({ name, type: 'TXT' });
  if (srv !== undefined && addresses === 0) {
    questions.push({ name: srv.target, type: 'A' }, { name: srv.target, type: 'AAAA' });
  }
  return questions;
}

/** All its records that have a life of their own. */
export const livesOf = ({ ptr, srv, txt }: Instance, addresses: readonly Address[]): Timed[] =>
  [ptr, srv, txt, ...addresses].filter((life) => life !== undefined);

export const isInstanceName = (name: string): boolean =>
  nameKey(name).endsWith(`.${SERVICE_NAME}`) && isAskable(name);

/** Whether a question can carry the name. A name that DNS cannot write came from bytes that are no text. */
export function isAskable(name: string): boolean {
  if (name.includes('\u{FFFD}') || Buffer.byteLength(name) > MAX_NAME_BYTES) return false;
  return nameKey(name)
    .split('.')
    .every((label) => label !== '' && Buffer.byteLength(label) <= MAX_LABEL_BYTES);
}

export function timed(ttlSeconds: number, now: number, random: Random): Timed {
  const ttlMs = ttlSeconds * 1000;
  const life = { receivedAt: now, expiresAt: now + ttlMs, ttlMs, askAt: Infinity, asked: 0 };
  life.askAt = nextAsk(life, random);
  return life;
}

/** Notes that the record was asked for once more. */
export function wasAsked(life: Timed, random: Random): void {
  life.asked++;
  life.askAt = nextAsk(life, random);
}

function nextAsk({ receivedAt, ttlMs, asked }: Timed, random: Random): number {
  const at = REFRESH_AT[asked];
  return at === undefined ? Infinity : receivedAt + (at + random() * REFRESH_SPREAD) * ttlMs;
}

/** Brings the end forward, after a goodbye or when other records replace it. */
export function endSoon(life: Timed, now: number): void {
  life.expiresAt = Math.min(life.expiresAt, now + GRACE_MS);
  life.askAt = Infinity;
}

/** Whether a record that was received now replaces it. What came in the same second belongs to the same answer. */
export const isFlushed = (life: Timed, now: number): boolean => life.receivedAt < now - GRACE_MS;
