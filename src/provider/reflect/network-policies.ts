/** How a NetworkPolicy of home is kept in the tenant namespace: as a GuestNetworkPolicy, since peers make no NetworkPolicies. Pure. */
import {
  type GuestNetworkPolicy,
  guestNetworkPolicies,
  LABEL_GUEST_NETWORK_POLICY,
} from '../../api/guest-network-policy.ts';
import { ANNOTATION_HOME_GENERATION, LABEL_PEER } from '../../api/names.ts';
import type { NetworkPolicy } from '../../api/network-policy.ts';
import { networkPolicies } from '../../api/resources.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import {
  type Forged,
  mayBeCopied,
  mergedMeta,
  type MirrorContext,
  type MirroredKind,
  mirroredMeta,
  SAME_NAME,
} from './mirrored-kind.ts';
import { forgePolicySpec, selectsPeers } from './policy-rules.ts';

export const NOT_EXACT = 'PolicyStricterAbroad';

export const networkPolicyKind: MirroredKind<NetworkPolicy, GuestNetworkPolicy> = {
  kind: 'networkpolicies.networking.k8s.io',
  type: networkPolicies,
  copyType: guestNetworkPolicies,
  ruledBy: { group: 'networking.k8s.io', resource: 'networkpolicies' },
  needsNetwork: false,
  isWhole: true,
  needsPods: ({ spec = {} }) => selectsPeers(spec),
  ...SAME_NAME,
  select: (policy) => mayBeCopied(policy) && !isIsolation(policy),
  forge,
  mustReplace: () => false,
  merge: (copy, wanted) => ({
    ...copy,
    spec: wanted.spec,
    metadata: mergedMeta(copy.metadata, wanted.metadata, [ANNOTATION_HOME_GENERATION]),
  }),
};

/**
 * What keeps guests apart in this cluster is about this cluster. Its namespaces of guests can be sent on, back to the home of the guests;
 * then what that home says of them goes along.
 */
const isIsolation = ({ metadata: { labels = {} } }: NetworkPolicy): boolean =>
  LABEL_PEER in labels && !(LABEL_GUEST_NETWORK_POLICY in labels);

function forge({ metadata, spec = {} }: NetworkPolicy, context: MirrorContext): Forged<GuestNetworkPolicy> {
  const { spec: forged, notes } = forgePolicySpec(spec, context);
  const causes = [...new Set(notes)];
  const annotations = { [ANNOTATION_HOME_GENERATION]: generationOf({ metadata }) };
  return {
    object: {
      apiVersion: API_VERSION,
      kind: guestNetworkPolicies.kind,
      metadata: mirroredMeta(metadata.name, context, { labels: {}, annotations }),
      spec: forged,
    },
    ...(causes.length > 0 && {
      leftOut: { reason: NOT_EXACT, message: summaryOf(causes, context), causes },
    }),
  };
}

const summaryOf = ([first = '', ...others]: readonly string[], { virtualNode }: MirrorContext): string =>
  `for pods in ${virtualNode}: ${first}` +
  (others.length === 0
    ? ''
    : `; and ${others.length} more, in status.stricterPolicies of VirtualNode ${virtualNode}`);

/** Which one, and of which generation. */
const generationOf = ({ metadata: { uid, generation = 1 } }: Pick<NetworkPolicy, 'metadata'>): string =>
  `${uid}/${generation}`;

/** Whether what the policy says now is in force over there. Addresses of pods that it selects follow later, when they come and when they go. */
export const isInForce = (policy: NetworkPolicy, copy: GuestNetworkPolicy | undefined): boolean =>
  copy !== undefined &&
  copy.metadata.annotations?.[ANNOTATION_HOME_GENERATION] === generationOf(policy) &&
  copy.status?.observedGeneration === copy.metadata.generation;
