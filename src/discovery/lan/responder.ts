import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { type LanLink, MDNS_PORT, type PacketSource } from './link.ts';
import { Outbox } from './outbox.ts';
import { foreignClaims, losesTie, type OwnRecords, replyTo } from './own-records.ts';
import {
  type LanQuery,
  type LanQuestion,
  type LanRecord,
  queryPackets,
  recordKey,
  responsePacket,
} from './wire.ts';

/** RFC 6762, section 8. */
const PROBE_START_MS = 250;
const PROBE_INTERVAL_MS = 250;
const PROBES = 3;
const TIE_WAIT_MS = 1000;
/** When the second and third announcement follow the one before. */
const ANNOUNCE_AGAIN_MS = [1000, 2000];
/** RFC 6762, 6.7: what is told to resolvers that keep no mDNS cache. */
const LEGACY_TTL_SECONDS = 10;

/** RFC 6762, 7.2: more known answers may be on their way. */
const MORE_DELAY_MS = 400;
const MORE_SPREAD_MS = 100;
const MAX_WAITING = 64;
const MAX_KNOWN = 1000;
/** Of one query, in all of its packets. */
const MAX_QUESTIONS = 512;
/** For all packets of one query, however many come. */
const MOST_WAIT_MS = 2_000;

interface ResponderOptions {
  clock: Clock;
  random: Random;
  link: LanLink;
  isOwnAddress: (address: string) => boolean;
  /** Called when somebody else has our name: another one must be taken, on all links. */
  onConflict: () => void;
}

type State = 'idle' | 'probing' | 'owner';

/** Claims our names on one link, announces them, answers questions about them, and takes them back (RFC 6762, 6 to 10). */
export class Responder {
  readonly #options: ResponderOptions;
  readonly #outbox: Outbox;
  readonly #pending: PendingQueries;
  #own: OwnRecords | undefined;
  #state: State = 'idle';
  #cancel = (): void => undefined;

  constructor(options: ResponderOptions) {
    this.#options = options;
    const { clock, random, link } = options;
    this.#outbox = new Outbox({ clock, random, link });
    this.#pending = new PendingQueries({ clock, random, answer: (query, from) => this.#answer(query, from) });
  }

  get state(): State {
    return this.#state;
  }

  /** Claims the names after `waitMs`. What was said under other names must have been withdrawn before. */
  claim(own: OwnRecords, waitMs = 0): void {
    this.#own = own;
    this.#state = 'probing';
    this.#outbox.clear();
    this.#later(waitMs + this.#options.random() * PROBE_START_MS, () => this.#probe(own, 1));
  }

