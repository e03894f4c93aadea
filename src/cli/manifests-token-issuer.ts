/** The API server that `tributary tenant-kubeconfig` asks for a token: where kubectl would go. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { serviceAccountTokens } from '../api/resources.ts';
import { createClient } from '../kube/http-client.ts';
import { parseKubeconfig } from '../kube/kubeconfig.ts';
import { TributaryError } from '../lib/errors.ts';
import type { OpenTokenIssuer } from './manifests-tenant-kubeconfig.ts';

/**
 * @param environment `KUBECONFIG`, as kubectl reads it; of a list of files the first counts, since files are not
 *   merged here
 */
export function tokenIssuerOpener(
  environment: Readonly<Record<string, string | undefined>>,
): OpenTokenIssuer {
  return async ({ kubeconfig, context }) => {
    const [first] = (environment['KUBECONFIG'] ?? '').split(delimiter);
    const path = kubeconfig ?? (first || join(environment['HOME'] ?? homedir(), '.kube', 'config'));
    // The file is the caller's own, so it may name other files.
    const credentials = await parseKubeconfig(await readText(path), {
      allowFiles: true,
      baseDir: dirname(path),
      ...(context !== undefined && { context }),
    });
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
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new TributaryError('Invalid', `cannot read the kubeconfig ${path}`, { cause: error });
  }
}
