import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { LanLink } from './link.ts';
import { type LanRecord, recordKey, responsePacket } from './wire.ts';

/** RFC 6762, section 6: records that others may have as well wait, so that not all hosts answer at once. */
const SHARED_DELAY_MS = 20;
const SHARED_SPREAD_MS = 100;
/** A record is multicast at most once a second, and at most four times a second when it is defended. */
const SAME_RECORD_MS = 1000;
const DEFENCE_MS = 250;

export interface OutboxOptions {
  clock: Clock;
  random: Random;
  link: LanLink;
}

/** Sends the multicast answers of one link: it gathers and delays them, and sends none too often. */
export class Outbox {
  readonly #options: OutboxOptions;
  /** When each of our own few records was last multicast. */
  readonly #sentAt = new Map<string, number>();
  readonly #answers = new Map<string, LanRecord>();
  readonly #additionals = new Map<string, LanRecord>();
  #dueAt = Infinity;
  #cancel = (): void => undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Takes answers to a question. Records that were sent less than a second ago wait until the second is over. */
  add(answers: readonly LanRecord[], additionals: readonly LanRecord[]): void {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    const shared = answers.some(({ flush }) => !flush);
    let at = now + (shared ? SHARED_DELAY_MS + random() * SHARED_SPREAD_MS : 0);
    for (const record of answers) {
      at = Math.max(at, this.#sent(record) + SAME_RECORD_MS);
      this.#answers.set(recordKey(record), record);
    }
    for (const record of additionals) this.#additionals.set(recordKey(record), record);
    if (at >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = at;
    this.#cancel = clock.after(at - now, () => this.#flush());
  }

  defend(answers: readonly LanRecord[], additionals: readonly LanRecord[]): void {
    const now = this.#options.clock.monotonic();
    const due = answers.filter((record) => this.#sent(record) + DEFENCE_MS <= now);
    if (due.length > 0) this.sendNow(due, additionals);
  }

  sendNow(answers: readonly LanRecord[], additionals: readonly LanRecord[]): void {
    const now = this.#options.clock.monotonic();
    for (const record of [...answers, ...additionals]) this.#sentAt.set(recordKey(record), now);
    void this.#options.link.send(responsePacket([...answers], [...additionals]));
  }

  /** Somebody else gave the answer that we were about to give (RFC 6762, 7.4). */
  heard(records: readonly LanRecord[]): void {
    for (const record of records) {
      const key = recordKey(record);
      const ours = this.#answers.get(key);
      if (ours !== undefined && !ours.flush && record.ttl >= ours.ttl) this.#answers.delete(key);
    }
  }

  clear(): void {
    this.#cancel();
    this.#dueAt = Infinity;
    this.#answers.clear();
    this.#additionals.clear();
    this.#sentAt.clear();
  }

  #flush(): void {
    const now = this.#options.clock.monotonic();
    const waiting = [...this.#answers.values()];
    const additionals = [...this.#additionals.values()];
    const [due, early] = [true, false].map((isDue) =>
      waiting.filter((record) => this.#sent(record) + SAME_RECORD_MS <= now === isDue),
    ) as [LanRecord[], LanRecord[]];
    this.#dueAt = Infinity;
    this.#answers.clear();
    this.#additionals.clear();
    if (due.length > 0) {
      const sent = new Set(due);
      this.sendNow(
        due,
        additionals.filter((record) => !sent.has(record)),
      );
    }
    if (early.length > 0) this.add(early, []);
  }

  #sent(record: LanRecord): number {
    return this.#sentAt.get(recordKey(record)) ?? -Infinity;
  }
}
