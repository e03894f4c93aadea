/** SharingPolicies that `peer --to-context` has made, so that `unpeer` may remove them: nobody else has asked for them. */
import { type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { ANNOTATION_POLICY_OVER_THERE, LABEL_MADE_FOR } from '../../api/names.ts';
import { sharingPolicies } from '../../api/sharing-policy.ts';
import { deleteByUid } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { printable } from './terminal-text.ts';
import type { Session } from './environment.ts';
import { labelOf } from './foreign-clusters.ts';
import { readOwn } from './id.ts';

/** One that somebody has made to speak of others stays, and is told. */
export async function removeMadePolicies(clusterID: string | undefined, session: Session): Promise<void> {
  if (clusterID === undefined) return;
  const { client, io, pastable, signal } = session;
  const labelSelector = `${LABEL_MADE_FOR}=${clusterID}`;
  try {
    const { items } = await client.list(sharingPolicies, { labelSelector, signal });
    for (const policy of items) {
      const { name } = policy.metadata;
      if (deepEqual(policy.spec.peers, { clusterIDs: [clusterID] })) {
        await deleteByUid(client, sharingPolicies, policy, { signal });
        io.out(`  removed: SharingPolicy ${name}, which tributary peer had made for it\n`);
      } else {
        const how = `To remove it: tributary policy delete ${name} --kind share`;
        io.out(pastable(`  stays: SharingPolicy ${name}, which is for other clusters too by now. ${how}\n`));
      }
    }
  } catch (error) {
    if (!hasCode(error, 'Forbidden')) throw error;
    io.err(`SharingPolicies that tributary peer has made for it may be left: you may not remove them here\n`);
  }
}

/** Remembers, where the pods come from, what was made for them at the other cluster. */
export async function noteMadePolicy(
  cluster: string,
  policy: string,
  { client, signal }: Session,
): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_POLICY_OVER_THERE]: policy } } };
  await client.patch(foreignClusters, { name: cluster }, { type: 'merge', body }, { signal });
}

/** It was removed there, or told there. */
export async function forgetMadePolicy(cluster: string, { client, signal }: Session): Promise<void> {
  const body = { metadata: { annotations: { [ANNOTATION_POLICY_OVER_THERE]: null } } };
  await client
    .patch(foreignClusters, { name: cluster }, { type: 'merge', body }, { signal })
    .catch(ignoring('NotFound'));
}

/** Tells what stays at the other clusters, as these were before: nobody can remove it from here. */
export async function tellLeft(
  clusters: readonly ForeignCluster[],
  session: Pick<Session, 'client' | 'io' | 'signal'>,
): Promise<void> {
  const own = await readOwn(session).catch(() => undefined);
  const us = own?.clusterID ?? 'CLUSTER_ID';
  for (const cluster of clusters) {
    const policy = cluster.metadata.annotations?.[ANNOTATION_POLICY_OVER_THERE];
    if (policy === undefined) continue;
    const where = printable(labelOf(cluster));
    const unless =
      cluster.status?.link?.connected === true ? '' : ', unless Tributary was taken out of that cluster';
    session.io.out(
      `  SharingPolicy ${policy}, which tributary peer made in ${where}, stays there${unless}. ` +
        `To remove it: tributary unpeer ${us} --context CONTEXT, with the context of ${where}\n`,
    );
  }
}
