import { generateKeyPairSync } from 'node:crypto';

import type { Offer } from '../../../../src/api/offer.ts';
import { canonicalText } from '../../../../src/lib/canonical-json.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import type { OfferDocument } from '../../../../src/peering/protocol/documents.ts';

const newIdentity = (): Identity => new Identity(generateKeyPairSync('ed25519').privateKey);

export const provider: Identity = newIdentity();
export const consumer: Identity = newIdentity();

/** 1 January 2026, noon. */
export const NOW_MS: number = Date.UTC(2026, 0, 1, 12);

/** A sound offer; with shapes that hold its resources, unless others are given. */
export function anOffer(more: Partial<Offer> = {}): Offer {
  const resources = more.resources ?? { cpu: '4', memory: '8Gi', pods: '100' };
  const { storage: _storage, ...ofNodes } = resources;
  return {
    provider: provider.clusterID,
    consumer: consumer.clusterID,
    generation: 7,
    issued: '2026-01-01T11:50:00Z',
    expires: '2026-01-01T12:50:00Z',
    resources,
    shapes: [{ count: 1, resources: ofNodes, architecture: 'amd64', operatingSystem: 'linux' }],
    classes: {},
    labels: {},
    images: [],
    prices: {},
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tributary-abc-shop' }],
    podSecurity: 'baseline',
    keepForSeconds: 3600,
    ...more,
  };
}

/** Signed as a provider signs, whatever it is. */
export const signed = (offer: unknown, by: Identity = provider): OfferDocument => ({
  offer: offer as Offer,
  signature: by.sign('offer', canonicalText(offer)),
});
