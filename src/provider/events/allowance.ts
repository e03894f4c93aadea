import type { Clock } from '../../lib/clock.ts';
import { TokenBucket, TokenBuckets } from '../../lib/token-bucket.ts';

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
  readonly #all: TokenBucket;
  readonly #pods: TokenBuckets;

  constructor(clock: Clock) {
    this.#all = new TokenBucket({ clock, ...ALL });
    this.#pods = new TokenBuckets({ clock, ...POD, maxKeys: MAX_PODS });
  }

  /** Takes a turn; returns how long (ms) until it comes, or undefined where there is none. */
  turn(podUid: string): number | undefined {
    const pod = this.#pods.of(podUid);
    if (Math.max(pod.waitMs(1), this.#all.waitMs(1)) > MAX_WAIT_MS) return undefined;
    return Math.max(pod.take(1), this.#all.take(1));
  }
}
