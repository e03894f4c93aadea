import { type Clock, systemClock } from '../../src/lib/clock.ts';

/**
 * Real time, but faster: an hour takes seconds. For tests over real sockets, which a clock that stands still
 * between steps would starve.
 */
export function fastClock(times: number): Clock {
  return {
    now: () => systemClock.now() * times,
    monotonic: () => systemClock.monotonic() * times,
    after: (delayMs, callback) => systemClock.after(delayMs / times, callback),
    sleep: (delayMs, signal) => systemClock.sleep(delayMs / times, signal),
  };
}
