import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { ANNOTATION_FORCE } from '../../api/names.ts';
import { DISCOVERY_SOURCES } from '../../api/peer-selector.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { acceptancePolicyFor, sharingPolicyFor, type PeerFacts } from '../policy/match.ts';
import type { LinkView } from '../ports.ts';
import type { ClusterWish } from './ports.ts';
import { isDeleting, primaryOf } from './same.ts';
import { foundBy } from './sightings.ts';

export interface Policies {
  acceptance: Iterable<AcceptancePolicy>;
  sharing: Iterable<SharingPolicy>;
}

export interface WishInputs {
  clusterID: string;
  /** All ForeignClusters about it. */
  clusters: readonly ForeignCluster[];
  view: LinkView | undefined;
  policies: Policies;
  joinToken: string | undefined;
  now: number;
}

/**
 * What is wanted of a cluster. Without a ForeignCluster nothing is, and what there is comes down; only a peer that
 * is linked to us this moment may ask, since its object is about to be made.
 */
export function wishOf(inputs: WishInputs): ClusterWish {
  const { clusterID, clusters, view, policies, joinToken } = inputs;
  const subject = primaryOf(clusters);
  const facts = factsOf(inputs, subject);
  const nothing = { clusterID, facts, wanted: false, namespaces: [], force: false };
  if (subject === undefined)
    return withSharing({ ...nothing, incoming: view ? 'Auto' : 'Disabled' }, policies);
  const force = isForced(subject);
  if (isDeleting(subject)) return { ...nothing, subject, incoming: 'Disabled', force };
  const { outgoing = 'Auto', incoming = 'Auto', namespaces = [] } = subject.spec ?? {};
  const policy = outgoing === 'Disabled' ? undefined : acceptancePolicyFor(policies.acceptance, facts);
  const asks = outgoing === 'Auto' && policy?.spec.approval === 'Automatic';
  return withSharing(
    {
      clusterID,
      subject,
      facts,
      wanted: outgoing === 'Enabled' || asks,
      ...(policy && { policy }),
      namespaces,
      ...(joinToken !== undefined && { joinToken }),
      incoming,
      force,
    },
    policies,
  );
}

const isForced = ({ metadata }: ForeignCluster): boolean =>
  metadata.annotations?.[ANNOTATION_FORCE] === 'true';

function withSharing(wish: ClusterWish, { sharing }: Policies): ClusterWish {
  const policy = wish.incoming === 'Disabled' ? undefined : sharingPolicyFor(sharing, wish.facts);
  return { ...wish, ...(policy && { sharingPolicy: policy }) };
}

/**
 * What policies look at. While a peering lasts, what it was agreed on counts beside what is seen now: neither a lost
 * link nor a missed announcement may end it. On a link, the keys that are proved there are the whole truth.
 */
function factsOf({ clusterID, clusters, view, now }: WishInputs, subject?: ForeignCluster): PeerFacts {
  // Of all objects about it: another one may just have become the one that counts.
  const standings = clusters.flatMap(({ status }) => status?.standing ?? []);
  const found = new Set([...foundBy(clusters, view, now), ...standings.flatMap((one) => one.foundBy ?? [])]);
  const keys = standings.flatMap(({ networkKeys = [] }) => networkKeys);
  return {
    clusterID,
    labels: subject?.metadata.labels ?? {},
    foundBy: DISCOVERY_SOURCES.filter((source) => found.has(source)),
    networkKeys: view?.networkKeys ?? [...new Set(keys)],
  };
}
