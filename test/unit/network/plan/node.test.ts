import { describe, expect, test } from '@jest/globals';

import { contains, parseAddress, parsePrefix } from '../../../../src/lib/prefix.ts';
import type { HostConfig } from '../../../../src/network/host/host-config.ts';
import { vxlanMac } from '../../../../src/network/plan/names.ts';
import { nodePlan } from '../../../../src/network/plan/node.ts';
import { elementsOf, network, nodeFacts, ROME, rulesOf, tunnel } from './facts.ts';

const unreachable = ({ routes }: HostConfig): string[] =>
  routes.filter(({ to }) => to === 'unreachable').map(({ destination }) => destination);
const covers = (prefixes: readonly string[], text: string): boolean => {
  const address = parseAddress(text);
  return prefixes.some((prefix) => address !== undefined && contains(parsePrefix(prefix), address));
};

describe('a node’s plan', () => {
  test('knows all other nodes on the VXLAN', () => {
    expect(nodePlan(nodeFacts()).links).toEqual([
      {
        kind: 'vxlan',
        name: 'vx',
        mtu: 1420,
        addresses: ['10.70.0.12/32'],
        vni: 7443,
        port: 4799,
        local: '172.31.0.2',
        macAddress: '02:74:0a:46:00:0c',
        neighbours: [{ address: '10.70.0.11', macAddress: '02:74:0a:46:00:0b', via: '172.31.0.1' }],
      },
    ]);
  });

  test('sends views to the gateway, as large as their tunnel takes', () => {
    const { routes } = nodePlan(nodeFacts({ tunnels: [{ tunnel: tunnel(), mtu: 1300 }] }));
    expect(routes[0]).toEqual({
      destination: '100.64.0.0/16',
      metric: 100,
      to: { link: 'vx', gateway: '10.70.0.11' },
      source: '10.70.0.12',
      mtu: 1300,
    });
  });

  test.each([
    ['on the gateway’s own node', { nodeName: 'n1' }],
    ['without a gateway', { gatewayNode: 'gone' }],
    ['on a node that is not in the network yet', { nodeName: 'new' }],
    ['where it is the only one', { network: { ...network, nodes: network.nodes.slice(1) } }],
  ])('%s, views are unreachable by it', (_where, facts) => {
    const plan = nodePlan(nodeFacts(facts));
    expect(plan.routes.every(({ to }) => to === 'unreachable')).toBe(true);
    expect(unreachable(plan)).toEqual(expect.arrayContaining(['100.64.0.0/16', '100.65.0.0/20']));
  });

  test('lets the gateway ask for an answer, and has a way back to it', () => {
    const { routes, nftables } = nodePlan(nodeFacts());
    expect(routes).toContainEqual({
      destination: '10.70.0.11/32',
      metric: 100,
      to: { link: 'vx', gateway: '10.70.0.11' },
      source: '10.70.0.12',
    });
    const [probe, guard, ...byOtherLinks] = rulesOf(nftables, 'arrival') ?? [];
    expect(probe).toBe('iifname "vx" ip saddr 10.70.0.0/20 ip daddr 10.70.0.12 tcp dport 7481 accept');
    expect(guard).toContain('fib daddr type local');
    expect(byOtherLinks[0]).toBe(
      'iifname != "wg" ct state new ip saddr . meta nfproto @views4 fib daddr type local counter drop comment "refused_node"',
    );
    expect(elementsOf(nftables, 'views4')).toEqual(['100.64.0.0/16 . ipv4', '100.65.0.0/20 . ipv4']);
  });

  test('leaves what is in use out of the pools', () => {
    const pools = { ...network, pools: ['10.0.0.0/8', '172.16.0.0/12'], reserved: ['10.96.0.0/12'] };
    const fallbacks = unreachable(nodePlan(nodeFacts({ network: pools })));
    for (const used of ['10.96.0.1', '10.111.255.255', '10.244.3.4', '10.70.0.1', '172.31.0.2']) {
      expect([used, covers(fallbacks, used)]).toEqual([used, false]);
    }
    for (const free of ['10.95.255.255', '10.112.0.0', '10.243.0.1', '172.31.0.3', '172.16.0.0']) {
      expect([free, covers(fallbacks, free)]).toEqual([free, true]);
    }
  });

  test('keeps sources of pods and peers, and lends its own address to the rest', () => {
    const { nftables } = nodePlan(nodeFacts());
    expect(rulesOf(nftables, 'source')).toEqual([
      'oifname "wg" return',
      'ip saddr . meta nfproto vmap @keep4',
      'ip6 saddr . meta nfproto vmap @keep6',
      'oifname != "vx" return',
      'ip saddr 10.244.0.0/16 snat ip prefix to 10.244.0.0/16',
      'ip6 saddr fd00:244::/48 snat ip6 prefix to fd00:244::/48',
      'meta nfproto ipv4 snat ip to 10.70.0.12',
    ]);
    expect(rulesOf(nftables, `keep_${ROME}`)?.[0]).toBe(
      'ip saddr 100.64.0.0/16 snat ip prefix to 100.64.0.0/16',
    );
    expect(elementsOf(nftables, 'nodes4')).toEqual(['172.31.0.1', '172.31.0.2']);
  });

  test('touches only its own link', () => {
    expect(Object.keys(nodePlan(nodeFacts()).sysctls)).toEqual([
      'net/ipv4/conf/vx/rp_filter',
      'net/ipv4/conf/vx/send_redirects',
    ]);
  });

  test('gives a MAC to an IPv6 address too, another for each', () => {
    const macs = ['fd00::1', 'fd00::2'].map(vxlanMac);
    expect(new Set(macs).size).toBe(2);
    for (const mac of macs) expect(mac).toMatch(/^02:74(?::[0-9a-f]{2}){4}$/);
  });
});
