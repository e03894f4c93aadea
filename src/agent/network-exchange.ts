/** The network's part in role `cluster`: what it exchanges with peers. It needs nothing of the host. */
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { Exchange } from '../network/exchange/exchange.ts';
import type { ExchangeMetrics } from '../network/exchange/tunnels.ts';
import type { Lending } from '../peering/lending/lending.ts';
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
  lending: Pick<Lending, 'forbidsHomeApiServer' | 'onChange'>;
  metrics: ControllerMetrics;
  exchangeMetrics: ExchangeMetrics;
}

/** The network as one side of the peering link. Its components start before the links. */
export function networkExchange({
  parts: { config, clock, log },
  home,
  caches,
  own,
  isLinked,
  services,
  lending,
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
    homeApiServers: {
      isForbidden: (clusterID) => lending.forbidsHomeApiServer(clusterID),
      onChange: (listener) => lending.onChange(listener),
    },
    metrics,
    exchangeMetrics,
    podCidrs: config.podCidrs,
    serviceCidrs: config.serviceCidrs,
    ...(config.serviceAddress !== undefined && { serviceAddress: config.serviceAddress }),
    externalCidr: config.externalCidr,
    viewPools: config.viewPools,
    reservedCidrs: config.reservedCidrs,
    identityViews: config.identityViews,
    presharedKeys: config.presharedKeys,
  });
}
