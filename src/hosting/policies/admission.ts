/** What the admission policies over tenants (ValidatingAdmissionPolicy, KEP-3488) have in common. */
import { type PolicyPair, type PolicySpec, forgePolicy, isAccountOf, writes } from '../../api/fence.ts';
import { LABEL_PEER, PEERS_NAMESPACE } from '../../api/tenant-labels.ts';

interface TenantAdmission extends Pick<PolicySpec, 'matchConditions' | 'variables'> {
  resourceRules: ReturnType<typeof writes>[];
  /** Of these rules. */
  excludeResourceRules?: ReturnType<typeof writes>[];
  validations: NonNullable<PolicySpec['validations']>;
}

export type Validations = TenantAdmission['validations'];

export const WRITES: readonly string[] = ['CREATE', 'UPDATE', 'DELETE'];

/** CEL: whether the request comes from a peer. */
export const BY_PEER: string = isAccountOf(PEERS_NAMESPACE);

/** For what peers do themselves. Our own controllers write in the same namespaces and are not bound. */
export const ofPeers = (
  group: string,
  resource: string,
  operations: readonly string[] = ['CREATE', 'UPDATE'],
): Pick<TenantAdmission, 'resourceRules' | 'matchConditions'> => ({
  resourceRules: [writes(group, [resource], ...operations)],
  matchConditions: [{ name: 'peers', expression: BY_PEER }],
});

/** CEL: an annotation of the tenant namespace; empty without it. */
export const saidOn = (annotation: string): string =>
  `namespaceObject.metadata.?annotations[?'${annotation}'].orValue('')`;

/** CEL: the parts of an annotation of the tenant namespace; none without it. */
export const listedOn = (annotation: string): string =>
  `${saidOn(annotation)}.split(',').filter(it, it != '')`;

const CONTAINER_LISTS = ['containers', 'initContainers', 'ephemeralContainers'];

/** CEL: a condition for each container `c` of these lists of a pod; default: of all. */
export const eachContainer = (condition: string, lists: readonly string[] = CONTAINER_LISTS): string =>
  lists.map((list) => `object.spec.?${list}.orValue([]).all(c, ${condition})`).join(' && ');

/** The same validations, where this CEL expression does not hold. */
export const unless = (condition: string, validations: Validations): Validations =>
  validations.map(({ expression, ...rest }) => ({
    expression: `${condition} || (${expression})`,
    ...rest,
  }));

/** CEL: a list of texts. */
export const celList = (texts: readonly string[]): string => `[${texts.map((it) => `'${it}'`).join(', ')}]`;

/** A policy over every namespace that belongs to a peer, and its binding. */
export const forgeTenantAdmission = (
  name: string,
  { resourceRules, excludeResourceRules, validations, ...conditions }: TenantAdmission,
): PolicyPair =>
  forgePolicy(name, {
    matchConstraints: {
      namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'Exists' }] },
      resourceRules,
      ...(excludeResourceRules && { excludeResourceRules }),
    },
    ...conditions,
    validations,
  });
