/** Pods of peers are nobody in this cluster: no account, no token of it, whatever has become of the `default` account. */
import type { PolicyPair } from '../../api/fence.ts';
import { type Validations, forgeTenantAdmission, ofPods } from './admission.ts';

const validations: Validations = [
  {
    expression: "object.spec.?serviceAccountName.orValue('default') in ['', 'default']",
    message: 'pods of peers run as no account of this cluster: spec.serviceAccountName must be empty',
  },
  {
    expression: '!object.spec.?automountServiceAccountToken.orValue(false)',
    message: 'pods of peers get no token of this cluster: spec.automountServiceAccountToken must not be true',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantIdentityPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-identity', { ...ofPods(), validations });
