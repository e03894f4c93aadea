import {
  CIDR_PATTERN,
  MAX_CIDR_LENGTH,
  MAX_ENDPOINT_LENGTH,
  NETWORK_KEY_PATTERN,
  TUNNEL_LIMITS,
} from '../limits.ts';
import {
  TUNNEL_CONDITIONS,
  tunnels,
  type AddressPort,
  type HomeApiAddress,
  type HomeDns,
  type PeerView,
  type PrefixView,
  type TunnelConnection,
  type TunnelPeer,
  type TunnelSpec,
  type TunnelStatus,
  WIREGUARDS,
} from '../tunnel.ts';
import {
  AGE,
  clusterID,
  clusterName,
  column,
  endpoints,
  observedGeneration,
  reason,
  time,
} from './common.ts';
import type { Definition } from './definition.ts';
import { networkAccess, networkTransit, ownAddresses } from './foreign-cluster.ts';
import { choice, conditions, int32, int64, listOf, objectOf, wholeOf, type Schema } from './schema.ts';

const cidr = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 3,
  maxLength: MAX_CIDR_LENGTH,
  pattern: CIDR_PATTERN,
});

const cidrs = (description: string, maxItems: number): Schema =>
  listOf(description, maxItems, cidr('A CIDR without host bits, for example 10.244.0.0/16.'));

const ipAddress = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 2,
  maxLength: 45,
  pattern: '^[0-9A-Fa-f.:]+$',
});

const apiServerAddress = (description: string): Schema =>
  objectOf<HomeApiAddress>(description, ['address', 'port'], {
    address: ipAddress('An address of the external range, which stands for all API servers.'),
    port: int32('Its TCP port.', { minimum: 1, maximum: 65_535 }),
  });

const peer: Schema = objectOf<TunnelPeer>(
  'What the peer says about its end; absent until it has said anything.',
  ['publicKey', 'endpoints', 'pods', 'external'],
  {
    publicKey: {
      type: 'string',
      description: 'WireGuard public key of its gateway, base64.',
      minLength: 44,
      maxLength: 44,
      pattern: NETWORK_KEY_PATTERN,
    },
    endpoints: endpoints('Where its gateway can be dialled over UDP; empty if it cannot be dialled.'),
    pods: cidrs('Prefixes of its pods, in its own addresses.', TUNNEL_LIMITS.pods),
    external: cidrs(
      'Its range for its nodes and for what it maps there, in its own addresses.',
      TUNNEL_LIMITS.external,
    ),
    transit: cidrs(
      'Prefixes of third clusters, and of its ClusterIPs, that its pods here reach through it, in its own addresses.',
      TUNNEL_LIMITS.transit,
    ),
    apiServer: apiServerAddress('Where its pods that run here reach its API server, in its own addresses.'),
    forbidsHomeApiServer: {
      type: 'boolean',
      description: 'Whether its policy keeps our pods over there from our API server.',
    },
  },
);

const addressPorts = (description: string): Schema =>
  listOf(
    description,
    TUNNEL_LIMITS.offered,
    objectOf<AddressPort>('Address and port of one endpoint of a Service.', ['address', 'protocol', 'port'], {
      address: ipAddress('Address of a pod, as it is written here.'),
      protocol: choice('Transport protocol.', ['TCP', 'UDP', 'SCTP']),
      port: int32('Port of the pod, not of the Service.', { minimum: 1, maximum: 65_535 }),
    }),
  );

const spec: Schema = objectOf<TunnelSpec>(
  'What both ends have agreed on. Written by Tributary; what people can set is in the ForeignCluster.',
  ['clusterID'],
  {
    clusterID: clusterID('The peer; also the name of this object.'),
    clusterName: clusterName('The name that it gives itself; anybody can choose any.'),
    peer,
    keyOf: clusterID(
      'The cluster whose WireGuard key the peer announces: the one that announced it first, or our own. The peer ' +
        'gets no tunnel while this is set.',
    ),
    seenAs: {
      type: 'array',
      description:
        'How the peer sees the prefixes that are announced to it; it does not see our other prefixes.',
      maxItems: TUNNEL_LIMITS.seenAs,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['prefix'],
      items: objectOf<PrefixView>('One prefix, and its translation of the same length.', ['prefix', 'as'], {
        prefix: cidr('As it is here.'),
        as: cidr('As the peer sees it.'),
      }),
    },
    ownAddresses,
    access: networkAccess,
    transit: networkTransit,
    apiServer: apiServerAddress(
      'Where our pods over there reach our API server, in our own addresses. Absent: they do not reach it ' +
        'through the tunnel.',
    ),
    homeApiServer: choice(
      'Forbidden: its pods that run here do not reach its API server through the tunnel, as a SharingPolicy says.',
      ['Forbidden'],
    ),
    services: cidrs(
      'Ranges of our ClusterIPs that our pods over there reach. Absent: they reach none.',
      TUNNEL_LIMITS.services,
    ),
    dns: objectOf<HomeDns>(
      'Our pods over there ask our DNS, where that can work. Absent: they ask that of the peer.',
      ['addresses'],
      {
        addresses: cidrs(
          'Prefixes of pods, as they are written here, with which our DNS answers.',
          TUNNEL_LIMITS.seenAs,
        ),
      },
    ),
    offered: addressPorts(
      'Endpoints of Services here that are offered to the peer: all its pods reach them, unless access is ' +
        'None.',
    ),
    used: addressPorts(
      'Endpoints of its Services that are used here, as they are seen here: our pods in third clusters reach them through us.',
    ),
  },
);

