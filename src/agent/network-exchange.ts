/** The network's exchange of words with peers, made of the options, as the side of the peering link that it is. */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { Exchange } from '../network/exchange/exchange.ts';
import type { ExchangeMetrics } from '../network/exchange/tunnels.ts';
import type { NetworkSide } from '../peering/ports.ts';
import type { Services } from '../peering/services/services.ts';
import type { AgentParts } from './parts.ts';

export interface NetworkExchangeOptions {
  parts: AgentParts;
  home: KubeClient;
  caches: Caches;
  /** Our ClusterID. */
  own: string;
  isLinked: (clusterID: string) => boolean;
  /** Whose packets gateways let through to Services. */
  services: () => Pick<Services, 'places' | 'onPlaces'>;
  metrics: ControllerMetrics;
  exchangeMetrics: ExchangeMetrics;
}

/** Its components start before the links. */
export function networkExchange({
  parts: { config, clock, log },
  home,
  caches,
  own,
  isLinked,
  services,
  metrics,
  exchangeMetrics,
}: NetworkExchangeOptions): NetworkSide & Pick<Exchange, 'components' | 'onChange' | 'podsFor'> {
  return new Exchange({
    client: home,
    caches,
    clock,
    log: log.named('network'),
    namespace: config.systemNamespace,
    own,
    isLinked,
    services: {
      of: (clusterID) => services().places(clusterID),
      onChange: (listener) => services().onPlaces(listener),
    },
    metrics,
    exchangeMetrics,
    podCidrs: config.podCidrs,
    serviceCidrs: config.serviceCidrs,
    externalCidr: config.externalCidr,
    viewPools: config.viewPools,
    reservedCidrs: config.reservedCidrs,
    identityViews: config.identityViews,
    presharedKeys: config.presharedKeys,
  });
}

/** One series for each peer, gone with it. */
export function networkExchangeMetrics(registry: Registry): ExchangeMetrics {
  const [seen, refused] = [
    ['tributary_network_prefixes', 'Prefixes of a peer that are seen here.'],
    ['tributary_network_prefixes_refused', 'Prefixes of a peer that are not seen here.'],
  ].map(
    ([name = '', help = '']) => new Gauge({ name, help, labelNames: ['peer'], registers: [registry] }),
  ) as [Gauge<'peer'>, Gauge<'peer'>];
  return {
    prefixes: (peer, counts) => {
      if (counts === undefined) {
        seen.remove({ peer });
        refused.remove({ peer });
        return;
      }
      seen.set({ peer }, counts.seen);
      refused.set({ peer }, counts.refused);
    },
  };
}
