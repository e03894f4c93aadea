import {
  HOME_REACH_REASONS,
  type HomeApiServerView,
  type HomeDnsView,
  type NetworkState,
  type PrefixView,
} from '../api/tunnel.ts';

/** The network between the home cluster and the foreign one: how addresses translate, and whether they can be reached. */
export interface NetworkView {
  readonly state: NetworkState;
  /**
   * A foreign address as home sees it; undefined where home has no view of it (yet). While Off: the address itself where
   * home has no network either, undefined where it has one, in which a foreign address may mean another pod.
   */
  homeViewOf(foreignAddress: string): string | undefined;
  /** An address as home writes it, as the foreign cluster sees it; undefined where it is not exported there. */
  foreignViewOf(homeAddress: string): string | undefined;
  /** An address of home's own that the foreign cluster has written as it sees it, as home writes it; undefined for others. */
  ownOf(foreignAddress: string): string | undefined;
  /** Whether an address as home writes it belongs to a pod of the foreign cluster itself, and so is native there. */
  isTheirs(homeAddress: string): boolean;
  /** That address as the foreign cluster itself writes it; undefined where it is not one of its pods. */
  nativeOf(homeAddress: string): string | undefined;
  readonly prefixes: {
    /** Of home and of what it forwards, as home writes them, and `as` the foreign cluster sees them. */
    exported: readonly PrefixView[];
    /** Of pods over there, as the foreign cluster writes them, and `as` home sees them. */
    theirs: readonly PrefixView[];
  };
  /** In addresses of the foreign cluster. */
  readonly homeApiServer: HomeApiServerView;
  readonly homeDns: HomeDnsView;
  /** Calls back after any of the answers may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/** Without a network each cluster keeps its addresses to itself: foreign ones are shown as they are. */
export const NO_NETWORK: NetworkView = {
  state: { kind: 'Off' },
  homeViewOf: (address) => address,
  foreignViewOf: () => undefined,
  ownOf: () => undefined,
  isTheirs: () => false,
  nativeOf: () => undefined,
  prefixes: { exported: [], theirs: [] },
  homeApiServer: {
    kind: 'None',
    reason: HOME_REACH_REASONS.noNetwork,
    message: 'no tunnel leads to the provider; spec.homeApiServer can name another way',
  },
  homeDns: { kind: 'NotChosen' },
  onChange: () => () => undefined,
};
