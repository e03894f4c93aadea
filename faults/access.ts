/** How programs get at API servers: with tokens, since a proxy that ends TLS cannot pass a client's certificate on. */
import type { Cluster } from '../lab/cluster.ts';

const TOKEN_SECONDS = 86_400;

export interface Account {
  readonly namespace: string;
  readonly name: string;
}

export async function tokenOf(cluster: Cluster, { namespace, name }: Account): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const { status, body } = await cluster.api.call('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  });
  if (status !== 201) throw new Error(`POST ${path}: ${status} ${body}`);
  return (JSON.parse(body) as { status: { token: string } }).status.token;
}

/** Makes the account an administrator. */
export async function adminToken(cluster: Cluster, { namespace, name }: Account): Promise<string> {
  await cluster.api.apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `faults-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', namespace, name }],
    },
  );
  return tokenOf(cluster, { namespace, name });
}

/** `server`: a URL that stands for the cluster's own. */
export function kubeconfigWith({ pki }: Cluster, server: string, token: string): object {
  const authority = Buffer.from(pki.authority.cert).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: [{ name: 'x', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'x', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
  };
}
