/** Cancels many timers, and prints how often this process was woken until after the last of them would have fired. */
import { readFileSync } from 'node:fs';

import { systemClock } from '../../../../src/lib/clock.ts';

const TIMERS = 40;

const wakeUps = (): number =>
  Number(
    /^voluntary_ctxt_switches:\s+(\d+)$/mu.exec(
      readFileSync(`/proc/self/task/${process.pid}/status`, 'utf8'),
    )?.[1],
  );

const ended = systemClock.sleep(TIMERS * 10 + 100);
// The one that comes first: Node.js wakes at its time, whatever is cancelled later.
systemClock.after(5, () => undefined);
const cancels = Array.from({ length: TIMERS }, (_, index) =>
  systemClock.after(10 + index * 10, () => undefined),
);
for (const cancel of cancels) cancel();
const before = wakeUps();
await ended;
console.log(JSON.stringify({ timers: TIMERS, wakeUps: wakeUps() - before }));
