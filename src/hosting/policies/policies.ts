import type { Manifest } from '../../api/manifest.ts';
import { forgeTenantClaimsPolicy, forgeTenantDataPolicy, forgeTenantVolumesPolicy } from './data.ts';
import { forgeTenantLeasePolicy, forgeTenantMetadataPolicy, forgeTenantOwnershipPolicy } from './objects.ts';
import { forgeTenantPlacementPolicy } from './placement.ts';
import {
  forgeTenantFencePolicy,
  forgeTenantIdentityPolicy,
  forgeTenantLivesPolicy,
  forgeTenantPolicy,
  forgeTenantSizesPolicy,
} from './pods.ts';
import { forgeTenantImagesPolicy, forgeTenantPrivilegesPolicy } from './privileges.ts';
import { forgeTenantIngressPolicy, forgeTenantServicesPolicy } from './services.ts';

/** All admission policies over tenants, in the order in which they are applied. One set serves all tenants. */
export const forgeTenantPolicies = (): Manifest[] => [
  ...forgeTenantPolicy(),
  ...forgeTenantFencePolicy(),
  ...forgeTenantPlacementPolicy(),
  ...forgeTenantIdentityPolicy(),
  ...forgeTenantPrivilegesPolicy(),
  ...forgeTenantImagesPolicy(),
  ...forgeTenantVolumesPolicy(),
  ...forgeTenantSizesPolicy(),
  ...forgeTenantClaimsPolicy(),
  ...forgeTenantDataPolicy(),
  ...forgeTenantServicesPolicy(),
  ...forgeTenantIngressPolicy(),
  ...forgeTenantLeasePolicy(),
  ...forgeTenantLivesPolicy(),
  ...forgeTenantOwnershipPolicy(),
  ...forgeTenantMetadataPolicy(),
];
