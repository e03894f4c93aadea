import type { Clock } from '../../lib/clock.ts';
import { TokenBucket, TokenBuckets } from '../../lib/token-bucket.ts';
import type { RemoteEvent } from './remote-events.ts';

/** An event that is to be told. */
export interface Waiting {
  readonly event: RemoteEvent;
  /** Monotonic ms. */
  readonly receivedAt: number;
  /** When its turn comes, monotonic ms; undefined while none has been asked for. */
  dueAt: number | undefined;
}

/** For one pod at a time; a well-behaved kubelet has fewer than ten. */
const MAX_PER_POD = 32;
/** Of one virtual node: some megabytes at 1 KiB each, whatever a foreign cluster sends. */
const MAX_WAITING = 4096;

/** Events that wait to be told: by key, the latest state of each. What does not fit is not told. */
export class EventInbox {
  readonly #waiting = new Map<string, Waiting>();
  readonly #perPod = new Map<string, number>();
  /** Events that did not fit. */
  dropped = 0;

  get(key: string): Waiting | undefined {
    return this.#waiting.get(key);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Returns whether there was room. An earlier state of the same event is replaced, and its turn kept. */
  offer(key: string, event: RemoteEvent, nowMs: number): boolean {
    const known = this.#waiting.get(key);
    if (known === undefined && !this.#hasRoom(event.podUid)) {
      this.dropped++;
      return false;
    }
    this.remove(key);
    this.#put(key, { event, receivedAt: known?.receivedAt ?? nowMs, dueAt: known?.dueAt });
    return true;
  }

  /** After a failed write: it waits again, unless a later state has come in the meantime. */
  putBack(key: string, waiting: Waiting): boolean {
    if (this.#waiting.has(key) || !this.#hasRoom(waiting.event.podUid)) return this.#waiting.has(key);
    this.#put(key, waiting);
    return true;
  }

  remove(key: string): void {
    const known = this.#waiting.get(key);
    if (known === undefined) return;
    this.#waiting.delete(key);
    const { podUid } = known.event;
    const left = (this.#perPod.get(podUid) ?? 1) - 1;
    if (left > 0) this.#perPod.set(podUid, left);
    else this.#perPod.delete(podUid);
  }

  #put(key: string, waiting: Waiting): void {
    const { podUid } = waiting.event;
    this.#waiting.set(key, waiting);
    this.#perPod.set(podUid, (this.#perPod.get(podUid) ?? 0) + 1);
  }

  #hasRoom(podUid: string): boolean {
    return this.#waiting.size < MAX_WAITING && (this.#perPod.get(podUid) ?? 0) < MAX_PER_POD;
  }
}

/** For one pod: a burst as in client-go's spam filter, then one a minute for events that are counted on. */
const POD = { burst: 25, perSecond: 1 / 60 };
/** For one virtual node: enough for a rollout of forty pods at once, then so few that the home API server does not notice. */
const ALL = { burst: 200, perSecond: 10 };
/** An event whose turn would come later than this is not told. */
const MAX_WAIT_MS = 10 * 60_000;
/** Pods that are remembered. For a forgotten pod the burst begins anew, but the limit of the virtual node still holds. */
const MAX_PODS = 4096;

/** Limits how fast events are told at home, whatever the foreign cluster sends. */
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
