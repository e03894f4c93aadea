import type { Manifest } from '../api/manifest.ts';
import { forgeTenantClaimsPolicy } from './tenant-claims-policy.ts';
import { forgeTenantDataPolicy } from './tenant-data-policy.ts';
import { forgeTenantIdentityPolicy } from './tenant-identity-policy.ts';
import { forgeTenantIngressPolicy } from './tenant-ingress-policy.ts';
import { forgeTenantLeasePolicy } from './tenant-lease-policy.ts';
import { forgeTenantLivesPolicy } from './tenant-lives-policy.ts';
import { forgeTenantMetadataPolicy } from './tenant-metadata-policy.ts';
import { forgeTenantOwnershipPolicy } from './tenant-ownership-policy.ts';
import { forgeTenantPlacementPolicy } from './tenant-placement-policy.ts';
import { forgeTenantPolicy } from './tenant-policy.ts';
import { forgeTenantServicesPolicy } from './tenant-services-policy.ts';
import { forgeTenantSizesPolicy } from './tenant-sizes-policy.ts';
import { forgeTenantVolumesPolicy } from './tenant-volumes-policy.ts';

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
