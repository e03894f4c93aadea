/** Commands for the host that they run on, without any API server. */
import { systemClock } from '../lib/clock.ts';
import { errorMessage, TributaryError } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { OWNERS } from '../network/host/host-config.ts';
import { createHost, kernelHasWireGuard } from '../network/host/host.ts';
import { type CommandIo, EXIT, parseCommandLine, positionals, runCommand } from './command-line.ts';

export const CLEAN_UP_USAGE = 'tributary clean-up';
export const KERNEL_WIREGUARD_USAGE = 'tributary kernel-wireguard';

/** Removes from this host what the roles `gateway` and `node` have set up there; may be run again. */
export async function cleanUpCommand(args: string[], io: CommandIo): Promise<number> {
  return runCommand(CLEAN_UP_USAGE, io, async () => {
    positionals(parseCommandLine(args, []), []);
    let count = 0;
    const removed = (what: string): void => {
      count += 1;
      io.out(`removed ${what}\n`);
    };
    const host = await createHost({ clock: systemClock, log: logger(io), removed });
    const problems: string[] = [];
    try {
      for (const owner of OWNERS) {
        await host.cleanUp(owner).catch((error: unknown) => problems.push(errorMessage(error)));
      }
    } finally {
      host.close();
    }
    if (problems.length > 0) throw new TributaryError('Unavailable', problems.join('; '));
    return count === 0 ? 'nothing of ours is on this host\n' : 'nothing of ours is left on this host\n';
  });
}

/** Ends with 0 where the kernel has WireGuard of its own, else with 1. */
export async function kernelWireGuardCommand(args: string[], io: CommandIo): Promise<number> {
  let has = false;
  const code = await runCommand(KERNEL_WIREGUARD_USAGE, io, async () => {
    positionals(parseCommandLine(args, []), []);
    has = await kernelHasWireGuard({ clock: systemClock, log: logger(io) });
    return has ? 'this kernel has WireGuard\n' : 'this kernel has no WireGuard: wireguard-go is used\n';
  });
  return code === EXIT.ok && !has ? EXIT.failed : code;
}

const logger = (io: CommandIo): ReturnType<typeof createLogger> =>
  createLogger({ level: 'warn', now: () => systemClock.now(), write: (line) => io.err(line) });
