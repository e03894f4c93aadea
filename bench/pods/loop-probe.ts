/**
 * Measures the event loop of the program into which it is loaded: `node --import file:///.../loop-probe.ts?into=FILE`. At each
 * SIGUSR2 it writes what was measured since the last one. A sample of a loop that is idle is about a millisecond.
 *
 * It begins when the program listens for the first time: until then it loads its code, and nobody waits for its loop. How long that
 * took is told as well.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const LISTENS = 'tracing:net.server.listen:asyncEnd';

const into = new URL(import.meta.url).searchParams.get('into') ?? '';
const delays = monitorEventLoopDelay({ resolution: 1 });
let startMs = 0;

function begin(): void {
  unsubscribe(LISTENS, begin);
  startMs = performance.now();
  delays.enable();
}
subscribe(LISTENS, begin);

process.on('SIGUSR2', () => {
  const figures = { startMs, p999Ms: delays.percentile(99.9) / 1e6, longestMs: delays.max / 1e6 };
  // Whoever waits for the file finds all of it.
  writeFileSync(`${into}.part`, JSON.stringify(figures));
  renameSync(`${into}.part`, into);
  delays.reset();
});
