/** Finding the ForeignCluster that a person means, and following what becomes of it. */
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { foreignClusters } from '../../api/foreign-cluster.ts';
import { TributaryError, hasCode, ignoring } from '../../lib/errors.ts';
import type { Session } from './environment.ts';

export async function listClusters({ client, signal }: Session): Promise<ForeignCluster[]> {
  const { items } = await client.list(foreignClusters, { signal });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** The ClusterID that an object stands for. */
export const idOf = ({ spec, status }: ForeignCluster): string | undefined =>
  spec?.clusterID ?? status?.clusterID;

/** By its name, else by its ClusterID, else by the name that the cluster gives itself, if only one does. Throws NotFound. */
export function findCluster(clusters: readonly ForeignCluster[], wanted: string): ForeignCluster {
  const named = clusters.find(({ metadata }) => metadata.name === wanted);
  const found = named ?? clusters.find((cluster) => idOf(cluster) === wanted);
  if (found !== undefined) return found;
  const [only, ...others] = clusters.filter(({ status }) => status?.clusterName === wanted);
  if (only !== undefined && others.length === 0) return only;
  const why = only === undefined ? 'no ForeignCluster has' : 'several ForeignClusters have';
  throw new TributaryError('NotFound', `${why} the name or ClusterID "${wanted}"; see: tributary peerings`);
}

/** How often the object is read while its state is waited for. */
const POLL_MS = 250;

/**
 * Reads the object until `look` returns something, or until the time is up: then undefined. An API server that does
 * not answer for a moment is borne.
 */
export async function follow<Result>(
  name: string,
  { client, clock, signal }: Session,
  { untilMs, look }: { untilMs: number; look: (cluster: ForeignCluster | undefined) => Result | undefined },
): Promise<Result | undefined> {
  for (;;) {
    try {
      const result = look(await readCluster(name, { client, signal }));
      if (result !== undefined) return result;
    } catch (error) {
      if (!hasCode(error, 'Unreachable', 'Unavailable', 'TooManyRequests')) throw error;
    }
    const leftMs = untilMs - clock.monotonic();
    if (leftMs <= 0) return undefined;
    await clock.sleep(Math.min(POLL_MS, leftMs), signal);
  }
}

async function readCluster(
  name: string,
  { client, signal }: Pick<Session, 'client' | 'signal'>,
): Promise<ForeignCluster | undefined> {
  return client.get(foreignClusters, { name }, { signal }).catch(ignoring('NotFound'));
}
