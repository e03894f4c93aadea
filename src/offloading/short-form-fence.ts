import { forgePolicy, isAccount, writes } from '../api/fence.ts';
import type { Manifest } from '../api/manifest.ts';
import { LABEL_OFFLOAD, LABEL_OFFLOADING_ORIGIN } from '../api/names.ts';
import type { AccountRef } from '../api/rbac.ts';
import { ORIGIN_TETHER } from './view.ts';

export const SHORT_FORM_FENCE = 'tributary-short-form';

/** The parts of a cluster that delete what has no owner any more, or no namespace. */
const IS_CLUSTER =
  "request.userInfo.username.startsWith('system:serviceaccount:kube-system:') || " +
  "request.userInfo.username == 'system:kube-controller-manager'";

/**
 * An admission policy against a deletion that has no effect: what the label of a namespace, or the operator's selector, has
 * made would be made again. It is refused with the command that takes it back. No right of ours is limited, and nobody is
 * kept from anything: that command is free to whoever may edit the namespace.
 */
export function forgeShortFormFence(account: AccountRef): Manifest[] {
  return forgePolicy(SHORT_FORM_FENCE, {
    matchConstraints: { resourceRules: [writes('tributary.dev', ['namespaceoffloadings'], 'DELETE')] },
    matchConditions: [
      { name: 'of-people', expression: `!(${isAccount(account)}) && !(${IS_CLUSTER})` },
      {
        name: 'made-for-people',
        // What a tether has made is kept by the guards of the tether.
        expression: `!(oldObject.metadata.?labels[?'${LABEL_OFFLOADING_ORIGIN}'].orValue('') in ['', '${ORIGIN_TETHER}'])`,
      },
    ],
    variables: [
      { name: 'label', expression: `namespaceObject.metadata.?labels[?'${LABEL_OFFLOAD}'].orValue('')` },
      {
        name: 'isWanted',
        expression:
          `oldObject.metadata.labels['${LABEL_OFFLOADING_ORIGIN}'] == 'label' ` +
          "? !(variables.label in ['', 'false']) : variables.label != 'false'",
      },
    ],
    validations: [
      {
        expression:
          'has(namespaceObject.metadata.deletionTimestamp) || has(oldObject.metadata.deletionTimestamp) || !variables.isWanted',
        message: 'it was made for its namespace and would be made again',
        messageExpression:
          `"it was made for the namespace and would be made again; to take it back: kubectl label namespace " + namespaceObject.metadata.name + ` +
          `(variables.label == '' ? " ${LABEL_OFFLOAD}=false" : " ${LABEL_OFFLOAD}-")`,
        reason: 'Forbidden',
      },
    ],
  });
}
