import type { NetworkNode } from '../../api/own-network.ts';
import { formatPrefix, tryPrefix } from '../../lib/prefix.ts';
import type { ChainConfig, TableConfig } from '../host/host-config.ts';
import { HOOKS, peerName, REFUSED_NODE, REFUSED_VXLAN } from './names.ts';
import type { NodePlanFacts } from './node.ts';
import { FAMILIES, familyOf, viewsOf, WORDS } from './peer.ts';
import { addressSets, refuse } from './sets.ts';

/** `self`: where there is VXLAN. */
export function nodeTable(facts: NodePlanFacts, self: NetworkNode | undefined): TableConfig {
  const peers = facts.tunnels.map(({ tunnel }) => ({ id: tunnel.metadata.name, views: viewsOf(tunnel) }));
  return {
    chains: [
      ...(self === undefined ? [] : guards(facts)),
      { name: 'source', hook: HOOKS.source, rules: sourceRules(facts, self) },
      ...peers.map(({ id, views }) => ({
        name: peerName('keep', id),
        rules: views.map(({ family, prefix }) => keep(family, prefix)),
      })),
    ],
    sets: [
      ...FAMILIES.map((family) => ({
        name: `keep${family}`,
        type: `ipv${family}_addr`,
        value: 'verdict',
        interval: true,
        elements: peers.flatMap(({ id, views }) =>
          views
            .filter((view) => view.family === family)
            .map(({ prefix }) => ({ key: prefix, value: `jump ${peerName('keep', id)}` })),
        ),
      })),
      ...(self === undefined
        ? []
        : addressSets(
            (family) => `nodes${family}`,
            facts.network.nodes.map(({ address }) => address),
          )),
    ],
  };
}

/**
 * The source stays as it is, and nobody after us changes it: a decision of nat is final, while an `accept` in one chain
 * leaves the next one free to masquerade.
 */
const keep = (family: 4 | 6, prefix: string): string =>
  `${WORDS[family]} saddr ${prefix} snat ${WORDS[family]} prefix to ${prefix}`;

function sourceRules({ network, link, vxlanLink }: NodePlanFacts, self: NetworkNode | undefined): string[] {
  const views = FAMILIES.map((family) => `${WORDS[family]} saddr vmap @keep${family}`);
  // What leaves by WireGuard is the gateway's to translate.
  const rules = [`oifname "${link}" return`, ...views];
  if (self === undefined) return rules;
  const pods = network.pods.flatMap((text) => tryPrefix(text) ?? []);
  const family = familyOf(self.external);
  return [
    ...rules,
    `oifname != "${vxlanLink}" return`,
    ...pods.map((prefix) => keep(prefix.family, formatPrefix(prefix))),
    `meta nfproto ipv${family} snat ${WORDS[family]} to ${self.external}`,
  ];
}

/** VXLAN believes whoever knows its port, and what comes out of it may be a peer's. */
function guards({ network, vxlanLink }: NodePlanFacts): ChainConfig[] {
  const vxlan = `udp dport ${network.vxlan.port}`;
  const sides = (side: 'saddr' | 'daddr', is: '' | '!= '): string[] =>
    FAMILIES.map(
      (family) => `${vxlan} ${WORDS[family]} ${side} ${is}@nodes${family} ${refuse(REFUSED_VXLAN)}`,
    );
  return [
    {
      name: 'arrival',
      hook: HOOKS.arrival,
      // Before kube-proxy: an address of the node with the port of a service is a service.
      rules: [`iifname "${vxlanLink}" ct state new fib daddr type local ${refuse(REFUSED_NODE)}`],
    },
    { name: 'input', hook: HOOKS.input, rules: sides('saddr', '!= ') },
    // Nodes speak for themselves; a pod that does may be masqueraded to its node's address on the way.
    { name: 'forward', hook: HOOKS.forward, rules: sides('daddr', '') },
  ];
}
