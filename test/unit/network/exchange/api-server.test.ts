import { expect, test } from '@jest/globals';

import type { NetworkDocument } from '../../../../src/api/peer-documents.ts';
import type { Tunnel, TunnelSpec } from '../../../../src/api/tunnel.ts';
import { checkDocument, composeDocument } from '../../../../src/network/exchange/document.ts';
import { decideSpec, type NetworkPeer } from '../../../../src/network/exchange/tunnel-spec.ts';
import { checkDocuments } from '../../../../src/peering/protocol/forms.ts';
import { document, peer } from './support/peer.ts';
import { keyOf } from './support/world.ts';

/** What two clusters agree on about the API server of the home of pods. */

const B = 'b'.repeat(26);
type Facts = Parameters<typeof decideSpec>[0];
const exported = ['10.1.0.0/16', '10.71.0.0/20'];
const own = { address: '10.71.15.254', port: 443, endpoints: [{ address: '172.30.0.1', port: 6443 }] };
const theirs = { address: '10.72.15.254', port: 443 };
const decided = (given: Partial<NetworkPeer>, more: Partial<Facts> = {}): TunnelSpec =>
  decideSpec({ peer: peer(given), heard: document(), exported, apiServer: own, ...more }).spec;

test('ours is open to our pods over there, and where it listens is not told', () => {
  expect(decided({}).apiServer).toEqual({ address: '10.71.15.254', port: 443 });
});

test.each<[string, Partial<NetworkPeer>, Partial<Facts>]>([
  ['we say so', { apiServer: 'None' }, {}],
  ['we let nothing in', { access: 'None' }, {}],
  ['none of our pods run there', { outgoing: false, incoming: true }, {}],
  ['its policy forbids it', {}, { heard: document({ forbidsHomeApiServer: true }) }],
])('ours is closed where %s', (_why, given, more) => {
  expect(decided(given, more)).not.toHaveProperty('apiServer');
});

test('what the provider forbids stays so until it is heard again', () => {
  const current = decided({}, { heard: document({ forbidsHomeApiServer: true }) });
  expect(current.peer?.forbidsHomeApiServer).toBe(true);
  expect(decided({}, { heard: undefined, current })).toEqual(current);
  expect(decided({}, { current }).apiServer).toBeDefined();
});

test('that of a home is kept, to forbid it; who is no home has none, and forbids nothing', () => {
  const heard = document({ apiServer: theirs, forbidsHomeApiServer: true });
  const home = decided({ incoming: true, outgoing: false }, { heard, forbidsHomeApiServer: true });
  expect(home.peer).toMatchObject({ apiServer: theirs });
  expect(home.peer).not.toHaveProperty('forbidsHomeApiServer');
  expect(home.homeApiServer).toBe('Forbidden');
  const lender = decided({}, { heard, forbidsHomeApiServer: true });
  expect(lender.peer).not.toHaveProperty('apiServer');
  expect(lender).not.toHaveProperty('homeApiServer');
});

test('the peer is told what the Tunnel says, and takes only an address of the external range', () => {
  const told = (spec: Partial<TunnelSpec>): NetworkDocument =>
    composeDocument({
      facts: { publicKey: keyOf('a'), endpoints: [] },
      own: { pods: [], external: '10.71.0.0/20' },
      tunnel: {
        metadata: { name: B },
        spec: { clusterID: B, access: 'OffloadedPods', transit: 'OffloadedPods', ...spec },
      } as Tunnel,
      transit: [],
    });
  const open = told({ apiServer: { address: '10.71.15.254', port: 443 } });
  expect(open).toMatchObject({ apiServer: { address: '10.71.15.254', port: 443 } });
  expect(told({ homeApiServer: 'Forbidden' })).toMatchObject({ forbidsHomeApiServer: true });
  expect(checkDocument(open)).toMatchObject({ problems: [], document: { apiServer: open.apiServer } });
  const outside = checkDocument({ ...open, apiServer: { address: '10.96.0.1', port: 443 } });
  expect(outside.document).not.toHaveProperty('apiServer');
  expect(outside.problems).toEqual(['apiServer: 10.96.0.1 is not in the external range']);
});

test('the form of a document that names one', () => {
  const { changes, problems } = checkDocuments({
    network: document({ apiServer: theirs, forbidsHomeApiServer: true }),
  });
  expect(problems).toEqual([]);
  expect(changes.network).toMatchObject({ apiServer: theirs, forbidsHomeApiServer: true });
  const odd = { address: 'evil; accept', port: 443 };
  expect(checkDocuments({ network: document({ apiServer: odd }) }).problems).toHaveLength(1);
});
