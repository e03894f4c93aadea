/** Kubeconfigs that contain all keys, so that a copy works wherever the server's address is reachable. */
import type { KeyPair } from './pki.ts';

export interface KubeconfigOptions {
  /** Name of cluster, context and user. */
  readonly name: string;
  readonly server: string;
  /** CA certificate, PEM. */
  readonly caCert: string;
  readonly client: KeyPair;
}

/** JSON, which is YAML too: kubectl, client-go and client-node all read it. */
export function renderKubeconfig(options: KubeconfigOptions): string {
  const { name, server, caCert, client } = options;
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(caCert) } }],
    users: [
      {
        name,
        user: {
          'client-certificate-data': base64(client.cert),
          'client-key-data': base64(client.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
