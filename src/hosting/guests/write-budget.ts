import { DEFAULT_WRITES } from '../../api/write-terms.ts';
import type { Clock } from '../../lib/clock.ts';
import { remember } from '../../lib/remember.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { Heed } from './heed.ts';

/** A write that is asked for. */
export interface WriteCharge {
  peer: string;
  /** Resource, namespace and name. */
  key: string;
  /** What etcd pays. */
  bytes: number;
  isDryRun: boolean;
  /** What the peer may write. */
  kibPerMinute: number;
  /** How many objects it may have in all. */
  objects: number;
}

export interface WriteRefusal {
  message: string;
  retryAfterSeconds: number;
}

interface WriteBudgetOptions {
  clock: Clock;
  /** A peer asks on and on for what it is refused, and does not wait as it is told. `message` is for people. */
  heedless: (peer: string, message: string) => void;
}

/** Minutes of the rate that may be written at once after a rest: with the default 60 MiB, for example 1,500 pods of 6 KiB. */
const BURST_MINUTES = 4;
/** All peers together may write so many times what one may: several cannot do what one cannot, and one leaves room for others. */
const ALL_FACTOR = 2;
/** How many times what it may write in a minute a heedless peer asks for in that minute until it is suspended. */
const HEEDLESS_FACTOR = 10;
/** Whoever waits longer would not see that there is room again. */
const LONGEST_WAIT_SECONDS = 120;
const MOST_PEERS = 1000;
const KIB = 1024;

interface Rated {
  kibPerMinute: number;
  bucket: TokenBucket;
}

interface Known extends Rated {
  /** What was refused, and is to come again: a debt that shrinks as the bucket fills. */
  queue: TokenBucket;
}

/** What is more than a minute's worth makes a debt: it would never find room. */
const waitOf = ({ bucket, kibPerMinute }: Rated, bytes: number): number =>
  bucket.waitMs(Math.min(bytes, kibPerMinute * KIB));

/** How long all take that were told to wait, and this one: each comes when it is its turn, and not all at the same time. */
function queueIn({ queue }: Known, bytes: number): number {
  const waitMs = queue.waitMs(0);
  return waitMs > LONGEST_WAIT_SECONDS * 1000 ? waitMs : queue.take(bytes);
}

/** What peers write, in bytes and time, each for itself and all together. In memory: after a restart everybody begins rested. */
export class WriteBudget {
  readonly #options: WriteBudgetOptions;
  readonly #heed: Heed;
  readonly #peers = new Map<string, Known>();
  #all: Rated;

  constructor(options: WriteBudgetOptions) {
    this.#options = options;
    this.#heed = new Heed(options.clock);
    this.#all = this.#makeAll(DEFAULT_WRITES.kibPerMinute);
  }

  /** Takes what a write costs; why it may not be made now, otherwise. */
  ask(charge: WriteCharge): WriteRefusal | undefined {
    const { peer, bytes, isDryRun, kibPerMinute } = charge;
    const known = this.#known(peer, kibPerMinute);
    const ownMs = waitOf(known, bytes);
    const waitMs = Math.max(ownMs, waitOf(this.#all, bytes));
    if (waitMs === 0) {
      if (isDryRun) return undefined;
      known.bucket.take(bytes);
      this.#all.bucket.take(bytes);
      return undefined;
    }
    const queuedMs = isDryRun ? 0 : queueIn(known, bytes);
    const seconds = Math.ceil(Math.max(waitMs, queuedMs) / 1000);
    const retryAfterSeconds = Math.min(LONGEST_WAIT_SECONDS, Math.max(1, seconds));
    if (!isDryRun) this.#listen(charge, retryAfterSeconds * 1000);
    return { message: refusalText(charge, ownMs > 0), retryAfterSeconds };
  }

  #listen({ peer, key, bytes, kibPerMinute, objects }: WriteCharge, waitMs: number): void {
    const mostBytes = kibPerMinute * KIB * HEEDLESS_FACTOR;
    if (!this.#heed.refused({ peer, key, bytes, waitMs, mostKeys: objects, mostBytes })) return;
    this.#heed.forget(peer);
    this.#options.heedless(
      peer,
      `within a minute it has asked for more than ${HEEDLESS_FACTOR} times what it may write in that time ` +
        `(${kibPerMinute} KiB), and has not waited as it was told`,
    );
  }

  #known(peer: string, kibPerMinute: number): Known {
    const found = this.#peers.get(peer);
    const known = found?.kibPerMinute === kibPerMinute ? found : this.#make(kibPerMinute);
    remember(this.#peers, peer, known, MOST_PEERS);
    if (kibPerMinute > this.#all.kibPerMinute) this.#all = this.#makeAll(kibPerMinute);
    return known;
  }

  #make(kibPerMinute: number): Known {
    return {
      kibPerMinute,
      bucket: this.#bucket(kibPerMinute, BURST_MINUTES),
      queue: this.#bucket(kibPerMinute, 0),
    };
  }

  /** Of the highest rate that any peer has. */
  #makeAll(kibPerMinute: number): Rated {
    return { kibPerMinute, bucket: this.#bucket(kibPerMinute * ALL_FACTOR, BURST_MINUTES) };
  }

  #bucket(kibPerMinute: number, burstMinutes: number): TokenBucket {
    const perMinute = kibPerMinute * KIB;
    const { clock } = this.#options;
    return new TokenBucket({ clock, burst: perMinute * burstMinutes, perSecond: perMinute / 60 });
  }
}

const refusalText = ({ peer, kibPerMinute }: WriteCharge, isOwn: boolean): string =>
  isOwn
    ? `budget of writes of peer ${peer} is spent: it may write ${kibPerMinute} KiB a minute over all its namespaces ` +
      '(writes.kibPerMinute of the SharingPolicy of this cluster); it may come again later'
    : `budget of writes of all peers together is spent, and peer ${peer} has to wait, too (twice the highest ` +
      'writes.kibPerMinute of the SharingPolicies of this cluster); it may come again later';
