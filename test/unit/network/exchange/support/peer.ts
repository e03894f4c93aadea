import type { NetworkDocument } from '../../../../../src/api/peer-documents.ts';
import type { NetworkPeer } from '../../../../../src/network/exchange/tunnel-spec.ts';
import { keyOf } from './world.ts';

/** A peer that lends to us; its ClusterID is made of b's. */
export const peer = (changes: Partial<NetworkPeer> = {}): NetworkPeer => ({
  clusterID: 'b'.repeat(26),
  outgoing: true,
  incoming: false,
  access: 'OffloadedPods',
  transit: 'OffloadedPods',
  apiServer: 'OffloadedPods',
  services: 'None',
  dns: 'Foreign',
  ...changes,
});

/** What it says of its network. */
export const document = (changes: Partial<NetworkDocument> = {}): NetworkDocument => ({
  publicKey: keyOf('b'),
  endpoints: ['192.0.2.1:51820'],
  pods: ['10.2.0.0/16'],
  external: ['10.72.0.0/20'],
  transit: [],
  views: [],
  ...changes,
});
