import type {
  HomeApiServerView,
  HomeDnsView,
  NetworkState,
  PeerView,
  PrefixView,
} from '../../../../src/api/tunnel.ts';
import { ViewTable } from '../../../../src/network/views.ts';
import { type NetworkView, NO_NETWORK } from '../../../../src/provider/network-view.ts';
import type { MirrorContext } from '../../../../src/provider/reflect/mirrored-kind.ts';

/** A network that the test switches. */
export class FakeNetwork implements NetworkView {
  readonly #listeners = new Set<() => void>();
  #state: NetworkState = { kind: 'Up' };
  /** While Off: home has a network of its own. */
  #hides = false;
  #views: readonly PeerView[] = [{ use: 'Pods', prefix: '10.0.0.0/16', as: '100.64.0.0/16' }];
  #seenAs: readonly PrefixView[] = [{ prefix: '10.1.0.0/16', as: '100.99.0.0/16' }];

  #homeApiServer: HomeApiServerView = NO_NETWORK.homeApiServer;
  #homeDns: HomeDnsView = NO_NETWORK.homeDns;

  get state(): NetworkState {
    return this.#state;
  }

  homeViewOf(address: string): string | undefined {
    if (this.#state.kind !== 'Off') return new ViewTable(this.#views).translate(address);
    return this.#hides ? undefined : address;
  }

  foreignViewOf(address: string): string | undefined {
    return new ViewTable(this.#seenAs).translate(address);
  }

  ownOf(address: string): string | undefined {
    return new ViewTable(this.#seenAs).translateBack(address);
  }

  get prefixes(): NetworkView['prefixes'] {
    return { exported: this.#seenAs, theirs: this.#views.filter(({ use }) => use === 'Pods') };
  }

  get homeApiServer(): HomeApiServerView {
    return this.#homeApiServer;
  }

  get homeDns(): HomeDnsView {
    return this.#homeDns;
  }

  isTheirs(address: string): boolean {
    return this.nativeOf(address) !== undefined;
  }

  nativeOf(address: string): string | undefined {
    return new ViewTable(this.#views).translateBack(address);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(change: {
    state?: NetworkState;
    hides?: boolean;
    views?: readonly PeerView[];
    seenAs?: readonly PrefixView[];
    homeApiServer?: HomeApiServerView;
    homeDns?: HomeDnsView;
  }): void {
    this.#state = change.state ?? this.#state;
    this.#hides = change.hides ?? this.#hides;
    this.#views = change.views ?? this.#views;
    this.#seenAs = change.seenAs ?? this.#seenAs;
    this.#homeApiServer = change.homeApiServer ?? this.#homeApiServer;
    this.#homeDns = change.homeDns ?? this.#homeDns;
    for (const listener of this.#listeners) listener();
  }
}

export const DOWN: NetworkState = { kind: 'Down', reason: 'NoAnswer', message: 'no probe came back' };

/** For kinds that ask for neither pods of home nor its DNS. */
export const NO_WORLD: Pick<MirrorContext, 'dns' | 'isOther' | 'virtualNode' | 'world'> = {
  virtualNode: 'rome',
  isOther: () => false,
  dns: { own: { nameservers: [], domain: undefined }, way: { kind: 'NotChosen' } },
  world: { namespaces: () => [], podsIn: () => [], hasNodeAt: () => false },
};
