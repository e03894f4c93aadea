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
