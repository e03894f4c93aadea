import { LABEL_HOME_UID } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { ignoring } from '../../lib/errors.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import { LOOKUP_WAIT_MS } from '../home-paces.ts';
import type { CommonParts } from '../namespaces.ts';
import type { KeptBodies } from '../restored/kept-bodies.ts';
import { FORCED_GRACE_SECONDS } from './decide.ts';
import type { RemotePods } from './remote-pods.ts';

interface CollectParts extends Pick<CommonParts, 'home' | 'homePods' | 'tenants'> {
  kept: Pick<KeptBodies, 'isKept' | 'keepMs'>;
  remotes: RemotePods;
  lookups: TokenBucket;
}

/** A cache that a live read contradicted is listed again; until then the key waits this long. */
const RELIST_WAIT_MS = 1_000;

/**
 * A remote pod without a home pod: deleted there by force, unless it is only the home cache that is wrong, or home was restored
 * and has lost the pod. One that is in the way of a live home pod of its name is not kept.
 */
export async function collectRemote(
  { remote, isInTheWay }: { remote: Pod; isInTheWay: boolean },
  { home, homePods, lookups, tenants, kept, remotes }: CollectParts,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const tenant = [...tenants.all()].find(
    ({ mapping }) => mapping.tenantNamespace === remote.metadata.namespace,
  );
  if (tenant === undefined) return {};
  if (!lookups.tryTake(1)) return { requeueAfterMs: LOOKUP_WAIT_MS };
  // As it was decided. A restore that is noticed below changes that: the body may serve the home pod that has its name.
  const wasKept = kept.isKept(remote);
  const { homeNamespace } = tenant.mapping;
  const owner = await home
    .get(pods, { namespace: homeNamespace, name: remote.metadata.name }, { signal })
    .catch(ignoring('NotFound'));
  const uid = remote.metadata.labels?.[LABEL_HOME_UID];
  // A body whose label was taken off is nobody's, and no sign that the cache is wrong.
  if (owner !== undefined && owner.metadata.uid === uid) {
    homePods.relist('a home pod exists that the cache has lost');
    return { requeueAfterMs: RELIST_WAIT_MS };
  }
  const keepMs = await kept.keepMs(remote, signal);
  const mayGo = isInTheWay && owner !== undefined && wasKept && kept.isKept(remote);
  if (keepMs > 0 && !mayGo) return { requeueAfterMs: keepMs };
  await remotes.delete(remote, FORCED_GRACE_SECONDS, signal);
  return {};
}
