import type { Clock } from './clock.ts';
import type { Logger } from './log.ts';

/** What nearly every part of the program is given: the time, and where to log. */
export interface Basics {
  clock: Clock;
  log: Logger;
}