  /** Announces new data of names that are ours (RFC 6762, 8.4). */
  update(own: OwnRecords): void {
    const before = this.#own?.unique ?? [];
    this.#own = own;
    if (this.#state === 'probing') this.claim(own);
    if (this.#state !== 'owner') return;
    const kept = new Set(own.unique.map(recordKey));
    void this.#takeBack(before.filter((record) => !kept.has(recordKey(record))));
    this.#announce(own, 0);
  }

  /** Says goodbye where something was announced. Resolves when the goodbye is on its way. */
  async withdraw(): Promise<void> {
    const own = this.#own;
    const said = this.#state === 'owner';
    this.stop();
    if (own === undefined || !said) return;
    await this.#takeBack([...own.shared.slice(0, 1), ...own.unique]);
  }

  stop(): void {
    this.#own = undefined;
    this.#state = 'idle';
    this.#cancel();
    this.#outbox.clear();
    this.#pending.clear();
  }

  receiveQuery(query: LanQuery, from: PacketSource): void {
    const own = this.#own;
    if (own === undefined) return;
    if (this.#state === 'probing') {
      const claims = foreignClaims(own, query.proposed, this.#options.isOwnAddress);
      if (claims.length > 0 && losesTie(own, query.proposed)) {
        this.#later(TIE_WAIT_MS, () => this.#probe(own, 1));
      }
      return;
    }
    if (query.proposed.length > 0) this.#defend(own, query);
    else this.#pending.add(query, from);
  }

  receiveResponse(records: readonly LanRecord[]): void {
    const own = this.#own;
    if (own === undefined || this.#state === 'idle') return;
    this.#outbox.heard(records);
    if (foreignClaims(own, records, this.#options.isOwnAddress).length === 0) return;
    if (this.#state === 'probing') {
      this.#options.onConflict();
    } else {
      // RFC 6762, section 9: whoever was there first will defend it.
      this.claim(own);
    }
  }

  #probe(own: OwnRecords, count: number): void {
    const { link } = this.#options;
    if (count > PROBES) {
      this.#state = 'owner';
      this.#announce(own, 0);
      return;
    }
    const questions: LanQuestion[] = [own.instance, own.host].map((name) => ({ name, type: 'ANY' }));
    // Proposed records say nothing of replacing others (RFC 6762, 10.2).
    const proposed = own.unique.map((record) => ({ ...record, flush: false }));
    for (const packet of queryPackets({ questions, proposed })) void link.send(packet);
    this.#later(PROBE_INTERVAL_MS, () => this.#probe(own, count + 1));
  }

  #announce(own: OwnRecords, count: number): void {
    this.#outbox.sendNow([...own.shared, ...own.unique], own.negative);
    const next = ANNOUNCE_AGAIN_MS[count];
    if (next !== undefined) this.#later(next, () => this.#announce(own, count + 1));
  }

  /** Answers a host that probes at once, before it believes that the name is free (RFC 6762, section 6). */
  #defend(own: OwnRecords, query: LanQuery): void {
    const { answers, additionals } = replyTo(own, query.questions, []);
    if (answers.length > 0) this.#outbox.defend(answers, additionals);
  }

  #answer(query: LanQuery, from: PacketSource): void {
    const own = this.#own;
    if (own === undefined || this.#state !== 'owner') return;
    const legacy = from.port !== MDNS_PORT;
    const { answers, additionals } = replyTo(own, query.questions, legacy ? [] : query.known);
    if (answers.length === 0) return;
    if (legacy) this.#answerLegacy({ query, from }, answers, additionals);
    else this.#outbox.add(answers, additionals);
  }

  /** Gives an ordinary resolver that asked the group an ordinary answer. */
  #answerLegacy(
    { query, from }: { query: LanQuery; from: PacketSource },
    answers: LanRecord[],
    additionals: LanRecord[],
  ): void {
    const plain = (record: LanRecord): LanRecord => ({
      ...record,
      flush: false,
      ttl: Math.min(record.ttl, LEGACY_TTL_SECONDS),
    });
    const packet = responsePacket(answers.map(plain), additionals.map(plain));
    const questions = query.questions.map(({ name, type }) => ({ name, type: type as 'A' }));
    void this.#options.link.send({ ...packet, id: query.id, questions }, from);
  }

  /** RFC 6762, 10.1. */
  async #takeBack(records: readonly LanRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#options.link.send(responsePacket(records.map((record) => ({ ...record, ttl: 0 }))));
  }

  #later(ms: number, what: () => void): void {
    this.#cancel();
    this.#cancel = this.#options.clock.after(ms, what);
  }
}

interface PendingQueriesOptions {
  clock: Clock;
  random: Random;
  answer: (query: LanQuery, from: PacketSource) => void;
}

/** Puts queries together whose known answers came in several packets. */
class PendingQueries {
  readonly #options: PendingQueriesOptions;
  readonly #waiting = new Map<string, { query: LanQuery; endsAtMs: number; cancel: () => void }>();

  constructor(options: PendingQueriesOptions) {
    this.#options = options;
  }

  add(query: LanQuery, from: PacketSource): void {
    const key = `${from.address} ${from.port}`;
    const before = this.#waiting.get(key);
    if (before === undefined && !query.truncated) {
      this.#options.answer(query, from);
      return;
    }
    if (before === undefined && this.#waiting.size >= MAX_WAITING) return;
    before?.cancel();
    const whole: LanQuery = {
      ...query,
      questions: [...(before?.query.questions ?? []), ...query.questions].slice(0, MAX_QUESTIONS),
      known: [...(before?.query.known ?? []), ...query.known].slice(0, MAX_KNOWN),
    };
    const finish = (): void => {
      this.#waiting.delete(key);
      this.#options.answer(whole, from);
    };
    const { clock, random } = this.#options;
    const nowMs = clock.monotonic();
    const endsAtMs = before?.endsAtMs ?? nowMs + MOST_WAIT_MS;
    const waitMs = Math.min(MORE_DELAY_MS + random() * MORE_SPREAD_MS, Math.max(0, endsAtMs - nowMs));
    this.#waiting.set(key, { query: whole, endsAtMs, cancel: clock.after(waitMs, finish) });
  }

  clear(): void {
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }
}
