/** `tributary token`: one-time tokens with which other clusters may come in. */
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { type CommandLine, EXIT, positionals, wrongForm } from '../command-line.ts';
import { parseSeconds } from '../durations.ts';
import { silentLogger } from '../../lib/log.ts';
import { JoinTokens } from '../../peering/identity/join-tokens.ts';
import { type ClusterCommand, clusterCommand, type Session } from './environment.ts';
import { readOwn } from './id.ts';
import { table } from './terminal-text.ts';

export const TOKEN_USAGE = `tributary token create [--ttl 1h] [--name NAME] [--json] [--kubeconfig FILE] [--context NAME]
       tributary token list [--json] [--kubeconfig FILE] [--context NAME]
       tributary token delete NAME [--kubeconfig FILE] [--context NAME]`;

const DEFAULT_TTL = '1h';

type TokenArguments =
  | { action: 'create'; seconds: number; name?: string; isJson: boolean }
  | { action: 'list'; isJson: boolean }
  | { action: 'delete'; name: string };

export const tokenCommand: ClusterCommand = clusterCommand({
  usage: TOKEN_USAGE,
  options: ['ttl', 'name'],
  flags: ['json'],
  parse,
  run,
});

function parse(line: CommandLine): TokenArguments {
  const { flags, values } = line;
  const isJson = flags.has('json');
  const [action] = line.positionals;
  if (action === 'create') {
    positionals(line, ['create']);
    const { name } = values;
    const seconds = parseSeconds(values['ttl'] ?? DEFAULT_TTL, { option: 'ttl' });
    return { action, seconds, isJson, ...(name !== undefined && { name }) };
  }
  if (action === 'list') {
    positionals(line, ['list']);
    return { action, isJson };
  }
  if (action === 'delete') {
    const [, name = ''] = positionals(line, ['delete', 'NAME']);
    return { action, name };
  }
  throw wrongForm('say what to do: create, list, delete');
}

async function run(args: TokenArguments, session: Session): Promise<number> {
  const { client, clock, io, signal } = session;
  // Only a token that is made names its maker.
  const clusterID = args.action === 'create' ? (await readOwn(session)).clusterID : '';
  const tokens = new JoinTokens({ client, clock, log: silentLogger, namespace: SYSTEM_NAMESPACE, clusterID });
  if (args.action === 'delete') {
    await tokens.delete(args.name, signal);
    io.out(`Token ${args.name} deleted. Who came in by it stays; see: tributary unpeer\n`);
  } else if (args.action === 'list') {
    const entries = await tokens.list(signal);
    const rows = entries.map(({ name, created, expires, usedBy = '' }) => [name, created, expires, usedBy]);
    io.out(
      args.isJson ? `${JSON.stringify(entries)}\n` : table(['NAME', 'CREATED', 'EXPIRES', 'USED BY'], rows),
    );
  } else {
    const { seconds, name, isJson } = args;
    const { text, expires, ...made } = await tokens.create({
      seconds,
      signal,
      ...(name !== undefined && { name }),
    });
    // The token alone on standard output, so that it can be piped.
    io.out(isJson ? `${JSON.stringify({ token: text, name: made.name, expires })}\n` : `${text}\n`);
    io.err(
      `For one cluster, until ${expires}; shown this once. Over there: tributary peer ENDPOINT --token -, or, ` +
        'to be tethered: tributary tether CLUSTER --token -\n',
    );
  }
  return EXIT.ok;
}
