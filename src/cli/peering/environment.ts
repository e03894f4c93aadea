/** What the commands on a running cluster share: the cluster that kubectl would speak to, and time. */
import type { KubeClient } from '../../kube/client.ts';
import { createClient } from '../../kube/http-client.ts';
import type { Clock } from '../../lib/clock.ts';
import { kubectlCredentials, type Where } from '../kubeconfig.ts';
import { EXIT, parseCommandLine, reportFailure, type CommandIo, type CommandLine } from '../command-line.ts';

/** The caller closes it. */
type OpenCluster = (where: Where) => Promise<KubeClient>;

export const openCluster: OpenCluster = async (where) => createClient(await kubectlCredentials(where));

export interface CommandEnvironment {
  io: CommandIo;
  /** Fires when the person at the terminal interrupts the command. */
  signal: AbortSignal;
  clock: Clock;
  open: OpenCluster;
}

/** A command that is being run on a cluster. */
export interface Session extends CommandEnvironment {
  client: KubeClient;
}

export type ClusterCommand = (args: readonly string[], environment: CommandEnvironment) => Promise<number>;

interface CommandDefinition<Arguments> {
  usage: string;
  options?: readonly string[];
  flags?: readonly string[];
  /** Throws Invalid; nobody has been asked anything by then. */
  parse: (line: CommandLine, io: CommandIo) => Arguments | Promise<Arguments>;
  /** Returns the exit code. */
  run: (args: Arguments, session: Session) => Promise<number>;
}

const WHERE = ['kubeconfig', 'context'];

/** A command that runs on the cluster of the user's kubeconfig; it says in one line what fails. */
export function clusterCommand<Arguments>(definition: CommandDefinition<Arguments>): ClusterCommand {
  return async (args, environment) => runOnCluster(args, definition, environment);
}

async function runOnCluster<Arguments>(
  args: readonly string[],
  { usage, options = [], flags = [], parse, run }: CommandDefinition<Arguments>,
  environment: CommandEnvironment,
): Promise<number> {
  const { io, open, signal } = environment;
  let client: KubeClient | undefined;
  let isParsed = false;
  try {
    const line = parseCommandLine(args, [...options, ...WHERE], flags);
    const parsed = await parse(line, io);
    isParsed = true;
    client = await open({ kubeconfig: line.values['kubeconfig'], context: line.values['context'] });
    return await run(parsed, { ...environment, client });
  } catch (error) {
    if (signal.aborted) {
      io.err('interrupted\n');
      return EXIT.failed;
    }
    return reportFailure(error, { usage, io, isParsed });
  } finally {
    await client?.close();
  }
}
