import { isConditionTrue } from '../../api/conditions.ts';
import {
  GATEWAY_CONFIG_MAP,
  GATEWAY_LEASE,
  NETWORK_CONFIG_MAP,
  PROBE_PORT,
  readGatewayFacts,
  readOwnNetwork,
} from '../../api/own-network.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** Packets between the gateway and the other nodes of this cluster, as the gateway measures them. */
export function overlayFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('overlay');
  const dataOf = (wanted: string): Record<string, string> | undefined =>
    itemsOf(lists.configMaps).find(({ metadata }) => metadata.name === wanted)?.data;
  const network = readOwnNetwork(dataOf(NETWORK_CONFIG_MAP));
  const measured = readGatewayFacts(dataOf(GATEWAY_CONFIG_MAP));
  const lease = itemsOf(lists.leases).find(({ metadata }) => metadata.name === GATEWAY_LEASE);
  const holder = network?.nodes.find(({ name }) => name === lease?.spec?.holderIdentity);
  if (network === undefined || measured === undefined || holder === undefined) return [];
  const others = network.nodes.filter(({ name }) => name !== holder.name);
  if (others.length === 0) return [];
  const tried = (to: string): string => `VXLAN between node ${holder.name} of the gateway and ${to}`;
  const all = tried(`${others.length} others`);
  if (measured.silentNodes === undefined) {
    findings.unknown(THIS_CLUSTER, { tried: all, cameBack: 'the gateway has not measured it yet' });
    return findings.all();
  }
  // Of a node that is not Ready Kubernetes says more, and `agents` tells of that of the gateway.
  const dead = new Set(
    itemsOf(lists.nodes).flatMap((node) =>
      isConditionTrue(node.status?.conditions, 'Ready') ? [] : [node.metadata.name],
    ),
  );
  const names = new Set(measured.silentNodes);
  const silent = others.filter(({ name }) => names.has(name) && !dead.has(name));
  for (const { name, address } of silent) {
    const [here, there] = [holder, { address }].map((at) => `${at.address}:${network.vxlan.port}`);
    findings.problem(
      THIS_CLUSTER,
      {
        tried: tried(`node ${name}`),
        cameBack: 'no answer: its pods reach no peer, and no peer reaches them',
      },
      {
        remedy:
          `let UDP through from ${here} to ${there}, and back from ${there} to ${here}; see that the role node runs on both (kubectl ` +
          `-n tributary-network get pods -o wide), and that no firewall of ${name} drops TCP to ${PROBE_PORT} that comes out of it`,
      },
    );
  }
  if (silent.length === 0) findings.ok(THIS_CLUSTER, { tried: all, cameBack: 'they answer' });
  return findings.all();
}
