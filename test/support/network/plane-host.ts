/**
 * A process in the network namespace of a node: does with it what lines on standard input say, and answers each with
 * one line, `{"id", "report"}` or `{"id", "error"}`.
 */
import { createInterface } from 'node:readline';

import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import type { HostConfig, Owner } from '../../../src/network/host/host-config.ts';
import { createHost } from '../../../src/network/host/host.ts';

export type PlaneRequest = { id: number } & ({ set: HostConfig } | { cleanUp: Owner });

const log = createLogger({
  level: 'error',
  now: () => Date.now(),
  write: (line) => void process.stderr.write(line),
});
const host = await createHost({ clock: systemClock, log });
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as PlaneRequest;
  process.stdout.write(`${JSON.stringify({ id: request.id, ...(await answer(request)) })}\n`);
}
host.close();

async function answer(request: PlaneRequest): Promise<object> {
  try {
    if ('set' in request) return { report: await host.set(request.set) };
    await host.cleanUp(request.cleanUp);
    return { report: { changes: 0, problems: [] } };
  } catch (error) {
    return { error: String(error) };
  }
}
