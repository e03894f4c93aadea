/** What role `cluster` costs at rest with many peers. */
import type { Bench } from '../frame/bench.ts';
import { foundAtRest, MANY_PEERS, type ManyPeersParameters, restWithPeers } from '../idle/many-peers.ts';
import { LinksBed } from './bed.ts';

export const linksBench: Bench<ManyPeersParameters> = {
  name: 'links',
  title: 'role cluster at rest with many peers',
  what:
    'Role `cluster` as a program on a real API server lends to clusters that are no more than an identity and a link each, in one process beside it. Each has a contract, a grant and a tenant with one ' +
    'namespace. Nothing but heartbeats passes. All share the cores with what is measured; `bare timer` shows what a wake-up costs then.',
  parameters: MANY_PEERS,
  limits: { peers: { most: 120 }, settle: { least: 0 } },
  problem: () => (process.getuid?.() === 0 ? undefined : 'network namespaces of the lab need root'),
  run: async (given) =>
    foundAtRest(
      await restWithPeers(async (checkout) => LinksBed.up('bench-links', checkout), given),
      'cluster',
    ),
};
