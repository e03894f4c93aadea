/** `tributary tenant-kubeconfig`: the credential of one peer, run where the tenant was applied. */
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';

import { serviceAccountTokens } from '../api/resources.ts';
import { createClient } from '../kube/http-client.ts';
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
import {
  type CommandIo,
  type CommandLine,
  parseCommandLine,
  positionals,
  required,
  runCommand,
} from './command-line.ts';
import { parseSeconds } from './durations.ts';
import { kubectlCredentials, type Where } from './kubeconfig.ts';

export const TENANT_KUBECONFIG_USAGE = `tributary tenant-kubeconfig --peer NAME [--namespace TENANT_NS] [--kubeconfig FILE] [--context NAME]
                 [--server https://OUTSIDE_ADDRESS:PORT] [--tls-server-name NAME] [--ttl 24h]
       tributary tenant-kubeconfig --peer NAME [--namespace TENANT_NS] --token TOKEN --server URL
                 [--certificate-authority FILE] [--tls-server-name NAME]`;

const OPTIONS = [
  'peer',
  'namespace',
  'kubeconfig',
  'context',
  'server',
  'tls-server-name',
  'ttl',
  'token',
  'certificate-authority',
];

/** Opens the foreign cluster for its administrator; the caller's own `close` runs when the command is done. */
type OpenTokenIssuer = (where: Where) => Promise<TokenIssuer & { close(): Promise<void> }>;

/** Prints a kubeconfig; on the error stream, until when it is valid. */
export async function tenantKubeconfigCommand(
  args: string[],
  io: CommandIo,
  open: OpenTokenIssuer,
): Promise<number> {
  return runCommand(TENANT_KUBECONFIG_USAGE, io, async () => {
    const line = parseCommandLine(args, OPTIONS);
    positionals(line, []);
    const access =
      line.values['token'] === undefined
        ? await issued(line, io, open)
        : await given(line, line.values['token']);
    return stringify(forgeKubeconfig(access), { lineWidth: 0 });
  });
}

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
