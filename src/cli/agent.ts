import { hostname } from 'node:os';
import { type Role, ROLES } from '../agent/roles.ts';
import { AGENT_OPTIONS, parseConfig, processEnvironment } from '../config.ts';
import { systemClock } from '../lib/clock.ts';
import { whenAborted } from '../lib/deadline.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { type CommandIo, EXIT, parseCommandLine } from './command-line.ts';

export const AGENT_USAGE: string = `tributary peer --virtual-node NAME [options]
       tributary cluster [options]
       tributary gateway [options]
       tributary node [options]
       tributary all [options]
${Object.entries(AGENT_OPTIONS)
  .map(([name, text]) => `         --${name.padEnd(22)} ${text}`)
  .join('\n')}`;

/** Runs a role until `signal` fires, or until the role itself cannot go on. */
export async function agentCommand(
  role: Role,
  args: string[],
  io: CommandIo,
  signal: AbortSignal,
): Promise<number> {
  try {
    const { values } = parseCommandLine(args, Object.keys(AGENT_OPTIONS));
    const config = parseConfig({ options: values, env: processEnvironment(), hostname: hostname() });
    const log = createLogger({
      level: config.logLevel,
      now: () => systemClock.now(),
      write: (line) => io.out(line),
    });
    const agent = await ROLES[role]({ config, clock: systemClock, log }, signal);
    log.info('started', { role });
    await whenAborted(AbortSignal.any([signal, agent.failed]));
    await agent.stop();
    if (!signal.aborted) throw agent.failed.reason as Error;
    log.info('stopped', { role });
    return EXIT.ok;
  } catch (error) {
    if (signal.aborted) return EXIT.ok;
    io.err(`tributary ${role}: ${errorMessage(error)}\n`);
    return hasCode(error, 'Invalid') ? EXIT.usage : EXIT.failed;
  }
}
