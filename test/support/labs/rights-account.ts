/** The account of the role `cluster` on a real API server, with exactly the rights of some tables. */
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { forgeGrant, rulesOf, type AccountRef, type Right } from '../../../src/api/rbac.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { eventually } from '../eventually.ts';
import type { RightsCluster } from './rights-cluster.ts';

export const SYSTEM = 'tributary-system';
export const ACCOUNT: AccountRef = { namespace: 'tributary-system', name: 'tributary-cluster' };

/** Rights, and the namespace in which they apply; without one, in all namespaces. */
export type HeldRights = readonly [rights: readonly Right[], namespace?: string];

export interface RightsAccount {
  admin: KubeClient;
  /** A client of its own for each call. */
  connect: () => KubeClient;
}

/** Applies the definitions, the account, its rights and `objects`; after that, pods can be made in the namespace `shop`. */
export async function rightsAccount(
  lab: RightsCluster,
  held: readonly HeldRights[],
  objects: readonly object[] = [],
): Promise<RightsAccount> {
  const grants = held.flatMap(([rights, namespace]) =>
    forgeGrant({
      name: 'tributary-test',
      ...(namespace !== undefined && { namespace }),
      labels: {},
      account: ACCOUNT,
      rules: rulesOf(rights),
    }),
  );
  const all = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ACCOUNT },
    ...objects,
    ...grants,
  ];
  await lab.apply(all.map((object) => stringify(object)).join('---\n'));
  const kubeconfig = await parseKubeconfig(await readFile(lab.cluster.kubeconfig, 'utf8'));
  const { server, ca } = kubeconfig;
  const { token } = await lab.tokenOf(ACCOUNT);
  const account = '/api/v1/namespaces/shop/serviceaccounts/default';
  await eventually('pods can be made', async () => (await lab.cluster.api.get(account)) !== undefined);
  return {
    admin: createClient(kubeconfig),
    connect: () => createClient({ server, ...(ca !== undefined && { ca }), token: async () => token }),
  };
}
