/** `tributary tenant-kubeconfig`: the credential of one peer, run where the tenant was applied. */
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';

import { serviceAccountTokens } from '../api/resources.ts';
import { TributaryError } from '../lib/errors.ts';
import { present } from '../lib/fields.ts';
import {
  DEFAULT_TOKEN_SECONDS,
  forgeKubeconfig,
  type PeerAccess,
  peerAccount,
  TOKEN_BOUNDS,
  type TokenIssuer,
} from '../peering/tenant-kubeconfig.ts';
import { type Command, defineCommand } from './command.ts';
import { type CommandIo, type CommandLine, EXIT, required } from './command-line.ts';
import { parseSeconds } from './durations.ts';
import { WHERE } from './peering/environment.ts';
import { readToken } from './peering/peer-arguments.ts';
import { kubectlCredentials, type Where } from './kubeconfig.ts';

/** Opens the foreign cluster for its administrator; the caller's own `close` runs when the command is done. */
type OpenTokenIssuer = (where: Where) => Promise<TokenIssuer & { close(): Promise<void> }>;

/** Prints a kubeconfig; on the error stream, until when it is valid. */
export const tenantKubeconfigCommand = (open: OpenTokenIssuer): Command =>
  defineCommand({
    name: 'tenant-kubeconfig',
    summary: 'Print the credential of one peer, where its tenant was made by hand.',
    options: {
      peer: { value: 'NAME', text: 'whom it is for', isRequired: true },
      namespace: { value: 'TENANT_NS', text: 'namespace of its context' },
      server: {
        value: 'URL',
        text: 'at which the peer reaches this API server',
        fallback: 'that of the kubeconfig',
      },
      'tls-server-name': { value: 'NAME', text: 'name in the certificate of that server' },
      ttl: { value: 'DURATION', text: 'how long its token is valid', fallback: '24h' },
      token: {
        value: 'TOKEN',
        text: 'a token from elsewhere, - for standard input; then no API server is asked, and --server is needed',
      },
      'certificate-authority': {
        value: 'FILE',
        text: 'authority of that server, with --token',
        names: 'files',
      },
      ...WHERE,
    },
    act: async (line, { io }) => {
      const said = line.values['token'];
      const token = said === '-' ? await readToken(io) : said;
      const access = token === undefined ? await issued(line, io, open) : await given(line, token);
      io.out(stringify(forgeKubeconfig(access), { lineWidth: 0 }));
      return EXIT.ok;
    },
  });

/** With a token from elsewhere: nothing is asked of any API server. */
async function given(line: CommandLine, token: string): Promise<PeerAccess> {
  const file = line.values['certificate-authority'];
  const authority = file === undefined ? undefined : (await readFile(file)).toString('base64');
  return { ...named(line), server: required(line, 'server'), token, ...authorityData(authority) };
}

async function issued(line: CommandLine, io: CommandIo, open: OpenTokenIssuer): Promise<PeerAccess> {
  const ttl = line.values['ttl'];
  const expirationSeconds =
    ttl === undefined ? DEFAULT_TOKEN_SECONDS : parseSeconds(ttl, { option: 'ttl', ...TOKEN_BOUNDS });
  const account = peerAccount(required(line, 'peer'));
  const issuer = await open({ kubeconfig: line.values['kubeconfig'], context: line.values['context'] });
  try {
    const { token, expirationTimestamp } = await issuer.createToken(account, { expirationSeconds });
    io.err(
      `The token is valid until ${expirationTimestamp}. Before that, run this again and replace the Secret; ` +
        'peerings that clusters make among themselves will renew their tokens.\n',
    );
    return {
      ...named(line),
      server: line.values['server'] ?? issuer.server,
      token,
      ...authorityData(issuer.certificateAuthorityData),
    };
  } finally {
    await issuer.close();
  }
}

function named(line: CommandLine): Pick<PeerAccess, 'peer' | 'namespace' | 'tlsServerName'> {
  const { namespace, 'tls-server-name': tlsServerName } = line.values;
  return { peer: required(line, 'peer'), ...present({ namespace, tlsServerName }) };
}

const authorityData = (base64: string | undefined): Pick<PeerAccess, 'certificateAuthorityData'> =>
  base64 === undefined ? {} : { certificateAuthorityData: base64 };

/** The API server that is asked for a token: where kubectl would go. */
export const openTokenIssuer: OpenTokenIssuer = async (where) => {
  const credentials = await kubectlCredentials(where);
  const { createClient } = await import('../kube/http-client.ts');
  const client = createClient(credentials);
  return {
    server: credentials.server.href.replace(/\/$/, ''),
    ...(credentials.ca !== undefined && {
      certificateAuthorityData: Buffer.from(credentials.ca).toString('base64'),
    }),
    createToken: async (account, { expirationSeconds, signal }) => {
      const answer = await client.create(
        serviceAccountTokens,
        { metadata: account, spec: { audiences: [], expirationSeconds } },
        { subresource: 'token', ...(signal && { signal }) },
      );
      const { token, expirationTimestamp } = answer.status ?? {};
      if (token === undefined || expirationTimestamp === undefined) {
        throw new TributaryError('Unavailable', 'the API server answered without a token');
      }
      return { token, expirationTimestamp };
    },
    close: async () => client.close(),
  };
};
