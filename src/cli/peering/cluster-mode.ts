/** What `tributary tether` and `untether` share: the ClusterMode of the cluster that they speak to. */
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../api/cluster-mode.ts';
import { CLUSTER_LEASE, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { leases } from '../../api/resources.ts';
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

/** Who holds a Lease renews it within its duration. Also where the Lease names none, or one that a slow answer takes up. */
const LEAST_SILENT_MS = 6000;

/**
 * Begins to watch whether the cluster role is alive. The returned function says in a line that it is not, if its Lease has not
 * changed since then; an empty text: it has, or nothing is known.
 */
export async function watchRole(session: Session): Promise<() => Promise<string>> {
  const { clock } = session;
  const began = clock.monotonic();
  const before = await renewal(session);
  return async () => {
    const silentMs = clock.monotonic() - began;
    if (before === undefined || silentMs < before.silentMs) return '';
    if ((await renewal(session))?.renewed !== before.renewed) return '';
    return `The cluster role of Tributary has not renewed its Lease ${SYSTEM_NAMESPACE}/${CLUSTER_LEASE} for ${Math.round(silentMs / 1000)} s or longer: is it running?\n`;
  };
}

interface Renewal {
  readonly renewed: string;
  /** After which the role is not heard any more. */
  readonly silentMs: number;
}

async function renewal({ client, signal }: Session): Promise<Renewal | undefined> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: CLUSTER_LEASE };
  const lease = await client.get(leases, ref, { signal }).catch(ignoring('NotFound', 'Forbidden'));
  if (lease === undefined) return undefined;
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = lease.spec ?? {};
  return {
    renewed: `${holderIdentity} ${renewTime}`,
    silentMs: Math.max(LEAST_SILENT_MS, leaseDurationSeconds * 1000),
  };
}
