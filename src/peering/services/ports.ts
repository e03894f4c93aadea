import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { AddressPort } from '../../api/tunnel.ts';

type OnChange = (listener: (clusterID: string) => void) => () => void;

/** What services need to know of the peers that we lend to. */
export interface Lent {
  /** The policy that decides about a peer whose contract is in force; undefined for others. */
  policyOf(clusterID: string): SharingPolicy | undefined;
  /** ClusterIDs of all that ask or have asked. */
  peers(): Iterable<string>;
  onChange: OnChange;
}

/** What services need to know of the providers that we borrow from. */
export interface Borrowed {
  /** The policy that decides about a provider that is wanted; undefined for others. */
  policyOf(clusterID: string): AcceptancePolicy | undefined;
  onChange: OnChange;
}

/** Our own end of the network, towards peers. */
export interface OwnPods {
  /** CIDRs of our pods that the peer is told of; none where it may reach none; undefined while that is not known. */
  podsFor(clusterID: string): readonly string[] | undefined;
  onChange: OnChange;
}

/** The network to providers. */
export interface ProviderNetworks {
  /** Undefined until it is known; asking begins to find out. */
  of(clusterID: string): ProviderNetwork | undefined;
  /** Nobody will ask about that provider any more. */
  forget(clusterID: string): void;
  onChange: OnChange;
}

export interface ProviderNetwork {
  state: { kind: 'Up' } | { kind: 'Off' } | { kind: 'Down'; message: string };
  /** A pod of the provider itself, as we see it; undefined where it is none. */
  podAddress(theirs: string): string | undefined;
}

/** Which peers there are links to. */
export interface Linked {
  isLinked(clusterID: string): boolean;
  onChange: OnChange;
}

/** What gateways have to let through. Undefined: not known yet, so what was before stays in force. */
export interface OpenPlaces {
  offered: readonly AddressPort[] | undefined;
  used: readonly AddressPort[] | undefined;
}
