/** What reasons of tunnels mean and what to do. */
import type { TUNNEL_REASONS } from '../tunnel.ts';
import { OK, text, type TextsOf } from './text.ts';

export const TUNNEL_TEXTS: TextsOf<typeof TUNNEL_REASONS> = {
  AsExpected: OK,
  Starting: text('The gateway has just begun, and has not measured yet.', 'Wait a few seconds.'),
  PeerHasNotTold: text(
    'The peer has no gateway, the link is down, or its announcement was refused here.',
    '`kubectl get foreignclusters`. Has the other side applied `manifests gateway`? Then the log of its role `cluster` says why, for example an external range that overlaps.',
  ),
  KeyTaken: text(
    'The peer announces the WireGuard key of another cluster, or ours, and gets no tunnel. A key belongs to the cluster that announced it first.',
    '`spec.keyOf` names that cluster. Two clusters that share a backup have the same key: the annotation of docs/network.md makes a new one. Otherwise one of the two lies: `tributary unpeer` ends its peering, and the key is free for the other.',
  ),
  PeerHasNoViewOfUs: text(
    'The peer has not told as what it sees one of our ranges, or found no addresses for it.',
    'Its own Tunnel says why, in `status.refused`.',
  ),
  PrefixRefused: text('A prefix of the peer cannot be seen.', '`status.refused` says which, and why.'),
  PoolExhausted: text(
    'There are no addresses left as which a prefix of the peer could be seen.',
    'Larger `--view-pools` of the role `cluster`; `status.refused` says which prefix.',
  ),
  WireGuardNotRunning: text(
    'Neither the kernel nor wireguard-go provides the interface.',
    '`kubectl -n tributary-network logs deployment/tributary-gateway -c wireguard`. With `--wireguard kernel`: load the module `wireguard` on the node of the gateway, or `tributary upgrade --wireguard auto`.',
  ),
  HostRefused: text(
    'The kernel or a tool refused something, or a link of somebody else has our name.',
    'The message says what.',
  ),
  GatewayNotRunning: text(
    'No gateway has renewed its Lease here for a minute.',
    '`kubectl -n tributary-network get pods`. Is it still to run?',
  ),
  NoEndpoint: text(
    'Neither side can be dialled.',
    'Open the UDP port on one side, and name it with `--tunnel-endpoint`.',
  ),
  NoHandshake: text(
    'The key exchange gets no answer, or nothing comes from the peer any more.',
    'Look for a firewall for UDP between the endpoints, or a peer whose gateway is gone.',
  ),
  NoAnswer: text(
    'Packets come from the peer, but no answer to probes.',
    'Look for a very small MTU, or a host of the peer that filters what is forwarded.',
  ),
  PacketsOneWay: text(
    'Packets of the peer arrive, and no handshake comes about: ours do not arrive.',
    'Look for a firewall for UDP from here to the peer.',
  ),
  PacketsLost: text(
    'A tenth of the probes or more is lost; the tunnel stays Ready.',
    'Check the path between the gateways.',
  ),
  NotChosen: text(
    '`services` of the ForeignCluster is `None`, the default, or `access` is.',
    'Nothing, or `services: OffloadedPods` in its `spec.network`.',
  ),
  SeenElsewhere: text(
    'The foreign cluster sees our range of ClusterIPs at other addresses.',
    'Use names; or let it be named there as `ownAddresses` under `spec.network` of the ForeignCluster; or, if the foreign cluster uses that range, make one of the two with another one (`--service-cluster-ip-range`).',
  ),
  OwnAddressesNotAllowed: text(
    'The peer is seen as itself in ranges that nobody has allowed, from before that was needed.',
    'Name them as `ownAddresses` under `spec.network` of its ForeignCluster, or set `ownAddresses: []`: then it gets other addresses, and connections to it end once.',
  ),
};
