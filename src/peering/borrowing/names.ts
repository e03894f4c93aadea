import { MAX_VIRTUAL_NODE_NAME } from '../../api/manifest.ts';

/** On an Advertisement: what its VirtualNodes are named after, chosen once. */
export const ANNOTATION_NODE_NAME = 'tributary.dev/node-name';
/** On a VirtualNode: since when its pods are being ended, RFC 3339. */
export const ANNOTATION_ENDING = 'tributary.dev/ending-since';
/** On a VirtualNode: keys of labels and taints that peering has put there, so that it may take them off again. */
export const ANNOTATION_OWNED = 'tributary.dev/owned';
/** On the kubeconfig Secret: from when to when its token lives, and how the server in it is reached. */
export const ANNOTATION_ISSUED = 'tributary.dev/credential-issued';
export const ANNOTATION_EXPIRES = 'tributary.dev/credential-expires';
/** The text of ANNOTATION_RENEW that its token was the answer to. */
export const ANNOTATION_RENEWED = 'tributary.dev/credential-renewed';
export const ANNOTATION_ACCESS = 'tributary.dev/access';

/** Taint `NoSchedule`: nothing new here, since the peering ends or the offer no longer covers it. */
export const TAINT_CLOSED = 'tributary.dev/closed';

export const secretName = (clusterID: string): string => `tributary-kubeconfig-${clusterID}`;

/** What PerNode puts behind a name (offer/shapes.ts), with the dash before it. */
const SUFFIX_LENGTH = 11;
const ID_PART_LENGTH = 5;
const MAX_BASE = MAX_VIRTUAL_NODE_NAME - SUFFIX_LENGTH - (ID_PART_LENGTH + 1);

/**
 * Names for a provider's VirtualNodes, the nicest first: its own name made a DNS label, then with a part of its ID,
 * then the ID alone.
 */
export function baseNames(clusterName: string | undefined, clusterID: string): string[] {
  const label = (clusterName ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, '-')
    .slice(0, MAX_BASE)
    .replaceAll(/^-+|-+$/gu, '');
  const named = label === '' ? [] : [label, `${label}-${clusterID.slice(0, ID_PART_LENGTH)}`];
  return [...named, `peer-${clusterID}`];
}

export const nodeNameOf = (base: string, suffix: string): string =>
  suffix === '' ? base : `${base}-${suffix}`;

/** Reasons of events of Advertisements; a closed list. */
export const BORROWING_EVENTS = {
  accepted: 'OfferAccepted',
  pending: 'OfferPending',
  refused: 'OfferRefused',
  expired: 'OfferExpired',
  invalid: 'OfferInvalid',
  established: 'PeeringEstablished',
  ending: 'PeeringEnding',
} as const;
