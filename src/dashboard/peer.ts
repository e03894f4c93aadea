/** Peers with a cluster whose identity is known: from a ClusterID, or from a join token, which begins with it. */
import { foreignClusters, type ForeignCluster, peerTokenSecretName } from '../api/foreign-cluster.ts';
import { APP_NAME, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { ANNOTATION_FORCE } from '../api/names.ts';
import { secrets } from '../api/resources.ts';
import { hasCode } from '../lib/errors.ts';
import type { Hands } from './hands.ts';
import type { DashboardAction } from './model.ts';

const KEY = 'token';

export async function peer(
  { endpoint, clusterID = '', token }: Extract<DashboardAction, { do: 'peer' }>,
  hands: Hands,
): Promise<string> {
  const { client, signal } = hands;
  const { items } = await client.list(foreignClusters, { signal });
  const known = items.find(({ spec, status }) => (spec?.clusterID ?? status?.clusterID) === clusterID);
  // As discovery would call it, so that it finds this one.
  const name = known?.metadata.name ?? clusterID;
  // The Secret comes first: nobody may see a reference to a Secret that does not exist.
  if (token !== undefined) await writeToken(name, token, hands);
  const spec = {
    clusterID,
    endpoint,
    outgoing: 'Enabled' as const,
    ...(token !== undefined && { joinTokenSecretRef: { name: peerTokenSecretName(name), key: KEY } }),
  };
  const written =
    known === undefined
      ? await client.create(foreignClusters, { metadata: { name }, spec }, { signal })
      : await client.patch(
          foreignClusters,
          { name },
          { type: 'merge', body: changeOf(known, spec) },
          { signal },
        );
  if (token !== undefined) await ownToken(written, hands);
  return `Peering with ${written.status?.clusterName ?? name} begins.`;
}

/** Also lifts what the end of an earlier peering has left. */
function changeOf({ spec, metadata: { annotations = {} } }: ForeignCluster, wanted: object): object {
  return {
    spec: { ...wanted, ...(spec?.incoming === 'Disabled' && { incoming: null }) },
    ...(Object.hasOwn(annotations, ANNOTATION_FORCE) && {
      metadata: { annotations: { [ANNOTATION_FORCE]: null } },
    }),
  };
}

async function writeToken(cluster: string, token: string, { client, signal }: Hands): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: peerTokenSecretName(cluster) };
  const data = { [KEY]: Buffer.from(token).toString('base64') };
  const metadata = { ...ref, labels: { [LABEL_APP_NAME]: APP_NAME } };
  try {
    await client.create(secrets, { metadata, type: 'Opaque', data }, { signal });
  } catch (error) {
    if (!hasCode(error, 'AlreadyExists')) throw error;
    await client.patch(secrets, ref, { type: 'merge', body: { data } }, { signal });
  }
}

/** The Secret goes when the ForeignCluster does. */
async function ownToken(
  { metadata: { name, uid } }: ForeignCluster,
  { client, signal }: Hands,
): Promise<void> {
  const owner = { apiVersion: 'tributary.dev/v1alpha1', kind: 'ForeignCluster', name, uid };
  const ref = { namespace: SYSTEM_NAMESPACE, name: peerTokenSecretName(name) };
  const body = { metadata: { ownerReferences: [owner] } };
  await client.patch(secrets, ref, { type: 'merge', body }, { signal });
}
