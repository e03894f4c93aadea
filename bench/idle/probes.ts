/**
 * What probes cost a gateway whose tunnels are quiet, for one peer and for many: one process that probes and answers, and another
 * that is all its peers. Everything is on loopback, so that nothing but the probes is measured.
 *
 * Usage: node bench/idle/probes.ts [--peers 1,32] [--seconds 60]
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { table } from '../frame/statistics.ts';
import { idleRate, idleSample, type IdleRate } from './figures.ts';

const { values } = parseArgs({
  options: { peers: { type: 'string', default: '1,32' }, seconds: { type: 'string', default: '60' } },
});
const seconds = Number(values.seconds);
const SETTLE_MS = 10_000;
const HERE = '127.7.0.1';

const start = (owns: readonly string[], others: readonly string[]): ReturnType<typeof spawn> =>
  spawn(process.execPath, [join(import.meta.dirname, 'probe-child.ts'), JSON.stringify({ owns, others })], {
    stdio: 'inherit',
  });

async function probesOf(count: number): Promise<IdleRate> {
  const peers = Array.from({ length: count }, (_, index) => `127.7.1.${index + 1}`);
  const [gateway, others] = [start([HERE], peers), start(peers, [HERE])];
  try {
    await sleep(SETTLE_MS);
    const { pid = 0 } = gateway;
    const before = idleSample(pid);
    await sleep(seconds * 1000);
    return idleRate(before, idleSample(pid));
  } finally {
    gateway.kill();
    others.kill();
  }
}

const rows = [['peers', 'CPU %', 'wake-ups/s']];
for (const count of values.peers.split(',').map(Number)) {
  const { cpuPercent, wakeUpsPerSecond } = await probesOf(count);
  rows.push([String(count), cpuPercent.toFixed(2), wakeUpsPerSecond.toFixed(1)]);
}
console.log(table(rows));
