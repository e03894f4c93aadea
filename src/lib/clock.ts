/**
 * Time as a value that is handed in, so that tests can own it.
 *
 * `now` is wall-clock milliseconds since the epoch and may jump; use it for timestamps, and for moments that processes share (grid.ts).
 * `monotonic` is milliseconds from an arbitrary start and never goes back; use it for every interval.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Calls back once after `delayMs`; the returned function cancels. Never keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void;
  /** Resolves after `delayMs`; rejects with the signal's reason when aborted first. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Node clamps longer delays to 1 ms (setTimeout takes a 32-bit integer). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    timer.unref();
    return () => {
      // Of a timer that holds nothing Node.js keeps the place in its queue, and wakes the process for it at the time that it had.
      timer.ref();
      clearTimeout(timer);
    };
  },
  async sleep(delayMs, signal) {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A sleeper is awaited by someone, so this timer, unlike `after`, may hold the process.
    const timer = setTimeout(resolve, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    const abort = (): void => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  },
};

/** For how long this process has computed so far, with all its threads and in the kernel: seconds. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
