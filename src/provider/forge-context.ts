import type { ForeignContact } from './node/contact.ts';
import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import { type ForgeContext, saidBy } from './forge/context.ts';
import type { HomeApiServerWay } from './home-api-server.ts';
import type { HomeDnsWay } from './home-dns.ts';
import type { NetworkView } from './network-view.ts';
import type { PolicyStates } from './policy-states.ts';
import type { Tenants } from './tenants.ts';
import type { ReturnedPods } from './returned-pods.ts';

interface ForgeContextParts {
  virtualNode: VirtualNode;
  tenants: Pick<Tenants, 'names'>;
  nodeName: string;
  nodeAddress: string;
  homeApiServer: HomeApiServerWay;
  homeDns: HomeDnsWay;
  network: NetworkView;
  contact: Pick<ForeignContact, 'state'>;
  returned: Pick<ReturnedPods, 'addressOf' | 'isReady'>;
  policies: Pick<PolicyStates, 'marks'>;
}

/** What pods of one namespace are translated with, as it is now. */
export function forgeContext({ tenantNamespace }: NamespaceMapping, parts: ForgeContextParts): ForgeContext {
  const {
    virtualNode,
    nodeName,
    nodeAddress,
    homeApiServer: way,
    homeDns: dns,
    network,
    contact,
    returned,
    policies,
    tenants,
  } = parts;
  return {
    virtualNode: virtualNode.metadata.name,
    nodeName,
    nodeAddress,
    tenantNamespace,
    tenants: () => tenants.names(),
    ...saidBy(virtualNode),
    ...(way.kind === 'At' ? { homeApiServer: way } : { noHomeApiServer: way.message }),
    ...(dns.kind === 'At' && { homeDns: dns }),
    ...(dns.kind === 'None' && { noHomeDns: dns.message }),
    network: network.state.kind,
    isAway: contact.state.away,
    homeViewOf: (address) => network.homeViewOf(address),
    policyMarks: (pod) => policies.marks(pod),
    returnedTo: (uid, address) => returned.addressOf(uid, address),
    isReturnedReady: (uid, address) => returned.isReady(uid, address),
  };
}
