/**
 * Who somebody is and what they may list, asked of the API server with their own token. So it is the API server that
 * decides, as for kubectl, and our own account needs no right to review anybody.
 */
import type { ResourceType } from '../api/resources.ts';
import * as resources from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { advertisements } from '../api/advertisement.ts';
import { clusterModes } from '../api/cluster-mode.ts';
import { foreignClusters } from '../api/foreign-cluster.ts';
import { namespaceOffloadings } from '../api/namespace-offloading.ts';
import { peeringRequests } from '../api/peering-request.ts';
import { tunnels } from '../api/tunnel.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { KubeClient } from '../kube/client.ts';
import { TributaryError } from '../lib/errors.ts';
import { SECTION_KINDS, type SectionKind } from './model.ts';

export const KINDS: Readonly<Record<SectionKind, ResourceType<KubeObject>>> = {
  foreignclusters: foreignClusters,
  peeringrequests: peeringRequests,
  advertisements,
  tunnels,
  virtualnodes: virtualNodes,
  namespaceoffloadings: namespaceOffloadings,
  clustermodes: clusterModes,
  namespaces: resources.namespaces,
  pods: resources.pods,
  events: resources.events,
};

/** Throws Unauthorized when the token is of no user. */
export async function whoIs(client: KubeClient, signal: AbortSignal): Promise<string> {
  const review = await client.create(resources.selfSubjectReviews, { metadata: {} }, { signal });
  const name = review.status?.userInfo?.username ?? '';
  if (name === '' || name === 'system:anonymous') {
    throw new TributaryError('Unauthorized', 'the API server knows nobody with this token');
  }
  return name;
}

/** The kinds that they may list and watch in all namespaces. Throws Unauthorized once the token has ended. */
export async function listable(client: KubeClient, signal: AbortSignal): Promise<ReadonlySet<SectionKind>> {
  const allowed = await Promise.all(
    SECTION_KINDS.map(async (kind) => {
      const answers = await Promise.all(
        ['list', 'watch'].map(async (verb) => may(client, { verb, type: KINDS[kind] }, signal)),
      );
      return answers.every(Boolean);
    }),
  );
  return new Set(SECTION_KINDS.filter((_, index) => allowed[index]));
}

async function may(
  client: KubeClient,
  { verb, type }: { verb: string; type: ResourceType<KubeObject> },
  signal: AbortSignal,
): Promise<boolean> {
  const { group, version, plural: resource } = type;
  const spec = { resourceAttributes: { verb, group, version, resource } };
  const review = await client.create(resources.selfSubjectAccessReviews, { metadata: {}, spec }, { signal });
  return review.status?.allowed === true && review.status.denied !== true;
}