const views: Schema = {
  type: 'array',
  description:
    'The prefixes at which we see the prefixes of the peer. Chosen here, and kept for the life of the ' +
    'tunnel.',
  maxItems: TUNNEL_LIMITS.views,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['prefix'],
  items: objectOf<PeerView>('One prefix, and its translation of the same length.', ['prefix', 'as', 'use'], {
    prefix: cidr('As the peer writes it.'),
    as: cidr('As it is seen here; the same prefix if the peer may keep it.'),
    use: choice(
      'Pods: prefix of its pods. External: prefix of its nodes and what it maps there. Transit: prefix of a ' +
        'third cluster, or of its ClusterIPs, reached through it.',
      ['Pods', 'External', 'Transit'],
    ),
  }),
};

const refused: Schema = listOf(
  'Prefixes of the peer that are not seen here, each with its cause.',
  TUNNEL_LIMITS.refused,
  {
    type: 'object',
    description: 'One prefix.',
    required: ['prefix', 'reason', 'message'],
    properties: {
      prefix: { type: 'string', description: 'As the peer writes it.', maxLength: 64 },
      reason,
      message: { type: 'string', description: 'The cause in a sentence; for people.', maxLength: 512 },
    },
  },
);

const count = (description: string): Schema => int64(description, { minimum: 0 });

const connection: Schema = objectOf<TunnelConnection>('The last measurements of the gateway.', [], {
  gateway: { type: 'string', description: 'Node whose gateway is active.', maxLength: 253 },
  endpoint: {
    type: 'string',
    description: 'Where packets are sent now, as host:port, learnt or configured.',
    maxLength: MAX_ENDPOINT_LENGTH,
  },
  handshake: time('Last handshake of WireGuard.'),
  rttMs: {
    type: 'number',
    description: 'Round-trip time through the tunnel in milliseconds, the median of the last probes.',
    minimum: 0,
  },
  lossPercent: {
    type: 'number',
    description: 'How many of the last probes did not come back, in percent.',
    minimum: 0,
    maximum: 100,
  },
  receivedBytes: count('Bytes received from the peer since the gateway took over.'),
  sentBytes: count('Bytes sent to the peer since the gateway took over.'),
  mtu: int32('Largest packet that goes through the tunnel in bytes, as probed.', {
    minimum: 0,
    maximum: 65_535,
  }),
  linkMtu: int32("Largest packet that the gateway's link takes in bytes, as set.", {
    minimum: 0,
    maximum: 65_535,
  }),
  wireguard: {
    type: 'string',
    description: "Whose WireGuard encrypts here: the kernel's, or that of the program wireguard-go.",
    enum: [...WIREGUARDS],
  },
});

const status: Schema = objectOf<TunnelStatus>(
  'Addresses, written by the role cluster, and measurements, written by the active gateway.',
  [],
  {
    observedGeneration,
    views,
    refused,
    connection,
    conditions: conditions(Object.values(TUNNEL_CONDITIONS).join(', ')),
  },
);

export const tunnelDefinition: Definition = {
  type: tunnels,
  shortNames: ['tun'],
  columns: [
    column('Cluster', '.spec.clusterName', 'The name that the peer gives itself.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether packets go both ways.'),
    column('Endpoint', '.status.connection.endpoint', 'Where packets are sent.'),
    column('RTT', '.status.connection.rttMs', 'Round-trip time in milliseconds.', { type: 'number' }),
    column('Loss', '.status.connection.lossPercent', 'Lost probes in percent.', { type: 'number' }),
    column('MTU', '.status.connection.mtu', 'Largest packet in bytes.', { type: 'integer' }),
    AGE,
    column('Reason', '.status.conditions[?(@.type=="Ready")].reason', 'Why it is ready, or not.', {
      priority: 1,
    }),
    column('Gateway', '.status.connection.gateway', 'Node whose gateway is active.', { priority: 1 }),
    column('Handshake', '.status.connection.handshake', 'Last handshake of WireGuard.', {
      type: 'date',
      priority: 1,
    }),
    column('Access', '.spec.access', 'What the peer reaches here.', { priority: 1 }),
  ],
  schema: {
    ...wholeOf('The network between this cluster and one peer. Made by Tributary.', { spec, status }),
    'x-kubernetes-validations': [
      { rule: 'self.metadata.name == self.spec.clusterID', message: 'the name must be the clusterID' },
    ],
  },
};
