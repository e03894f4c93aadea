/** What role `gateway` and its wireguard-go cost at rest with many peers. */
import { planeLabProblem } from '../../test/support/network/plane-lab.ts';
import type { Bench } from '../frame/bench.ts';
import { foundAtRest, MANY_PEERS, type ManyPeersParameters, restWithPeers } from '../idle/many-peers.ts';
import { TunnelsBed } from './bed.ts';

export const tunnelsBench: Bench<ManyPeersParameters> = {
  name: 'tunnels',
  title: 'a gateway at rest with many peers',
  what:
    'Role `gateway` as a program on a real API server, in a network namespace, and peers that each have a namespace and a wireguard-go of their own. In half of the ' +
    'tunnels home asks, in the others the peer does, by their keys. Nothing but probes flows. All have one clock, as if NTP were exact. All peers and the API server share the cores with what is ' +
    'measured; `bare timer` shows what a wake-up costs then.',
  parameters: MANY_PEERS,
  limits: { peers: { most: 120 }, settle: { least: 0 } },
  problem: planeLabProblem,
  run: async (given) =>
    foundAtRest(
      await restWithPeers(async (checkout) => TunnelsBed.up('bench-tunnel', checkout), given),
      'gateway',
    ),
};
