import {
  FOREIGN_CLUSTER_CONDITIONS,
  foreignClusters,
  type ForeignClusterNetwork,
  type ForeignClusterSpec,
  type ForeignClusterStatus,
  type LinkState,
  type PeeringStanding,
  type PeeringState,
  type Sighting,
} from '../foreign-cluster.ts';
import { MAX_CIDR_LENGTH, MAX_ENDPOINT_LENGTH, MAX_OWN_ADDRESSES, MAX_PROTOCOLS } from '../limits.ts';
import { ANY_ADDRESSES } from '../tunnel.ts';
import { DISCOVERY_SOURCES, type DiscoverySource } from '../peer-selector.ts';
import {
  AGE,
  clusterID,
  clusterName,
  column,
  endpoint,
  endpoints,
  homeNamespaces,
  message,
  names,
  observedGeneration,
  phase,
  reason,
  secretKeyRef,
  time,
} from './common.ts';
import type { Definition } from './definition.ts';
import { choice, conditions, int32, listOf, objectOf, setOf, type Schema, type SchemaOf } from './schema.ts';

const protocol = (description: string): Schema => int32(description, { minimum: 1, maximum: 1_000_000 });

/** What a policy leaves open; also the default for clusters of a SearchDomain. */
export const peeringWish = (description: string): Schema =>
  choice(
    `${description} Auto: if a policy says so. Enabled: always. Disabled: never; an existing peering is ended.`,
    ['Auto', 'Enabled', 'Disabled'],
    'Auto',
  );

/** Also of a Tunnel. */
export const networkAccess: Schema = choice(
  'Which connections the peer may open to this cluster. OffloadedPods: our pods that run there reach ' +
    'our pods here, and its pods reach those of its pods that run here. AllPods: every pod there reaches ' +
    'every pod here. None: no connections. Nodes can never be reached.',
  ['OffloadedPods', 'AllPods', 'None'],
  'OffloadedPods',
);

export const networkTransit: Schema = choice(
  'Whether our pods in this foreign cluster reach, through our cluster, our pods in other foreign ' +
    'clusters.',
  ['OffloadedPods', 'None'],
  'OffloadedPods',
);

const apiServerAccess: Schema = choice(
  'Whether our pods that run there reach the API server of this cluster through the tunnel. OffloadedPods: ' +
    'those that have a token for it, its port and nothing else. None: none of them; they get no token either.',
  ['OffloadedPods', 'None'],
  'OffloadedPods',
);

const networkServices: Schema = choice(
  'Whether our pods in this foreign cluster reach ClusterIPs of this cluster. OffloadedPods: those whose endpoints ' +
    'are pods, if the foreign cluster does not use the range of our ClusterIPs itself; the condition ' +
    'ServicesReachable of the Tunnel tells. None: they reach Services by their names.',
  ['OffloadedPods', 'None'],
  'None',
);

const networkDns: Schema = choice(
  'Which DNS our pods in this foreign cluster ask. Foreign: that of the foreign cluster, which knows the Services of ' +
    'offloaded namespaces. Home: that of this cluster, so that each name means there what it means here. It needs ' +
    'services: OffloadedPods, and both clusters must see pods at their own addresses; otherwise pods ask the foreign ' +
    'DNS, and the condition HomeDNSReachable of the VirtualNode says why.',
  ['Foreign', 'Home'],
  'Foreign',
);

/** Also of a Tunnel. */
export const ownAddresses: Schema = setOf(
  'Ranges in which the peer keeps its own addresses here: a prefix of its pods, nodes or Services that lies in one of ' +
    'them, and that nothing else uses, is seen as it is. All others get addresses of --view-pools, so that a peer cannot ' +
    'draw traffic of this cluster into its tunnel by claiming a range. Any: every private range, up to as many addresses ' +
    'as a /10 has (IPv6: a /40); for clusters that are trusted with your own network. Without a list, nothing is kept ' +
    'but what was before this had to be said, unless --identity-views is on; with one, also an empty one, nothing else is.',
  MAX_OWN_ADDRESSES,
  {
    type: 'string',
    description: 'A CIDR without host bits, for example 10.2.0.0/16; or Any.',
    minLength: 3,
    maxLength: MAX_CIDR_LENGTH,
    pattern: `^(${ANY_ADDRESSES}|[0-9A-Fa-f.:]+/[0-9]{1,3})$`,
  },
);

const spec: Schema = {
  type: 'object',
  description: 'Which cluster it is and what is wanted from it.',
  default: {},
  properties: {
    clusterID: clusterID(
      'The only identity that is accepted at the endpoint. Without it the cluster is not trusted: its ' +
        'identity is learnt and shown in the condition IdentityVerified. It cannot be changed once set.',
    ),
    endpoint: endpoint(
      'Its peering endpoint as host:port, if discovery does not find it; an IPv6 address is written in ' +
        'brackets.',
    ),
    outgoing: peeringWish('Whether we use it: whether its capacity becomes a virtual node here.'),
    incoming: peeringWish('Whether it may use us: whether it gets what a SharingPolicy offers.'),
    namespaces: homeNamespaces('Namespaces of this cluster to offload there, besides those of the policy.'),
    joinTokenSecretRef: secretKeyRef(
      'A Secret with a one-time join token of the other cluster, if that cluster asks for one.',
      'token',
    ),
    network: {
      type: 'object',
      description: 'What it reaches here through the tunnel.',
      default: {},
      properties: {
        access: networkAccess,
        transit: networkTransit,
        apiServer: apiServerAccess,
        services: networkServices,
        dns: networkDns,
        ownAddresses,
      } satisfies SchemaOf<ForeignClusterNetwork>,
    },
  } satisfies SchemaOf<ForeignClusterSpec>,
  'x-kubernetes-validations': [
    {
      rule: '!has(oldSelf.clusterID) || (has(self.clusterID) && self.clusterID == oldSelf.clusterID)',
      message:
        'clusterID cannot be changed: another identity is another cluster; make another ForeignCluster',
      reason: 'FieldValueForbidden',
      fieldPath: '.clusterID',
    },
  ],
};

