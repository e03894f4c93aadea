import { expect, test } from '@jest/globals';
import type { PeeringRequest, PeeringRequestStatus } from '../../../../src/api/peering-request.ts';
import { isActive, isInForce } from '../../../../src/peering/lending/grant.ts';

const shop = { homeNamespace: 'shop', tenantNamespace: 'shop-t' };

// Services that are offered must not be taken back, and then have another address, whenever a namespace is added.
test.each<[string, PeeringRequestStatus, active: boolean, inForce: boolean]>([
  ['set up', { phase: 'Established', tenantNamespaces: [shop] }, true, true],
  ['a first contract, being set up', { phase: 'Accepted' }, false, false],
  ['another contract, being set up', { phase: 'Accepted', tenantNamespaces: [shop] }, false, true],
  ['the first namespace, being set up', { phase: 'Accepted', tenantNamespaces: [] }, false, true],
  ['ending', { phase: 'Ending', tenantNamespaces: [shop] }, false, false],
  ['denied', { phase: 'Denied' }, false, false],
])('%s', (_what, status, active, inForce) => {
  const request = { metadata: { name: 'milan' }, status } as PeeringRequest;
  expect([isActive(request), isInForce(request)]).toEqual([active, inForce]);
  const metadata = { ...request.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  expect(isInForce({ ...request, metadata })).toBe(false);
});
