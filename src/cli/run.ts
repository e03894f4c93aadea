/** `tributary run ROLE`: the processes of Tributary, as their pods call them. */
import { hostname } from 'node:os';
import type { Role } from '../agent/roles.ts';
import { AGENT_OPTIONS, parseConfig, processEnvironment } from '../config.ts';
import { breathOf } from '../lib/breath.ts';
import { cpuSeconds, systemClock } from '../lib/clock.ts';
import { whenAborted } from '../lib/deadline.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import { createLogger, type LogSink, noLines } from '../lib/log.ts';
import { giveBackAfterWork } from '../lib/spare-memory.ts';
import { type Command, type CommandEnvironment, defineCommand, type OptionSpec } from './command.ts';
import { type CommandIo, type CommandLine, EXIT } from './command-line.ts';
import { plainLine } from './plain-line.ts';
import { isOptionOf, roleOption } from './role-options.ts';

const SUMMARIES: Readonly<Record<Role, string>> = {
  cluster: 'Discovery, peering, offloading and hosting of one cluster.',
  gateway: 'Tunnels to other clusters, and discovery on the LAN.',
  node: 'Routes of one node to the gateway.',
  peer: 'The agent of a virtual node.',
  peers: 'The agent of all virtual nodes, where one for all was chosen.',
  all: 'All of these in one process.',
};

const roleCommand = (role: Role): Command =>
  defineCommand(
    {
      name: role,
      summary: SUMMARIES[role],
      options: Object.fromEntries(
        Object.keys(AGENT_OPTIONS).map((name): [string, OptionSpec] => [
          name,
          { ...roleOption(name), isHidden: !isOptionOf(role, name) },
        ]),
      ),
      act: async (line, environment) => runRole(role, line, environment),
    },
    'tributary run',
  );

export const runCommand: Command = defineCommand({
  name: 'run',
  summary: 'Run a role of Tributary. Its pods do that; people need it for development only.',
  children: (Object.keys(SUMMARIES) as Role[]).map(roleCommand),
});

/** `tributary run` without the program's other commands; `args` are what follows `run`. Never rejects. */
export async function runRoleCommand(
  args: readonly string[],
  io: CommandIo,
  signal: AbortSignal,
): Promise<number> {
  const environment: CommandEnvironment = {
    io,
    signal,
    clock: systemClock,
    open: () => Promise.reject(new Error('a role opens its clusters itself')),
  };
  const [name, ...rest] = args;
  const spec = runCommand.spec.children?.find((child) => child.spec.name === name)?.spec;
  const line = plainLine(spec?.options ?? {}, rest);
  if (spec?.act === undefined || line === undefined) return runCommand.run(args, environment);
  return spec.act(line, environment);
}

/** Runs a role until `signal` fires, or until the role itself cannot go on. */
async function runRole(
  role: Role,
  { values }: CommandLine,
  { io, signal }: CommandEnvironment,
): Promise<number> {
  try {
    const config = parseConfig({ options: values, env: processEnvironment(), hostname: hostname() });
    const lines = noLines();
    const sink: LogSink = {
      level: config.logLevel,
      now: () => systemClock.now(),
      write: (line) => io.out(line),
      count: (level) => (lines[level] += 1),
    };
    const log = createLogger(sink);
    // Most of the program, which commands for people do not need.
    const { ROLES } = await import('../agent/roles.ts');
    const { gc } = globalThis;
    // The image asks Node.js for it. A regular collection leaves the heap in pieces, and gives little back.
    const collect = gc && ((): void => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }));
    const usedMiB = (): number => process.memoryUsage().heapUsed / 2 ** 20;
    if (collect !== undefined)
      giveBackAfterWork({ clock: systemClock, breath: breathOf(systemClock), usedMiB, cpuSeconds, collect });
    const agent = await ROLES[role]({ config, clock: systemClock, log, sink, lines }, signal);
    log.info('started', { role });
    await whenAborted(AbortSignal.any([signal, agent.failed]));
    await agent.stop();
    if (!signal.aborted) throw agent.failed.reason as Error;
    log.info('stopped', { role });
    return EXIT.ok;
  } catch (error) {
    if (signal.aborted) return EXIT.ok;
    io.err(`tributary run ${role}: ${errorMessage(error)}\n`);
    return hasCode(error, 'Invalid') ? EXIT.usage : EXIT.failed;
  }
}
