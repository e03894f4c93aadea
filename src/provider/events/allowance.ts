import type { Clock } from '../../lib/clock.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';

/** Of one pod: as client-go's spam filter a burst; then one a minute, for what counts on. */
const POD = { burst: 25, perSecond: 1 / 60 };
/** Of one virtual node: a rollout of forty pods at once, then no more than a home API server does not notice. */
const ALL = { burst: 200, perSecond: 10 };
/** Whose turn would come later than this is not told. */
const MAX_WAIT_MS = 10 * 60_000;
/** Pods that are remembered; of one that is not, the burst begins anew, and the rate of all holds. */
const MAX_PODS = 4096;

/** How fast events may be told at home, whatever the provider sends. */
export class Allowance {
  readonly #clock: Clock;
  readonly #all: TokenBucket;
  readonly #pods = new Map<string, TokenBucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#all = new TokenBucket({ clock, ...ALL });
  }

  /** Takes a turn; returns how long (ms) until it comes, or undefined where there is none. */
  turn(podUid: string): number | undefined {
    const pod = this.#bucketOf(podUid);
    if (Math.max(pod.waitMs(1), this.#all.waitMs(1)) > MAX_WAIT_MS) return undefined;
    return Math.max(pod.take(1), this.#all.take(1));
  }

  #bucketOf(podUid: string): TokenBucket {
    const bucket = this.#pods.get(podUid) ?? new TokenBucket({ clock: this.#clock, ...POD });
    this.#pods.delete(podUid);
    this.#pods.set(podUid, bucket);
    if (this.#pods.size > MAX_PODS) {
      for (const oldest of this.#pods.keys()) {
        this.#pods.delete(oldest);
        break;
      }
    }
    return bucket;
  }
}
