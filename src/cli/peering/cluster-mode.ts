/** What `tributary tether` and `untether` share: the ClusterMode of the cluster that they speak to. */
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../api/cluster-mode.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Session } from './environment.ts';
import { followObject } from './foreign-clusters.ts';

export const lineOf = (mode: ClusterMode | undefined): string => {
  const { phase = 'unknown', conditions: [condition] = [] } = mode?.status ?? {};
  return `${phase}: ${condition?.message ?? 'waiting for the cluster role of Tributary'}`;
};

export async function readMode({ client, signal }: Session): Promise<ClusterMode | undefined> {
  return client.get(clusterModes, { name: CLUSTER_MODE }, { signal }).catch(ignoring('NotFound'));
}

/** Ends the wish for a tether; returns the mode with the generation that says so. */
export async function unwant({ client, signal }: Session): Promise<ClusterMode> {
  const body = { spec: { tether: null } };
  return client.patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body }, { signal });
}

export const isSeen = (mode: ClusterMode | undefined, { metadata }: ClusterMode): boolean =>
  (mode?.status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);

/** Reads the mode until `look` returns something, or the time is up: then undefined. */
export const followMode = async <Result>(
  session: Session,
  untilMs: number,
  look: (mode: ClusterMode | undefined) => Result | undefined,
): Promise<Result | undefined> =>
  followObject(session, { read: async () => readMode(session), untilMs, look });
