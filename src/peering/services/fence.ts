/**
 * What RBAC cannot say about home Services: the account of the `cluster` role writes only those that stand for a
 * provider's Service, makes no other Service into one, and does so only in namespaces of users.
 */
import { isClusterNamespaceIn } from '../../api/cluster-namespaces.ts';
import { forgePolicy, isAccount, type PolicyPair, type PolicySpec, writes } from '../../api/fence.ts';
import {
  LABEL_OFFERED_SERVICE,
  LABEL_PEER,
  LABEL_PROVIDER,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import type { AccountRef } from '../../api/rbac.ts';

const NAME = 'tributary-services';

const label = (what: string, key: string): string => `${what}.metadata.?labels[?'${key}'].orValue('')`;
const isMarked = (what: string): string =>
  `${label(what, LABEL_OFFERED_SERVICE)} == 'true' && ${label(what, LABEL_PROVIDER)} != ''`;
const isService = "request.resource.resource == 'services'";

/** CEL: whether a slice is or was one of a home Service. Those in tenant namespaces are bounded elsewhere. */
export const IS_OFFERED_SLICE: string =
  "(request.resource.resource == 'endpointslices' && " +
  `((object != null && ${label('object', LABEL_OFFERED_SERVICE)} == 'true') || ` +
  `(oldObject != null && ${label('oldObject', LABEL_OFFERED_SERVICE)} == 'true')))`;

const validations: NonNullable<PolicySpec['validations']> = [
  {
    expression: `oldObject == null || (${isMarked('oldObject')})`,
    message: 'only what stands for a Service of a provider may be changed or deleted',
  },
  {
    expression: `object == null || (${isMarked('object')})`,
    message: 'only what stands for a Service of a provider may be made, and it must be marked',
  },
  {
    expression:
      `object == null || oldObject == null || ` +
      `${label('object', LABEL_PROVIDER)} == ${label('oldObject', LABEL_PROVIDER)}`,
    message: 'a home Service keeps its provider',
  },
  {
    expression:
      `object == null || !(${isClusterNamespaceIn('request.namespace')} || ` +
      `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('') != '')`,
    message: "no home Service is made in the cluster's own namespaces and in those of peers",
  },
  {
    expression:
      `!(${isService}) || object == null || (object.spec.?type.orValue('ClusterIP') == 'ClusterIP' && ` +
      `object.spec.?selector.orValue({}).size() == 0 && object.spec.?externalIPs.orValue([]).size() == 0)`,
    message: 'a home Service has a cluster IP, and neither a selector nor external addresses',
  },
  {
    expression:
      `${isService} || object == null || ` +
      `${label('object', LABEL_SLICE_MANAGED_BY)} == '${SLICE_MANAGER}'`,
    message: `endpoints of home Services are managed by ${SLICE_MANAGER}`,
  },
];

const ALL = ['CREATE', 'UPDATE', 'DELETE'];

/** To be applied before the rights that it bounds. */
export const forgeServicesFence = (account: AccountRef): PolicyPair =>
  forgePolicy(NAME, {
    matchConstraints: {
      resourceRules: [
        writes('', ['services'], ...ALL),
        writes('discovery.k8s.io', ['endpointslices'], ...ALL),
      ],
    },
    matchConditions: [
      { name: 'cluster-role', expression: isAccount(account) },
      { name: 'home-services', expression: `${isService} || ${IS_OFFERED_SLICE}` },
    ],
    validations,
  });
