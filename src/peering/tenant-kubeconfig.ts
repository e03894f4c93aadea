/** The credential of a peer, as the kubeconfig that its virtual node reads. */
import { checkedLabel } from '../api/manifest.ts';
import { PEERS_NAMESPACE } from '../api/tenant-labels.ts';
import { TributaryError } from '../lib/errors.ts';

/** Asks this cluster for a token of an account, by the TokenRequest API. */
export interface TokenIssuer {
  /** URL and CA (base64 of PEM) under which we reach the API server ourselves. */
  readonly server: string;
  readonly certificateAuthorityData?: string;
  createToken(
    account: { namespace: string; name: string },
    options: { expirationSeconds: number; signal?: AbortSignal },
  ): Promise<{ token: string; expirationTimestamp: string }>;
}

export interface PeerAccess {
  peer: string;
  /** Where the peer reaches this API server; never an address of this cluster's pods or Services. */
  server: string;
  /** Base64 of PEM; absent where a public authority signed the serving certificate. */
  certificateAuthorityData?: string;
  /** The name in the serving certificate, where `server` is another one. */
  tlsServerName?: string;
  /** Of the HTTP proxy through which the peer reaches it. */
  proxyUrl?: string;
  token: string;
  /** The first of its tenant namespaces, for people who use the file by hand. */
  namespace?: string;
}

export interface Kubeconfig {
  apiVersion: 'v1';
  kind: 'Config';
  'current-context': string;
  clusters: { name: string; cluster: Record<string, string> }[];
  users: { name: string; user: { token: string } }[];
  contexts: { name: string; context: { cluster: string; user: string; namespace?: string } }[];
}

export const DEFAULT_TOKEN_SECONDS: number = 24 * 3600;
/** Seconds. The API server refuses less; with more, a copied file would be of use for too long. */
export const TOKEN_BOUNDS: { least: number; most: number } = { least: 600, most: 90 * 24 * 3600 };

export const peerAccount = (peer: string): { namespace: string; name: string } => ({
  namespace: PEERS_NAMESPACE,
  name: checkedLabel('peer', peer),
});

export function forgeKubeconfig(access: PeerAccess): Kubeconfig {
  const { peer, server, certificateAuthorityData, tlsServerName, proxyUrl, token, namespace } = access;
  checkedLabel('peer', peer);
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new TributaryError('Invalid', `server "${server}" is not an https URL`);
  }
  const name = 'foreign';
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [
      {
        name,
        cluster: {
          server,
          ...(certificateAuthorityData !== undefined && {
            'certificate-authority-data': certificateAuthorityData,
          }),
          ...(tlsServerName !== undefined && { 'tls-server-name': tlsServerName }),
          ...(proxyUrl !== undefined && { 'proxy-url': proxyUrl }),
        },
      },
    ],
    users: [{ name: peer, user: { token } }],
    contexts: [
      { name, context: { cluster: name, user: peer, ...(namespace !== undefined && { namespace }) } },
    ],
  };
}
