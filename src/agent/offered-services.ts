/** Connects the Services that one cluster offers and another uses with what they have to know of the network. */
import { TunnelViews } from '../network/tunnel-view.ts';
import type { Clusters } from '../peering/clusters/clusters.ts';
import type { Lending } from '../peering/lending/lending.ts';
import type { PeerLinks } from '../peering/ports.ts';
import { Services, type ServicesOptions } from '../peering/services/services.ts';

interface OfferedServicesParts extends Pick<
  ServicesOptions,
  'client' | 'caches' | 'clock' | 'log' | 'events' | 'metrics' | 'ownPods'
> {
  lending: Pick<Lending, 'policyOf' | 'reports' | 'onChange'>;
  clusters: Pick<Clusters, 'intent' | 'onChange'>;
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
        const { wanted, policy } = clusters.intent(clusterID);
        return wanted ? policy : undefined;
      },
      onChange: (listener) => clusters.onChange(listener),
    },
    networks: new TunnelViews({ home, caches, clock, log: log.named('services') }),
    linked: () => ({
      isLinked: (clusterID) => links().view(clusterID) !== undefined,
      onChange: (listener) =>
        links().onChange(({ clusterID }) => {
          if (clusterID !== undefined) listener(clusterID);
        }),
    }),
  });
}
