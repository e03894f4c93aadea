/** The API server that `tributary tenant-kubeconfig` asks for a token: where kubectl would go. */
import { serviceAccountTokens } from '../api/resources.ts';
import { createClient } from '../kube/http-client.ts';
import { TributaryError } from '../lib/errors.ts';
import { kubectlCredentials } from './kubeconfig.ts';
import type { OpenTokenIssuer } from './manifests-tenant-kubeconfig.ts';

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
