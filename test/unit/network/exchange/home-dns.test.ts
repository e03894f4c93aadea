import { expect, test } from '@jest/globals';

import type { TunnelSpec } from '../../../../src/api/tunnel.ts';
import { decideSpec, type NetworkPeer, networkPeers } from '../../../../src/network/exchange/tunnel-spec.ts';
import { peer } from './support/peer.ts';

/** Which DNS pods of ours at a peer ask. */

const decided = (changes: Partial<NetworkPeer>): TunnelSpec =>
  decideSpec({
    peer: peer(changes),
    heard: undefined,
    exported: ['10.1.0.0/16', '10.70.0.0/20', '10.96.0.0/16'],
    ranges: ['10.96.0.0/16'],
    pods: ['10.1.0.0/16'],
  }).spec;

test('the Tunnel says that ours is chosen, and with which addresses of pods it answers', () => {
  expect(decided({ dns: 'Home' }).dns).toEqual({ addresses: ['10.1.0.0/16'] });
});

test.each<[string, Partial<NetworkPeer>]>([
  ['where nobody has chosen it', {}],
  ['where none of our pods run', { dns: 'Home', outgoing: false, incoming: true }],
])('it says nothing of it %s', (_why, changes) => {
  expect(decided(changes)).not.toHaveProperty('dns');
});

test('it is the choice of the ForeignCluster, and the DNS of the peer without one', () => {
  const of = (network: object): string | undefined => {
    const { clusterID } = peer();
    const metadata = { name: clusterID, uid: 'u', resourceVersion: '1', creationTimestamp: '' };
    const status = { clusterID, outgoing: { phase: 'Established' as const } };
    return networkPeers([{ metadata, spec: { network }, status }]).get(clusterID)?.dns;
  };
  expect(of({})).toBe('Foreign');
  expect(of({ dns: 'Home' })).toBe('Home');
});
