/** Commands on a running cluster: the cluster that kubectl would speak to. */
import type { KubeClient } from '../../kube/client.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import {
  type Command,
  type CommandEnvironment,
  type CommandSpec,
  defineCommand,
  type OpenCluster,
  type Options,
} from '../command.ts';
import { type CommandIo, type CommandLine, reportFailure } from '../command-line.ts';
import { explained, kubectlCredentials, type Where } from '../kubeconfig.ts';
import { type Pastable, pastableAt } from '../pastable.ts';

export type { CommandEnvironment } from '../command.ts';

/** HTTP/2 and its caches are loaded only by commands that need them: `tributary version` is to answer at once. */
export const openCluster: OpenCluster = async (where) => {
  const { createClient } = await import('../../kube/http-client.ts');
  return createClient(await kubectlCredentials(where));
};

/** A command that is being run on a cluster. What it writes to `io.err` is for people, and pastable already. */
export interface Session extends CommandEnvironment {
  client: KubeClient;
  /** For texts on standard output that name commands. */
  pastable: Pastable;
  /** The same command on another cluster. */
  on: (where: Where, client: KubeClient) => Session;
}

export function sessionOn(environment: CommandEnvironment, where: Where, client: KubeClient): Session {
  const { io } = environment;
  const pastable = pastableAt(where);
  return {
    ...environment,
    io: { ...io, err: (text) => io.err(pastable(text)) },
    client,
    pastable,
    on: (other, itsClient) => sessionOn(environment, other, itsClient),
  };
}

/** Which cluster. */
export const WHERE: Options = {
  kubeconfig: {
    value: 'FILE',
    text: 'kubeconfig to use, as for kubectl',
    fallback: '$KUBECONFIG',
    names: 'files',
  },
  context: { value: 'NAME', text: 'context in it', fallback: 'the current one', names: 'contexts' },
};

interface ClusterCommandDefinition<Arguments> extends Omit<CommandSpec, 'act' | 'children'> {
  /** Throws Invalid; nobody has been asked anything by then. */
  parse: (line: CommandLine, io: CommandIo) => Arguments | Promise<Arguments>;
  /** Returns the exit code. */
  run: (args: Arguments, session: Session) => Promise<number>;
}

/** A command that runs on the cluster of the user's kubeconfig; it says in one line what fails. */
export function clusterCommand<Arguments>(
  { parse, run, ...spec }: ClusterCommandDefinition<Arguments>,
  parent?: string,
): Command {
  return defineCommand(
    {
      ...spec,
      options: { ...spec.options, ...WHERE },
      act: async (line, environment) => {
        const args = await parse(line, environment.io);
        return runOnCluster(async (session) => run(args, session), line, environment);
      },
    },
    parent,
  );
}

async function runOnCluster(
  run: (session: Session) => Promise<number>,
  { values }: CommandLine,
  environment: CommandEnvironment,
): Promise<number> {
  const { io, open, signal } = environment;
  let client: KubeClient | undefined;
  const where = { kubeconfig: values['kubeconfig'], context: values['context'] };
  const pastable = pastableAt(where);
  try {
    client = await open(where);
    return await run(sessionOn(environment, where, client));
  } catch (error) {
    if (signal.aborted) throw error;
    // The line was understood: its help would not help.
    const told = lacksKind(error) ? notThere(error) : await explained(error, where, environment.clock.now());
    return reportFailure(told, { io: { ...io, err: (text) => io.err(pastable(text)) } });
  } finally {
    await client?.close();
  }
}

/** The API server does not know the kind at all: of one that it knows it says with a reason that an object is not there. */
export const lacksKind = (error: unknown): boolean =>
  hasCode(error, 'Unavailable') && (error as TributaryError).status === 404;

export const notThere = (error: unknown): TributaryError =>
  new TributaryError(
    'NotFound',
    `Tributary is not in this cluster, or an older version of it (${errorMessage(error)}): is it the cluster that you mean? If so: tributary install`,
    { cause: error },
  );
