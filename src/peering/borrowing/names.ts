import { MAX_VIRTUAL_NODE_NAME } from '../../api/manifest.ts';

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
