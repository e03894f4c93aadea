import type { Manifest } from '../../api/manifest.ts';
import { forgeTenantClaimsPolicy, forgeTenantDataPolicy, volumeBounds } from './data.ts';
import {
  forgeTenantLeasePolicy,
  forgeTenantMetadataPolicy,
  forgeTenantOwnershipPolicy,
  metadataBounds,
} from './objects.ts';
import { placementBounds } from './placement.ts';
import { forgeTenantPodsPolicy } from './pod-bounds.ts';
import { forgeTenantLivesPolicy, podBounds } from './pods.ts';
import { imageBounds, privilegeBounds } from './privileges.ts';
import { forgeTenantIngressPolicy, forgeTenantServicesPolicy } from './services.ts';

/** All admission policies over tenants, in the order in which they are applied. One set serves all tenants. */
export const forgeTenantPolicies = (): Manifest[] => [
  ...forgeTenantPodsPolicy([
    ...podBounds,
    metadataBounds,
    placementBounds,
    privilegeBounds,
    imageBounds,
    volumeBounds,
  ]),
  ...forgeTenantClaimsPolicy(),
  ...forgeTenantDataPolicy(),
  ...forgeTenantServicesPolicy(),
  ...forgeTenantIngressPolicy(),
  ...forgeTenantLeasePolicy(),
  ...forgeTenantLivesPolicy(),
  ...forgeTenantOwnershipPolicy(),
  ...forgeTenantMetadataPolicy(),
];
