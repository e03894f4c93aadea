/**
 * Admission policies that say what RBAC cannot say about the account of the `cluster` role: which pods it may create, and what
 * it may write into their status. Its deletions cannot be told from those of a peering that ends. Of an eviction, a policy sees
 * the pod's name but not its node, so it cannot demand that the pod is on a virtual node.
 */
import { isClusterNamespaceIn } from '../../api/cluster-namespaces.ts';
import { forgeFence, isAccount, writes } from '../../api/fence.ts';
import type { Manifest } from '../../api/manifest.ts';
import { ANNOTATION_RELEASED_FROM, ANNOTATION_REMADE_FOR, LABEL_PEER } from '../../api/names.ts';
import type { AccountRef } from '../../api/rbac.ts';

const annotation = (key: string): string => `object.metadata.?annotations[?'${key}'].orValue('')`;
const status = (what: string, field: string): string => `${what}.?status.?${field}`;
const isMade = "request.operation == 'CREATE'";
const isSame = (field: string): string =>
  `${status('object', field)}.orValue('') == ${status('oldObject', field)}.orValue('')`;
const conditions = (what: string): string => `${status(what, 'conditions')}.orValue([])`;

/** To be applied before the rights that it limits. */
export function forgeReleaseFence(account: AccountRef): Manifest[] {
  return [...forgePodFence(account), ...forgeEvictionFence(account)];
}

function forgePodFence(account: AccountRef): Manifest[] {
  return forgeFence({
    name: 'tributary-release',
    user: isAccount(account),
    rules: [writes('', ['pods'], 'CREATE'), writes('', ['pods/status'], 'UPDATE')],
    // In tenant namespaces another fence limits the same account: see src/hosting/fences.ts.
    variables: { isTenant: `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('') != ''` },
    validations: [
      [
        `variables.isTenant || !(${isMade}) || ` +
          `(${annotation(ANNOTATION_REMADE_FOR)} != '' && ${annotation(ANNOTATION_RELEASED_FROM)} != '')`,
        'only pods that stand for released ones may be made, and they must say so',
      ],
      [
        `!(${isMade}) || !(${isClusterNamespaceIn('request.namespace')})`,
        "no pod is made in the cluster's own namespaces",
      ],
      [
        `!(${isMade}) || object.spec.?nodeName.orValue('') == ''`,
        'a pod that is made anew is placed by the scheduler',
      ],
      [
        `variables.isTenant || ${isMade} || (${isSame('phase')} && ${isSame('podIP')} && ${isSame('startTime')} && ` +
          `${conditions('object')}.all(c, c.type == 'DisruptionTarget' || ` +
          `${conditions('oldObject')}.exists(o, o.type == c.type && o.status == c.status)))`,
        'of a pod it may be said that it is disrupted, and nothing else',
      ],
    ],
  });
}

const UID = "object.?deleteOptions.?preconditions.?uid.orValue('')";

function forgeEvictionFence(account: AccountRef): Manifest[] {
  return forgeFence({
    name: 'tributary-eviction',
    user: isAccount(account),
    rules: [writes('', ['pods/eviction'], 'CREATE')],
    validations: [
      [`${UID} != ''`, 'an eviction names the UID of the pod that it means'],
      [
        `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('') == ''`,
        'pods of peers are not evicted: what they have here ends by deletion',
      ],
    ],
  });
}
