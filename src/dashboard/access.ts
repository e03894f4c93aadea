/**
 * Who somebody is and what they may list, asked of the API server with their own token. So it is the API server that
 * decides, as for kubectl, and our own account needs no right to review anybody.
 */
import type { ResourceType } from '../api/resources.ts';
import * as resources from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { timestamp } from '../api/conditions.ts';
import { advertisements } from '../api/advertisement.ts';
import { clusterModes } from '../api/cluster-mode.ts';
import { foreignClusters } from '../api/foreign-cluster.ts';
import { namespaceOffloadings } from '../api/namespace-offloading.ts';
import { peeringRequests } from '../api/peering-request.ts';
import { tunnels } from '../api/tunnel.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { KubeClient } from '../kube/client.ts';
import { credentialEnd } from '../kube/credential-end.ts';
import { hasCode, TributaryError } from '../lib/errors.ts';
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

/** Throws Unauthorized, with what is wrong and how to get another token, when it is of no user. `client` shows it. */
export async function whoIs(
  client: KubeClient,
  { token, now, signal }: { token: string; now: number; signal: AbortSignal },
): Promise<string> {
  let name = '';
  try {
    const review = await client.create(resources.selfSubjectReviews, { metadata: {} }, { signal });
    name = review.status?.userInfo?.username ?? '';
  } catch (error) {
    if (!hasCode(error, 'Unauthorized')) throw error;
  }
  if (name !== '' && name !== 'system:anonymous') return name;
  const end = await credentialEnd({ token: async () => Promise.resolve(token) });
  throw new TributaryError('Unauthorized', `${whyRefused(end, now)}. ${ANOTHER_TOKEN}`);
}

const ANOTHER_TOKEN = 'To get a new one: kubectl --namespace NAMESPACE create token ACCOUNT';

function whyRefused(end: number | undefined, now: number): string {
  const refused = 'the API server does not accept this token';
  if (end === undefined) return `${refused}: it is not one of a ServiceAccount, or not all of it was copied`;
  if (end <= now) return `${refused}: it ended at ${timestamp(end)}`;
  return `${refused}: it is of another cluster, or its ServiceAccount is gone`;
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
