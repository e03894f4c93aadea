import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import type { PeerView, PrefixView, Tunnel, TunnelSpec } from '../../../../src/api/tunnel.ts';
import type { TableConfig } from '../../../../src/network/host/host-config.ts';
import type { GatewayPlanFacts } from '../../../../src/network/plan/gateway.ts';
import type { NodePlanFacts } from '../../../../src/network/plan/node.ts';
import type { GatewayPeer } from '../../../../src/network/plan/peer.ts';

export const ROME: string = 'rome'.padEnd(26, 'a');
export const BERN: string = 'bern'.padEnd(26, 'a');
export const KEYS: readonly string[] = [0, 1, 2].map((number) =>
  Buffer.alloc(32, number + 1).toString('base64'),
);

export const network: OwnNetwork = {
  pods: ['10.244.0.0/16', 'fd00:244::/48'],
  external: '10.70.0.0/20',
  gatewayAddress: '10.70.0.1',
  pools: ['100.64.0.0/10'],
  nodes: [
    { name: 'n1', address: '172.31.0.1', external: '10.70.0.11', pods: ['10.244.0.0/24', 'fd00:244::/64'] },
    { name: 'n2', address: '172.31.0.2', external: '10.70.0.12', pods: ['10.244.1.0/24'] },
  ],
  vxlan: { vni: 7443, port: 4799 },
};

export interface PeerOptions {
  id?: string;
  key?: string;
  created?: string;
  views?: PeerView[];
  seenAs?: PrefixView[];
  spec?: Partial<TunnelSpec>;
}

const VIEWS: readonly PeerView[] = [
  { use: 'Pods', prefix: '10.244.0.0/16', as: '100.64.0.0/16' },
  { use: 'External', prefix: '10.70.0.0/20', as: '100.65.0.0/20' },
];
const SEEN: readonly PrefixView[] = [
  { prefix: '10.244.0.0/16', as: '10.96.0.0/16' },
  { prefix: '10.70.0.0/20', as: '10.71.0.0/20' },
];

export function tunnel(options: PeerOptions = {}): Tunnel {
  const { id = ROME, key = KEYS[0] ?? '', created = '2026-01-01T00:00:00Z' } = options;
  const { views = [...VIEWS], seenAs = [...SEEN], spec } = options;
  return {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: { name: id, uid: id, resourceVersion: '1', creationTimestamp: created },
    spec: {
      clusterID: id,
      peer: { publicKey: key, endpoints: [], pods: [], external: [] },
      seenAs,
      access: 'OffloadedPods',
      transit: 'OffloadedPods',
      ...spec,
    },
    status: { views },
  };
}

export const peer = (options: PeerOptions = {}, more: Partial<GatewayPeer> = {}): GatewayPeer => ({
  tunnel: tunnel(options),
  abroad: [],
  clients: [],
  hosted: [],
  ...more,
});

export const gatewayFacts = (
  peers: GatewayPeer[],
  more: Partial<GatewayPlanFacts> = {},
): GatewayPlanFacts => ({
  network,
  nodeName: 'n1',
  link: 'wg',
  vxlanLink: 'vx',
  mtu: 1420,
  port: 51_820,
  privateKey: 'secret',
  peers,
  ...more,
});

export const nodeFacts = (more: Partial<NodePlanFacts> = {}): NodePlanFacts => ({
  network,
  nodeName: 'n2',
  link: 'wg',
  vxlanLink: 'vx',
  mtu: 1420,
  gatewayNode: 'n1',
  tunnels: [{ tunnel: tunnel() }],
  ...more,
});

/** Rules of a chain; undefined where there is none. */
export const rulesOf = (table: TableConfig, name: string): readonly string[] | undefined =>
  table.chains.find((chain) => chain.name === name)?.rules;
/** Elements as `key` or `key value`. */
export const elementsOf = (table: TableConfig, name: string): string[] | undefined =>
  table.sets
    .find((set) => set.name === name)
    ?.elements.map(({ key, value }) => (value === undefined ? key : `${key} ${value}`));
