/** Host configurations for tests. */
import type { WireGuardChoice } from '../../../src/api/tunnel.ts';
import type { HostConfig, RouteConfig } from '../../../src/network/host/host-config.ts';

/** The VXLAN side of a host, with one of everything. */
export const node: HostConfig = {
  owner: 'node',
  links: [
    {
      kind: 'vxlan',
      name: 'trib-vx',
      mtu: 1400,
      addresses: ['10.70.0.2/20', 'fd70::2/64'],
      vni: 4711,
      port: 4790,
      local: '10.9.0.1',
      macAddress: '02:00:0A:46:00:02',
      neighbours: [
        { address: '10.70.0.3', macAddress: '02:00:0a:46:00:03', via: '10.9.0.3' },
        { address: 'fd70:0::3', macAddress: '02:00:0a:46:00:03', via: '10.9.0.3' },
        { address: '10.70.0.4', macAddress: '02:00:0a:46:00:04', via: '10.9.0.4' },
      ],
    },
  ],
  routes: [
    { destination: '10.71.0.0/16', metric: 4000, to: 'unreachable' },
    { destination: 'fd71::/64', metric: 4000, to: 'unreachable' },
    {
      destination: '10.71.0.0/16',
      metric: 100,
      to: { link: 'trib-vx', gateway: '10.70.0.3' },
      mtu: 1380,
      source: '10.70.0.2',
    },
    { destination: 'fd71:0::/64', metric: 100, to: { link: 'trib-vx', gateway: 'fd70::3' }, mtu: 1380 },
    { destination: '10.72.0.0/16', metric: 100, table: 1000, to: { link: 'trib-vx' } },
  ],
  rules: [
    { family: 4, priority: 100, incoming: 'trib-vx', from: '10.1.0.0/16', table: 1000 },
    { family: 6, priority: 100, to: 'fd00::/8', table: 1000 },
  ],
  sysctls: { 'net/ipv4/conf/trib-vx/arp_notify': '1', 'net/ipv4/conf/trib-vx/rp_filter': '2' },
  nftables: {
    chains: [
      { name: 'post', hook: { type: 'nat', hook: 'postrouting', priority: 90 }, rules: ['counter accept'] },
    ],
    sets: [],
  },
};

/** Nothing at all. */
export const none: HostConfig = {
  owner: 'node',
  links: [],
  routes: [],
  rules: [],
  sysctls: {},
  nftables: { chains: [], sets: [] },
};

/** Somebody else makes its link. */
export const gateway: HostConfig = {
  ...none,
  owner: 'gateway',
  links: [{ kind: 'wireguard', name: 'trib-wg', mtu: 1420, addresses: ['10.70.0.1/32'] }],
  routes: [
    { destination: '10.73.0.0/16', metric: 50, to: { link: 'trib-wg' } },
    { destination: '10.73.0.0/16', metric: 4000, to: 'unreachable' },
  ],
};

export const manyRoutes = (count: number): RouteConfig[] =>
  Array.from({ length: count }, (_, number) => ({
    destination: `10.${100 + (number >> 8)}.${number & 255}.0/24`,
    metric: 100,
    to: { link: 'trib-vx', gateway: '10.70.0.3' },
  }));

/** The same by that WireGuard. */
export const gatewayBy = (by: WireGuardChoice): HostConfig => ({
  ...gateway,
  links: gateway.links.map((link) => (link.kind === 'wireguard' ? { ...link, by } : link)),
});
