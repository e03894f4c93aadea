/**
 * Whose an object in a tenant is. Others write there, too: controllers of this cluster (`kube-root-ca.crt`, ConfigMaps of a
 * service mesh) and people. What a peer writes bears its mark, and what does not bear it is not the peer's to touch.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { type Validations, forgeTenantAdmission, ofPeers } from './admission.ts';

const isMarked = (what: string): string =>
  `(${what} == null || ${what}.?metadata.?labels[?'${LABEL_MANAGED_BY}'].orValue('') != '')`;

const validations: Validations = [
  {
    expression: isMarked('oldObject'),
    message: `objects without the label ${LABEL_MANAGED_BY} are this cluster's own, and not for peers to change or delete`,
  },
  {
    expression: isMarked('object'),
    message: `objects of peers bear the label ${LABEL_MANAGED_BY}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantOwnershipPolicy = (): PolicyPair => {
  const { resourceRules, matchConditions = [] } = ofPeers('*', '*', ['CREATE', 'UPDATE', 'DELETE']);
  return forgeTenantAdmission('tributary-tenant-ownership', {
    resourceRules,
    matchConditions: [
      ...matchConditions,
      {
        // Pods are marked with the pod at home, whoever makes them; the Lease of a home is made here.
        name: 'marked-otherwise',
        expression:
          "!(request.resource.group == '' && request.resource.resource == 'pods') && " +
          "request.resource.group != 'coordination.k8s.io'",
      },
    ],
    validations,
  });
};
