import type { ForeignCluster } from '../api/foreign-cluster.ts';
import type { Clusters } from '../peering/clusters/clusters.ts';
import { idOf } from '../peering/clusters/foreign-cluster.ts';
import type { PeeringCertificate } from '../peering/identity/certificate.ts';
import { presentedChain, verifyChain } from '../peering/identity/verify.ts';
import type { LinkRegistry } from '../peering/link/registry.ts';
import type { Reach } from '../peering/reach/reach.ts';
import { PeeringEndpoint } from '../server/peering/endpoint.ts';
import type { NamedEndpoint } from '../server/peering/known-addresses.ts';
import type { AgentParts } from './parts.ts';

interface PeeringEndpointParts {
  parts: AgentParts;
  certificate: PeeringCertificate;
  links: LinkRegistry;
  reach: Reach;
  clusters: Clusters;
  /** All that are known. */
  seen: { list: () => Iterable<ForeignCluster> };
}

/** Where peers reach us, and who gets what they bring. */
export function peeringEndpoint(options: PeeringEndpointParts): PeeringEndpoint {
  const { parts, certificate, links, reach, clusters, seen } = options;
  const { clock, log, config } = parts;
  return new PeeringEndpoint({
    clock,
    log: log.named('endpoint'),
    port: config.peeringPort,
    certificate,
    verify: (socket) => verifyChain(presentedChain(socket), clock.now()),
    handlers: {
      link: (socket, peer, from) => links.accept(socket, peer, from),
      stream: (socket, peer, id) => reach.acceptStream(socket, peer, id),
      api: (socket, peer) => reach.acceptApi(socket, peer),
    },
    isKnown: (clusterID) => clusters.isKnown(clusterID),
    named: () => namedEndpoints(seen.list()),
  });
}

/** What people have written, and where links were. Not what was seen: on a LAN anybody can announce any cluster anywhere. */
export function* namedEndpoints(clusters: Iterable<ForeignCluster>): Generator<NamedEndpoint> {
  for (const cluster of clusters) {
    const clusterID = idOf(cluster);
    if (clusterID === undefined) continue;
    const { spec, status } = cluster;
    for (const endpoint of [spec?.endpoint, status?.link?.endpoint]) {
      if (endpoint !== undefined) yield { clusterID, endpoint };
    }
  }
}
