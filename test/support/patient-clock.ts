import { type Clock, systemClock } from '../../src/lib/clock.ts';

const PART_MS = 5;

/**
 * Real time where the process has a processor to itself. Where it has to share one, delays become longer: they pass
 * in parts of 5 ms, and each part takes at least a whole turn of the event loop, with all that sockets have to tell.
 * For tests over real sockets with short times: there a busy machine looks like a peer that does not answer.
 */
export const patientClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  after: (delayMs, callback) => {
    let isCancelled = false;
    let cancel = (): void => undefined;
    const pass = (leftMs: number): void => {
      const partMs = Math.min(leftMs, PART_MS);
      cancel = systemClock.after(partMs, () =>
        setImmediate(() => {
          if (isCancelled) return;
          if (leftMs > partMs) pass(leftMs - partMs);
          else callback();
        }),
      );
    };
    pass(Math.max(0, delayMs));
    return () => {
      isCancelled = true;
      cancel();
    };
  },
  sleep: async (delayMs, signal) => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = patientClock.after(delayMs, resolve);
    const abort = (): void => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', abort);
    }
  },
};
