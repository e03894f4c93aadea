/** The objects of `tributary peer`, and writing them so that doing it twice is as good as once. */
import {
  type Direction,
  type ForeignCluster,
  foreignClusters,
  type ForeignClusterSpec,
  peerIDOf,
  peerTokenSecretName,
} from '../../api/foreign-cluster.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import {
  forgePeerToken,
  ownedBy,
  peerSpec,
  peerTokenRef,
  permission,
  unforced,
} from '../../api/peer-wish.ts';
import { secrets } from '../../api/resources.ts';
import { createOrMerge } from '../../kube/write.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Session } from './environment.ts';
import { listClusters } from './foreign-clusters.ts';
import type { PeerArguments } from './peer-arguments.ts';

export interface WrittenCluster {
  object: ForeignCluster;
  isNew: boolean;
  /** Before we wrote. */
  previous?: ForeignCluster;
}

/** Makes the ForeignCluster, or changes the one that there is for this cluster, and keeps the token in a Secret. */
export async function writeCluster(args: PeerArguments, session: Session): Promise<WrittenCluster> {
  const previous = existing(await listClusters(session), args);
  const name = previous?.metadata.name ?? nameOf(args);
  if (args.token !== undefined) await writeToken(name, args.token, session);
  const written =
    previous === undefined ? await made(name, args, session) : await changed(previous, args, session);
  if (args.token !== undefined) await ownToken(written.object, session);
  return written;
}

async function made(name: string, args: PeerArguments, session: Session): Promise<WrittenCluster> {
  const { client, signal } = session;
  const draft = { metadata: { name }, spec: peerSpec(name, args) };
  try {
    return { object: await client.create(foreignClusters, draft, { signal }), isNew: true };
  } catch (error) {
    if (!hasCode(error, 'AlreadyExists')) throw error;
    // Discovery may have created it at the same moment.
    const clusters = await listClusters(session);
    const found = existing(clusters, args);
    if (found?.metadata.name !== name) throw nameTaken(name, clusters, args);
    return changed(found, args, session);
  }
}

/** By a name that was made from its host: an earlier wish, at another port. */
function nameTaken(
  name: string,
  clusters: readonly ForeignCluster[],
  { endpoint = '' }: PeerArguments,
): TributaryError {
  const holder = clusters.find(({ metadata }) => metadata.name === name);
  const where = holder?.spec?.endpoint === undefined ? '' : `, and is dialled at ${holder.spec.endpoint}`;
  return new TributaryError(
    'Conflict',
    `ForeignCluster ${name} exists already${where}. To dial ${endpoint} instead: tributary peer ${endpoint} --name ${name}. ` +
      `To begin anew: kubectl delete foreigncluster ${name}`,
  );
}

/** The one for this ClusterID; else of this name; else, where no ID is known, of this endpoint. Throws Conflict. */
function existing(
  clusters: readonly ForeignCluster[],
  { clusterID, name, endpoint }: PeerArguments,
): ForeignCluster | undefined {
  const ofID = clusters.find((cluster) => clusterID !== undefined && cluster.spec?.clusterID === clusterID);
  const ofName = clusters.find(({ metadata }) => metadata.name === name);
  const ofEndpoint = clusters.find(({ spec }) => clusterID === undefined && spec?.endpoint === endpoint);
  const found = ofID ?? ofName ?? ofEndpoint;
  const bound = found?.spec?.clusterID;
  if (found !== undefined && clusterID !== undefined && bound !== undefined && bound !== clusterID) {
    throw new TributaryError(
      'Conflict',
      `ForeignCluster ${found.metadata.name} stands for another cluster, ${bound}`,
    );
  }
  if (ofID !== undefined && name !== undefined && ofID.metadata.name !== name) {
    throw new TributaryError(
      'Conflict',
      `cluster ${clusterID ?? ''} is known already, as ForeignCluster ${ofID.metadata.name}; leave out --name`,
    );
  }
  return found;
}

/** If the ID is known, the name that discovery would choose; else a name made from the host. */
function nameOf({ name, clusterID, endpoint }: PeerArguments): string {
  const host = endpoint?.slice(0, endpoint.lastIndexOf(':')).toLowerCase() ?? '';
  return name ?? clusterID ?? host.replaceAll(/[^a-z0-9.]+/g, '-').replaceAll(/^[-.]+|[-.]+$/g, '');
}

