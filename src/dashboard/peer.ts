/** Peers with a cluster whose identity is known: from a ClusterID, or from a join token, which begins with it. */
import { type ForeignCluster, foreignClusters, peerIDOf } from '../api/foreign-cluster.ts';
import { forgePeerToken, ownedBy, type PeerWish, peerSpec, permission, unforced } from '../api/peer-wish.ts';
import { secrets } from '../api/resources.ts';
import { createOrMerge } from '../kube/write.ts';
import type { Hands } from './hands.ts';
import type { DashboardAction } from './model.ts';

export async function peer(
  { endpoint, clusterID = '', token }: Extract<DashboardAction, { do: 'peer' }>,
  { client, signal }: Hands,
): Promise<string> {
  const { items } = await client.list(foreignClusters, { signal });
  const known = items.find((cluster) => peerIDOf(cluster) === clusterID);
  // As discovery would call it, so that it finds this one.
  const name = known?.metadata.name ?? clusterID;
  const secret = token === undefined ? undefined : forgePeerToken(name, token);
  if (secret !== undefined)
    await createOrMerge(client, secrets, secret, { body: { data: secret.data }, signal });
  const wish: PeerWish = { clusterID, endpoint, outgoing: 'Enabled', token };
  const spec = peerSpec(name, wish);
  const written =
    known === undefined
      ? await client.create(foreignClusters, { metadata: { name }, spec }, { signal })
      : await client.patch(
          foreignClusters,
          { name },
          { type: 'merge', body: changeOf(known, spec) },
          { signal },
        );
  if (secret !== undefined)
    await client.patch(secrets, secret.metadata, { type: 'merge', body: ownedBy(written) }, { signal });
  return `Peering with ${written.status?.clusterName ?? name} begins.`;
}

/** Also lifts what the end of an earlier peering has left, in both directions. Who has forbidden one alone has meant that. */
const changeOf = (known: ForeignCluster, wanted: object): object => ({
  spec: { ...wanted, ...(known.spec?.outgoing === 'Disabled' && permission(known, ['incoming'])?.spec) },
  ...unforced(known),
});
