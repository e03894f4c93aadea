/** Services of one cluster that another uses, put together with what they have to know of the network. */
import { tunnels } from '../api/tunnel.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { ProviderNetwork, ProviderNetworks } from '../peering/services/ports.ts';
import type { Clusters } from '../peering/clusters/clusters.ts';
import type { Lending } from '../peering/lending/lending.ts';
import type { PeerLinks } from '../peering/ports.ts';
import { Services, type ServicesOptions } from '../peering/services/services.ts';
import { TunnelView } from './network-view.ts';

export interface OfferedServicesParts extends Pick<
  ServicesOptions,
  'client' | 'caches' | 'clock' | 'log' | 'events' | 'metrics' | 'ownPods'
> {
  lending: Pick<Lending, 'policyOf' | 'reports' | 'onChange'>;
  clusters: Pick<Clusters, 'wish' | 'onChange'>;
  /** Called from the start of its components on. */
  links: () => Pick<PeerLinks, 'view' | 'onChange'>;
}

/** Its components start after those of the network and before the links. */
export function offeredServices({ lending, clusters, links, ...parts }: OfferedServicesParts): Services {
  const { client: home, caches, clock, log } = parts;
  return new Services({
    ...parts,
    lent: {
      policyOf: (clusterID) => lending.policyOf(clusterID),
      peers: () => [...lending.reports()].map(([clusterID]) => clusterID),
      onChange: (listener) => lending.onChange(listener),
    },
    borrowed: {
      policyOf: (clusterID) => {
        const { wanted, policy } = clusters.wish(clusterID);
        return wanted ? policy : undefined;
      },
      onChange: (listener) => clusters.onChange(listener),
    },
    networks: new ProviderViews({ home, caches, clock, log: log.named('services') }),
    linked: () => ({
      isLinked: (clusterID) => links().view(clusterID) !== undefined,
      onChange: (listener) =>
        links().onChange(({ clusterID }) => {
          if (clusterID !== undefined) listener(clusterID);
        }),
    }),
  });
}

export interface ProviderViewsOptions {
  home: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
}

interface Entry {
  view: TunnelView;
  isKnown: boolean;
}

/** The network to each provider whose Services are used here, as its Tunnel tells; followed from the first question on. */
export class ProviderViews implements ProviderNetworks, Component {
  readonly name = 'networks of providers';
  readonly #options: ProviderViewsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(clusterID: string) => void>();
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: ProviderViewsOptions) {
    this.#options = options;
  }

  of(clusterID: string): ProviderNetwork | undefined {
    const entry = this.#entries.get(clusterID) ?? this.#begin(clusterID);
    return entry.isKnown ? networkOf(entry.view) : undefined;
  }

  forget(clusterID: string): void {
    const entry = this.#entries.get(clusterID);
    this.#entries.delete(clusterID);
    if (entry !== undefined) this.#follow(entry.view.stop());
  }

  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async start(): Promise<void> {
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    for (const clusterID of this.#entries.keys()) this.forget(clusterID);
    await Promise.all(this.#running);
  }

  #begin(clusterID: string): Entry {
    const { home, caches, clock, log } = this.#options;
    // All Tunnels are watched anyway in this process.
    const own = caches.of(tunnels, { only: ({ metadata }) => metadata.name === clusterID });
    const view = new TunnelView({ home, provider: clusterID, tunnels: own, clock, log });
    const entry: Entry = { view, isKnown: false };
    const tell = (): void => {
      if (this.#entries.get(clusterID) === entry) for (const listener of this.#listeners) listener(clusterID);
    };
    this.#entries.set(clusterID, entry);
    view.onChange(tell);
    const started = view.start(this.#abort.signal).then(
      () => {
        entry.isKnown = true;
        tell();
      },
      (error: unknown) => {
        log.debug('the network to a provider is not known', { peer: clusterID, error: errorMessage(error) });
      },
    );
    this.#follow(started);
    return entry;
  }

  #follow(work: Promise<unknown>): void {
    const followed = work.catch(() => undefined).finally(() => this.#running.delete(followed));
    this.#running.add(followed);
  }
}

function networkOf(view: TunnelView): ProviderNetwork {
  const { state } = view;
  return {
    state: state.kind === 'Down' ? { kind: 'Down', message: state.message } : state,
    podAddress: (theirs) => {
      if (state.kind === 'Off') return undefined;
      const address = view.homeViewOf(theirs);
      // Not nodes of the provider, and not what it forwards of third clusters.
      return address !== undefined && view.isTheirs(address) ? address : undefined;
    },
  };
}
