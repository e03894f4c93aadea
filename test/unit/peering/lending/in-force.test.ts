import { expect, test } from '@jest/globals';
import type { PeeringRequest, PeeringRequestStatus } from '../../../../src/api/peering-request.ts';
import { isInForce, isServed } from '../../../../src/peering/lending/grant.ts';

const shop = { homeNamespace: 'shop', tenantNamespace: 'shop-t' };

// Services that are offered must not be taken back, and then have another address, whenever a namespace is added.
// Nor may execs end and renewals of credentials fail.
test.each<[string, PeeringRequestStatus, served: boolean, inForce: boolean]>([
  ['set up', { phase: 'Established', tenantNamespaces: [shop] }, true, true],
  ['a first contract, being set up', { phase: 'Accepted' }, false, false],
  ['another contract, being set up', { phase: 'Accepted', tenantNamespaces: [shop] }, true, true],
  ['the first namespace, being set up', { phase: 'Accepted', tenantNamespaces: [] }, true, true],
  ['fenced', { phase: 'Accepted', reason: 'Fenced', tenantNamespaces: [shop] }, false, true],
  ['suspended', { phase: 'Accepted', reason: 'Suspended', tenantNamespaces: [shop] }, false, true],
  [
    'suspended, and wound down',
    {
      phase: 'Accepted',
      reason: 'EndsSoon',
      tenantNamespaces: [shop],
      conditions: [
        { type: 'Suspended', status: 'True', reason: 'Heedless', message: '', lastTransitionTime: '' },
      ],
    },
    false,
    true,
  ],
  ['ending', { phase: 'Ending', tenantNamespaces: [shop] }, false, false],
  ['denied', { phase: 'Denied' }, false, false],
])('%s', (_what, status, served, inForce) => {
  const request = { metadata: { name: 'milan' }, status } as PeeringRequest;
  expect([isServed(request), isInForce(request)]).toEqual([served, inForce]);
  const metadata = { ...request.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  expect(isInForce({ ...request, metadata })).toBe(false);
});
