import type { Clock } from './clock.ts';

/** Timers may fire so much before their time by another clock; what is due then must not wait for another point less. */
const EARLY_MS = 10;

/**
 * How long to wait for the last point of a grid that comes within `ms`. All who wait on one grid are woken together, and a process at
 * rest costs what it is woken.
 *
 * @param nowMs by the clock whose multiples are the grid; by the wall clock it is the same in all processes on all hosts, and the wait keeps its bounds when that clock jumps
 * @param gridMs not more than `ms`; from the second time on, the wait is `ms` if that is a multiple of it
 */
export function onGridMs(nowMs: number, ms: number, gridMs: number): number {
  return Math.max(0, Math.floor((nowMs + ms + EARLY_MS) / gridMs) * gridMs - nowMs);
}

/** From one moment of a process to the next. Three are in the 10 s after which Leases are renewed. */
const MOMENT_MS = 3_200;

/**
 * How long to wait for the last moment that comes within `ms`. In these moments a process does what it does for each of its peers again and
 * again, so that it is woken for all of them together. What lasts less than from one moment to the next waits for none.
 */
export function untilMomentMs(clock: Pick<Clock, 'monotonic'>, ms: number): number {
  return ms < MOMENT_MS ? ms : onGridMs(clock.monotonic(), ms, MOMENT_MS);
}
