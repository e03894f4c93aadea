/** `tributary token`: one-time tokens with which other clusters may come in. */
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { type Command, defineCommand } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { parseSeconds } from '../durations.ts';
import { silentLogger } from '../../lib/log.ts';
import { JoinTokens } from '../../peering/identity/join-tokens.ts';
import { clusterCommand, type Session } from './environment.ts';
import { readOwn } from './id.ts';
import { table } from './terminal-text.ts';

const DEFAULT_TTL = '1h';

const createCommand = clusterCommand({
  name: 'create',
  summary: 'Make a token for one cluster, and show it this once.',
  options: {
    ttl: { value: 'DURATION', text: 'how long it may be used', fallback: DEFAULT_TTL },
    name: { value: 'NAME', text: 'name of the token', fallback: 'one that is free' },
    ...OUTPUT,
  },
  examples: [
    {
      line: 'tributary --context milan token create | tributary --context rome peer 203.0.113.7:30743 --token -',
      does: 'Let rome in, without the token being seen',
    },
  ],
  parse: (line) => ({
    ...present({ name: line.values['name'] }),
    seconds: parseSeconds(line.values['ttl'] ?? DEFAULT_TTL, { option: 'ttl' }),
    format: formatOf(line),
  }),
  run: async ({ format, ...args }, session) => {
    const { io, signal } = session;
    const { clusterID } = await readOwn(session);
    const { text, expires, name } = await tokensOf(session, clusterID).create({ ...args, signal });
    // The token alone on standard output, so that it can be piped.
    io.out(printedAs(format, { token: text, name, expires }, () => `${text}\n`));
    io.err(
      `For one cluster, until ${expires}; shown this once. Over there: tributary peer ENDPOINT --token -, or, ` +
        'to be tethered, tributary tether CLUSTER --token -\n',
    );
    return EXIT.ok;
  },
});

const listCommand = clusterCommand({
  name: 'list',
  summary: 'List the tokens that can still be used.',
  options: OUTPUT,
  parse: formatOf,
  run: async (format, session) => {
    const entries = await tokensOf(session).list(session.signal);
    const rows = entries.map(({ name, created, expires, usedBy = '' }) => [name, created, expires, usedBy]);
    session.io.out(printedAs(format, entries, () => table(['NAME', 'CREATED', 'EXPIRES', 'USED BY'], rows)));
    return EXIT.ok;
  },
});

const deleteCommand = clusterCommand({
  name: 'delete',
  summary: 'Delete a token. A cluster that came in by it stays.',
  arguments: [{ name: 'NAME', text: 'name of the token', names: 'tokens' }],
  parse: ({ positionals: [name = ''] }) => name,
  run: async (name, session) => {
    await tokensOf(session)
      .delete(name, session.signal)
      .catch((error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
        throw new TributaryError('NotFound', `there is no token "${name}"; see: tributary token list`);
      });
    session.io.out(
      session.pastable(
        `Token ${name} deleted. A cluster that came in by it stays. To end that: tributary unpeer NAME\n`,
      ),
    );
    return EXIT.ok;
  },
});

export const tokenCommand: Command = defineCommand({
  name: 'token',
  summary: 'One-time tokens with which other clusters may come in.',
  children: [createCommand, listCommand, deleteCommand],
});

/** Only a token that is made names its maker. */
const tokensOf = ({ client, clock }: Session, clusterID = ''): JoinTokens =>
  new JoinTokens({ client, clock, log: silentLogger, namespace: SYSTEM_NAMESPACE, clusterID });
