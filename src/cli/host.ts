/** Commands for the host that they run on, without any API server. */
import { systemClock } from '../lib/clock.ts';
import { errorMessage, TributaryError } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { OWNERS } from '../network/host/host-config.ts';
import { type Command, defineCommand } from './command.ts';
import { type CommandIo, EXIT } from './command-line.ts';

/** Removes from this host what the roles `gateway` and `node` have set up there; may be run again. */
export const cleanUpCommand: Command = defineCommand({
  name: 'clean-up',
  summary: 'Remove from this host what the roles gateway and node have set up on it.',
  act: async (_, { io }) => {
    let count = 0;
    const removed = (what: string): void => {
      count += 1;
      io.out(`removed ${what}\n`);
    };
    const { createHost } = await import('../network/host/host.ts');
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
    io.out(count === 0 ? 'nothing of ours is on this host\n' : 'nothing of ours is left on this host\n');
    return EXIT.ok;
  },
});

/** Ends with 0 where the kernel has WireGuard of its own, else with 1. */
export const kernelWireGuardCommand: Command = defineCommand({
  name: 'kernel-wireguard',
  summary: 'Say whether the kernel of this host has WireGuard.',
  exits: { [EXIT.failed]: 'it has none: wireguard-go is used' },
  act: async (_, { io }) => {
    const { kernelHasWireGuard } = await import('../network/host/host.ts');
    const has = await kernelHasWireGuard({ clock: systemClock, log: logger(io) });
    io.out(has ? 'this kernel has WireGuard\n' : 'this kernel has no WireGuard: wireguard-go is used\n');
    return has ? EXIT.ok : EXIT.failed;
  },
});

const logger = (io: CommandIo): ReturnType<typeof createLogger> =>
  createLogger({ level: 'warn', now: () => systemClock.now(), write: (line) => io.err(line) });