async function changed(
  previous: ForeignCluster,
  args: PeerArguments,
  { client, signal }: Session,
): Promise<WrittenCluster> {
  const { name } = previous.metadata;
  const body = { spec: peerSpec(name, args), ...unforced(previous) };
  const object = await client.patch(foreignClusters, { name }, { type: 'merge', body }, { signal });
  return { object, isNew: false, previous };
}

/**
 * Lifts what `tributary unpeer` has left in its ForeignCluster: not to peer, in these directions. Returns what says it again; undefined:
 * nobody has said it.
 */
export async function permit(
  cluster: ForeignCluster,
  { client, signal }: Session,
  directions?: readonly Direction[],
): Promise<(() => Promise<void>) | undefined> {
  const { name } = cluster.metadata;
  const permitted = permission(cluster, directions);
  if (permitted === undefined) return undefined;
  const write = async (body: object): Promise<void> => {
    await client.patch(foreignClusters, { name }, { type: 'merge', body }, { signal });
  };
  await write(permitted);
  const lifted = Object.keys(permitted.spec);
  return async () => write({ spec: Object.fromEntries(lifted.map((direction) => [direction, 'Disabled'])) });
}

/**
 * Keeps a token of that cluster for us, and says in its ForeignCluster where it is. Returns what puts both back as they were,
 * for one that was of no use.
 */
export async function giveToken(
  cluster: ForeignCluster,
  token: string,
  session: Session,
): Promise<() => Promise<void>> {
  const { client, signal } = session;
  const { name } = cluster.metadata;
  const ref = { namespace: SYSTEM_NAMESPACE, name: peerTokenSecretName(name) };
  const former = await client.get(secrets, ref, { signal }).catch(ignoring('NotFound'));
  await writeToken(name, token, session);
  const refer = async (
    joinTokenSecretRef: ForeignClusterSpec['joinTokenSecretRef'] | null,
  ): Promise<void> => {
    const body = { spec: { joinTokenSecretRef } };
    await client.patch(foreignClusters, { name }, { type: 'merge', body }, { signal });
  };
  await refer(peerTokenRef(name));
  await ownToken(cluster, session);
  return async () => {
    await refer(cluster.spec?.joinTokenSecretRef ?? null);
    if (former === undefined) await client.delete(secrets, ref, { signal }).catch(ignoring('NotFound'));
    else await client.patch(secrets, ref, { type: 'merge', body: { data: former.data } }, { signal });
  };
}

async function writeToken(cluster: string, token: string, { client, signal }: Session): Promise<void> {
  const secret = forgePeerToken(cluster, token);
  await createOrMerge(client, secrets, secret, { body: { data: secret.data }, signal });
}

async function ownToken(cluster: ForeignCluster, { client, signal }: Session): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: peerTokenSecretName(cluster.metadata.name) };
  await client.patch(secrets, ref, { type: 'merge', body: ownedBy(cluster) }, { signal });
}

/**
 * Binds it to the identity that a person has confirmed. Where that cluster is known already, its own ForeignCluster
 * is changed instead, and the one that was made only to ask goes again. Throws Conflict.
 */
export async function confirm(
  { object, isNew }: WrittenCluster,
  args: PeerArguments & { clusterID: string },
  session: Session,
): Promise<WrittenCluster> {
  const { client, signal } = session;
  const { clusterID } = args;
  const { name } = object.metadata;
  const other = (await listClusters(session)).find(
    (cluster) => cluster.metadata.name !== name && peerIDOf(cluster) === clusterID,
  );
  if (other === undefined) {
    const body = { spec: { clusterID } };
    return {
      object: await client.patch(foreignClusters, { name }, { type: 'merge', body }, { signal }),
      isNew,
    };
  }
  if (!isNew) {
    throw new TributaryError(
      'Conflict',
      `that cluster is known already, as ForeignCluster ${other.metadata.name}; delete one of the two: kubectl delete foreigncluster ${name}`,
    );
  }
  await takeBack(object, session);
  return writeCluster(args, session);
}

export async function takeBack({ metadata }: ForeignCluster, { client }: Session): Promise<void> {
  const { name, uid } = metadata;
  await client.delete(foreignClusters, { name }, { uid });
}
