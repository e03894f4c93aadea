/**
 * The network of a host, in a process of its own, since netlink knows the network namespace of its process only.
 * Commands are lines of JSON on standard input (HostCommand), answers and changes on standard output (HostLine). Ends
 * by itself when its input ends.
 */
import { createInterface } from 'node:readline';

import { systemClock } from '../../../src/lib/clock.ts';
import { errorMessage } from '../../../src/lib/errors.ts';
import { createLogger } from '../../../src/lib/log.ts';
import type { HostConfig, HostNetwork, HostReport, Owner } from '../../../src/network/host/host-config.ts';
import { createHost } from '../../../src/network/host/host.ts';

export type HostCommand =
  | { set: HostConfig }
  /** Sets it whenever something changes, too. */
  | { keep: HostConfig }
  | { cleanUp: Owner }
  | { watch: true }
  | { localRoutes: true }
  | { pathMtu: string };

export type HostLine =
  | { event: 'started' }
  | { event: 'changed' }
  | { event: 'done'; command: number; report?: HostReport; mtu?: number; routes?: string[]; error?: string };

const say = (line: HostLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

async function main(): Promise<void> {
  const write = (line: string): void => void process.stderr.write(line);
  const host = await createHost({
    clock: systemClock,
    log: createLogger({ level: 'warn', now: () => systemClock.now(), write }),
  });
  say({ event: 'started' });
  let command = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = await obey(host, JSON.parse(line) as HostCommand).catch((error: unknown) => {
      return { error: errorMessage(error) };
    });
    say({ event: 'done', command: command++, ...answer });
  }
  host.close();
}

async function obey(host: HostNetwork, command: HostCommand): Promise<Partial<HostLine>> {
  if ('set' in command) return { report: await host.set(command.set) };
  if ('cleanUp' in command) await host.cleanUp(command.cleanUp);
  if ('watch' in command) host.onChange(() => say({ event: 'changed' }));
  if ('keep' in command) {
    host.onChange(() => {
      say({ event: 'changed' });
      void host.set(command.keep);
    });
    return { report: await host.set(command.keep) };
  }
  if ('localRoutes' in command) return { routes: await host.localRoutes() };
  const mtu = 'pathMtu' in command ? await host.pathMtu(command.pathMtu) : undefined;
  return mtu === undefined ? {} : { mtu };
}

await main();
