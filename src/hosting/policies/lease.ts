/** The one Lease by which a home shows that it is there (HOME_LEASE): a heartbeat, and no place to keep anything. */
import type { PolicyPair } from '../../api/fence.ts';
import { HOME_LEASE } from '../../api/names.ts';
import { type Validations, forgeTenantAdmission, ofPeers } from './admission.ts';

const MAX_HOLDER = 253;
/** Seconds. Less would take a short outage for an end; more would keep pods of a home that is gone. */
const DURATION = { least: 10, most: 300 };

const validations: Validations = [
  {
    expression: `object.metadata.name == '${HOME_LEASE}'`,
    message: `peers renew the Lease ${HOME_LEASE} and no other`,
  },
  {
    expression: `object.spec.?holderIdentity.orValue('').size() <= ${MAX_HOLDER} && !has(object.spec.strategy) && !has(object.spec.preferredHolder)`,
    message: `the Lease of a home names its holder in ${MAX_HOLDER} characters at most, and no election`,
  },
  {
    expression:
      `object.spec.?leaseDurationSeconds.orValue(${DURATION.least}) >= ${DURATION.least} && ` +
      `object.spec.?leaseDurationSeconds.orValue(${DURATION.least}) <= ${DURATION.most}`,
    message: `the Lease of a home lasts from ${DURATION.least} to ${DURATION.most} seconds`,
  },
  {
    expression:
      'oldObject != null && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && ' +
      'object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})',
    message: 'labels and annotations of the Lease of a home are ours',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantLeasePolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-leases', {
    ...ofPeers('coordination.k8s.io', 'leases'),
    validations,
  });
