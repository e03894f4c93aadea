import type { Manifest } from '../../api/manifest.ts';
import { forgeTenantClaimsPolicy } from './claims.ts';
import { forgeTenantDataPolicy } from './data.ts';
import { forgeTenantIdentityPolicy } from './identity.ts';
import { forgeTenantIngressPolicy } from './ingress.ts';
import { forgeTenantLeasePolicy } from './lease.ts';
import { forgeTenantLivesPolicy } from './lives.ts';
import { forgeTenantMetadataPolicy } from './metadata.ts';
import { forgeTenantOwnershipPolicy } from './ownership.ts';
import { forgeTenantPlacementPolicy } from './placement.ts';
import { forgeTenantPolicy } from './policy.ts';
import { forgeTenantServicesPolicy } from './services.ts';
import { forgeTenantSizesPolicy } from './sizes.ts';
import { forgeTenantVolumesPolicy } from './volumes.ts';

/** All admission policies over what is done in tenants, in the order in which they are applied; one set serves all. */
export const forgeTenantPolicies = (): Manifest[] => [
  ...forgeTenantPolicy(),
  ...forgeTenantPlacementPolicy(),
  ...forgeTenantIdentityPolicy(),
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
