/**
 * What RBAC cannot say about the guardian, which shares the account of the `cluster` role: in tenants it makes nothing but pods
 * that were there before, and speaks only of pods that never run. Outside of tenants the release's own fence holds.
 */
import { forgeFence, isAccount, writes } from '../../api/fence.ts';
import type { Manifest } from '../../api/manifest.ts';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  HOME_LEASE,
  LABEL_HOME_UID,
  LABEL_PEER,
} from '../../api/names.ts';
import type { AccountRef } from '../../api/rbac.ts';
import { RESULT_GATE } from './result.ts';

const isKind = (plural: string): string => `request.resource.resource == '${plural}'`;
const isMade = (plural: string): string => `(${isKind(plural)} && request.operation == 'CREATE')`;
const annotation = (what: string, key: string): string =>
  `${what}.metadata.?annotations[?'${key}'].orValue('')`;
const label = (what: string, key: string): string => `${what}.metadata.?labels[?'${key}'].orValue('')`;
const isResult = (what: string): string =>
  `(${annotation(what, ANNOTATION_RESULT)} == 'true' && ${what}.spec.?nodeName.orValue('') == '' && ` +
  `${what}.spec.?schedulingGates.orValue([]).exists(g, g.name == '${RESULT_GATE}'))`;
const isStatus = "(request.?subResource.orValue('') == 'status')";

/** To be applied before the rights that it bounds. */
export function forgeGuardianFence(account: AccountRef): Manifest[] {
  return forgeFence({
    name: 'tributary-guardian',
    user: isAccount(account),
    rules: [
      writes('', ['pods'], 'CREATE', 'DELETE'),
      writes('', ['pods/status'], 'UPDATE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE'),
    ],
    variables: { isTenant: `${label('namespaceObject', LABEL_PEER)} != ''` },
    validations: [
      [
        `!${isMade('leases')} || request.namespace == '${account.namespace}' || ` +
          `(variables.isTenant && object.metadata.name == '${HOME_LEASE}')`,
        `in tenants the Lease ${HOME_LEASE} may be made, and outside of them those of our own namespace`,
      ],
      [
        `!${isMade('pods')} || !variables.isTenant || (${label('object', LABEL_HOME_UID)} != '' && ` +
          `object.spec.?nodeName.orValue('') == '' && ` +
          `(${isResult('object')} || ${annotation('object', ANNOTATION_RECREATED)} != ''))`,
        'in tenants only lost pods of the peer may be made anew, and they must say so',
      ],
      [
        `!(${isKind('pods')} && request.operation == 'DELETE' && variables.isTenant) || ` +
          `${label('oldObject', LABEL_HOME_UID)} != ''`,
        'in tenants only pods of the peer may be deleted',
      ],
      [
        `!(${isStatus} && variables.isTenant) || (${isResult('oldObject')} && ` +
          "object.?status.?phase.orValue('') in ['Succeeded', 'Failed'])",
        'in tenants only results of pods that never run may be written',
      ],
    ],
  });
}
