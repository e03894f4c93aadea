import type { Clock } from '../lib/clock.ts';
import { remember } from '../lib/remember.ts';
import { TokenBucket } from '../lib/token-bucket.ts';

export interface ByteRate {
  /** What may be written for a peer at once, after a rest. */
  burstMiB: number;
  mibPerMinute: number;
}

interface PeerWritesOptions extends ByteRate {
  clock: Clock;
}

const MIB = 1024 * 1024;
/** Of each version: key, revision, index, and what does not fill a page of etcd's file. */
const VERSION_BYTES = 1024;
const MOST_PEERS = 1000;
/** Of one peer. Who has more objects that wait, has some of them wait for longer. */
const MOST_TURNS = 65_536;

/** Of JSON, and what comes with each version. */
export const versionBytes = (object: object): number =>
  VERSION_BYTES + Buffer.byteLength(JSON.stringify(object));

interface Turn {
  /** Monotonic. */
  at: number;
  /** What was taken for it. */
  bytes: number;
}

interface Known {
  bucket: TokenBucket;
  /** By key: those that wait. */
  turns: Map<string, Turn>;
}

/**
 * What we write ourselves because a peer has done something: a small write of a peer can make many large ones of ours, and none of
 * those is charged to the peer's own budget. In bytes, for each peer. Whoever asks when it is spent gets a turn, in the order of
 * asking, and comes again then: nothing is lost, and of what has changed in between the last is written. In memory: after a restart
 * all begin rested.
 */
export class PeerWrites {
  readonly #options: PeerWritesOptions;
  readonly #peers = new Map<string, Known>();

  constructor(options: PeerWritesOptions) {
    this.#options = options;
  }

  /** How long that key still waits for the turn that it has, milliseconds; 0 where it has none. To be asked before work for it. */
  untilTurn(peer: string, key: string): number {
    const turn = this.#peers.get(peer)?.turns.get(key);
    return turn === undefined ? 0 : Math.max(0, Math.ceil(turn.at - this.#options.clock.monotonic()));
  }

  /** 0: write that many bytes now. Otherwise how long to wait before asking again, milliseconds. */
  turn(peer: string, key: string, bytes: number): number {
    const { bucket, turns } = this.#known(peer);
    const turn = turns.get(key);
    if (turn === undefined) {
      const waitMs = Math.ceil(bucket.take(bytes));
      const at = this.#options.clock.monotonic() + waitMs;
      if (waitMs > 0) remember(turns, key, { at, bytes }, MOST_TURNS);
      return waitMs;
    }
    const leftMs = this.untilTurn(peer, key);
    if (leftMs > 0) return leftMs;
    turns.delete(key);
    // It may have grown while it waited.
    bucket.take(Math.max(0, bytes - turn.bytes));
    return 0;
  }

  #known(peer: string): Known {
    const known = this.#peers.get(peer) ?? { bucket: this.#bucket(), turns: new Map<string, Turn>() };
    remember(this.#peers, peer, known, MOST_PEERS);
    return known;
  }

  #bucket(): TokenBucket {
    const { clock, burstMiB, mibPerMinute } = this.#options;
    return new TokenBucket({ clock, burst: burstMiB * MIB, perSecond: (mibPerMinute * MIB) / 60 });
  }
}