const sighting = (description: string): Schema =>
  objectOf<Sighting>(description, ['endpoints', 'firstSeen', 'expires'], {
    endpoints: endpoints('Where it can be dialled, the most promising first.'),
    clusterName: clusterName('The name that it gives itself.'),
    protocols: listOf(
      'Versions of the peering protocol that it says it speaks.',
      MAX_PROTOCOLS,
      protocol('A version.'),
    ),
    firstSeen: time('Since when it has been seen without a break.'),
    expires: time('After this time it counts as gone, unless it is seen again.'),
    searchDomain: {
      type: 'string',
      description: 'The SearchDomain that listed it.',
      maxLength: 253,
    },
  });

const peeringState = (description: string): Schema =>
  objectOf<PeeringState>(description, ['phase'], {
    phase,
    reason,
    message,
    since: time('When the phase was entered.'),
  });

const link: Schema = objectOf<LinkState>('The link over which both clusters talk.', ['connected'], {
  connected: { type: 'boolean', description: 'Whether there is one now.' },
  dialledBy: choice('Which side opened it.', ['Us', 'Them']),
  endpoint: {
    type: 'string',
    description: 'Endpoint that was dialled, or the address that the peer came from.',
    maxLength: MAX_ENDPOINT_LENGTH,
  },
  protocol: protocol('Version of the peering protocol that is spoken.'),
  software: { type: 'string', description: "Version of the peer's program.", maxLength: 64 },
  since: time('When it was opened, or lost.'),
});

const status: Schema = objectOf<ForeignClusterStatus>(
  'What was observed; each controller writes its own part.',
  [],
  {
    observedGeneration,
    clusterID: clusterID('The identity that it has proved; not what an announcement says.'),
    answeredBy: clusterID(
      'The identity that answers at the endpoint, if it is not the wanted one, or if no identity is wanted ' +
        'yet.',
    ),
    clusterName: clusterName('The name that it gives itself; anybody can choose any.'),
    sightings: objectOf<Record<DiscoverySource, Sighting>>(
      'What each way of discovery knows of it. Announcements are hints and prove nothing.',
      [],
      {
        LAN: sighting('Seen on the local network, by multicast DNS.'),
        WAN: sighting('Listed in a DNS domain that a SearchDomain names.'),
        Manual: sighting('Given by a person.'),
        Incoming: sighting('It opened a link to us.'),
      },
    ),
    foundBy: {
      type: 'string',
      description: 'How it is known today: LAN, WAN, Manual, Incoming, joined by commas.',
      maxLength: 63,
    },
    link,
    standing: objectOf<PeeringStanding>(
      'The facts that policies used when the peering was agreed on. They apply as long as the peering ' +
        'lasts, so that a lost link or a missed announcement does not end it.',
      [],
      {
        foundBy: setOf('How it was found.', 4, choice('A way of finding clusters.', DISCOVERY_SOURCES)),
        networkKeys: names('Network keys that it has proved to hold.', 'Name of a network key.', 64),
      },
    ),
    outgoing: peeringState('State of the peering in which we use this cluster.'),
    incoming: peeringState('State of the peering in which this cluster uses us.'),
    conditions: conditions(Object.values(FOREIGN_CLUSTER_CONDITIONS).join(', ')),
  },
);

const networkIs = (field: string): string =>
  `.status.conditions[?(@.type=="${FOREIGN_CLUSTER_CONDITIONS.network}")].${field}`;

export const foreignClusterDefinition: Definition = {
  type: foreignClusters,
  shortNames: ['fc'],
  columns: [
    column('Cluster', '.status.clusterName', 'The name that it gives itself.'),
    column('Found-By', '.status.foundBy', 'How it is known.'),
    column('Outgoing', '.status.outgoing.phase', 'Whether we use it.'),
    column('Incoming', '.status.incoming.phase', 'Whether it uses us.'),
    column('Connected', '.status.link.connected', 'Whether a link is up.', { type: 'boolean' }),
    column(
      'Tunnel',
      networkIs('status'),
      'Whether packets go through the tunnel to it; empty without a tunnel.',
    ),
    AGE,
    column('Cluster-ID', '.spec.clusterID', 'The identity that is accepted.', { priority: 1 }),
    column('Outgoing-Reason', '.status.outgoing.reason', 'Why we use it, or not.', { priority: 1 }),
    column('Incoming-Reason', '.status.incoming.reason', 'Why it uses us, or not.', { priority: 1 }),
    column('Tunnel-Reason', networkIs('reason'), 'Why packets go through, or not.', { priority: 1 }),
    column('Endpoint', '.status.link.endpoint', 'Endpoint of the link.', { priority: 1 }),
  ],
  schema: {
    type: 'object',
    description:
      'A cluster that was found. Discovery makes the object with its ClusterID as name; a person can make ' +
      'one with any name.',
    properties: { spec, status },
    'x-kubernetes-validations': [
      {
        rule: `!self.metadata.name.matches('^[a-z2-7]{26}$') || !has(self.spec.clusterID) || self.spec.clusterID == self.metadata.name`,
        message: 'an object that is named like a ClusterID cannot stand for another one',
      },
    ],
  },
};
