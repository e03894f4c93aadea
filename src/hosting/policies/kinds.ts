/**
 * Further kinds, which a SharingPolicy lets peers bring into their tenants. The policy decides, but not about kinds by which a
 * cluster governs itself: those are refused whatever the policy says.
 */
import { LABEL_AGGREGATE_LENDING, type PolicyRule, type Right } from '../../api/rbac.ts';
import type { ReflectableKind } from '../../api/reflection.ts';

/** The verbs that reflecting objects needs. */
export const KIND_VERBS: Right['verbs'] = ['list', 'watch', 'create', 'update', 'delete'];

/**
 * Groups that are refused, with all groups below them. Groups of Kubernetes itself end in `k8s.io` or have no dot: roles,
 * admission, certificates, API services, nodes, storage, workloads, network policies. The others extend a cluster's
 * authorisation or admission in the same way.
 */
const REFUSED = [
  'k8s.io',
  'tributary.dev',
  'openshift.io',
  'cattle.io',
  'kyverno.io',
  'gatekeeper.sh',
] as const;
/** Groups of Kubernetes that hold custom resources like any other. */
const EXCEPTIONS = ['gateway.networking.k8s.io'] as const;

const RESOURCE = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Why no peer may bring this kind; undefined where the policy may decide. */
export function refusalOfKind({ group, resource }: ReflectableKind): string | undefined {
  if (!RESOURCE.test(resource)) return 'is not the plural name of a kind';
  if (EXCEPTIONS.some((it) => it === group)) return undefined;
  if (!group.includes('.')) return "is one of Kubernetes' own kinds";
  const refused = REFUSED.find((it) => group === it || group.endsWith(`.${it}`));
  return refused && `is of group ${refused}, by which a cluster governs itself`;
}

/** CEL: whether `group`, an expression, may be in the Role of a tenant. Decides as `refusalOfKind` does. */
export const isReflectableGroup = (group: string): string => {
  const refused = REFUSED.map((it) => `${group} == '${it}' || ${group}.endsWith('.${it}')`).join(' || ');
  const exceptions = EXCEPTIONS.map((it) => `'${it}'`).join(', ');
  return `(${group} in [${exceptions}] || (${group}.contains('.') && !(${refused})))`;
};

const nameOfKind = ({ group, resource }: ReflectableKind): string => `${resource}.${group}`;

/** The kinds that a policy names, by whether they can be granted. */
export interface JudgedKinds {
  granted: readonly ReflectableKind[];
  /** Kinds that can never be granted. */
  refused: readonly ReflectableKind[];
  /** Kinds for which we do not hold the rights that we would pass on. */
  missing: readonly ReflectableKind[];
}

export const NO_KINDS: JudgedKinds = { granted: [], refused: [], missing: [] };

/** `held`: the rules of our own account. */
export function judgeKinds(
  wanted: readonly ReflectableKind[],
  held: readonly PolicyRule[] = [],
): JudgedKinds {
  const fate = (kind: ReflectableKind): keyof JudgedKinds => {
    if (refusalOfKind(kind) !== undefined) return 'refused';
    return KIND_VERBS.every((verb) => held.some((rule) => allows(rule, kind, verb))) ? 'granted' : 'missing';
  };
  const {
    granted = [],
    refused = [],
    missing = [],
  } = Object.groupBy(
    wanted.toSorted((a, b) => (nameOfKind(a) < nameOfKind(b) ? -1 : 1)),
    fate,
  );
  return { granted, refused, missing };
}

function allows(
  { apiGroups = [], resources = [], resourceNames = [], verbs }: PolicyRule,
  { group, resource }: ReflectableKind,
  verb: string,
): boolean {
  const has = (list: readonly string[], what: string): boolean => list.includes(what) || list.includes('*');
  return resourceNames.length === 0 && has(apiGroups, group) && has(resources, resource) && has(verbs, verb);
}

/** What is wrong, for people; undefined when all kinds are granted. */
export function complaintOf({ refused, missing }: JudgedKinds): string | undefined {
  const parts = [
    ...refused.map((kind) => `${nameOfKind(kind)} ${refusalOfKind(kind) ?? ''} and can never be reflected`),
    ...(missing.length === 0
      ? []
      : [
          `Tributary itself does not hold ${KIND_VERBS.join(', ')} on ${missing.map(nameOfKind).join(', ')} and ` +
            `cannot pass it on; give it a ClusterRole with the label ${LABEL_AGGREGATE_LENDING}: "true"`,
        ]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

/** Whether a peer may bring all kinds that its policy names; undefined where it names none. */
export interface KindsReport {
  state: 'AsExpected' | 'KindRefused' | 'KindNotServed' | 'RightsMissing';
  message: string;
}

/** `problem`: why the rights could not be given; `uncounted`: kinds that no quota counts. */
export function kindsReport(
  judged: JudgedKinds,
  problem: string | undefined,
  uncounted: readonly ReflectableKind[],
): KindsReport {
  const complaint = complaintOf(judged);
  const { granted, missing } = judged;
  // A quota cannot count kinds that are not served or are not in namespaces; their objects are refused.
  const unserved =
    uncounted.length === 0
      ? undefined
      : `${uncounted.map(nameOfKind).join(', ')}: no namespaced kind of that name is served here, or only since a moment ago`;
  if (complaint === undefined && problem === undefined && unserved === undefined) {
    return { state: 'AsExpected', message: `may bring ${granted.map(nameOfKind).join(', ')}` };
  }
  const message = [complaint, problem, unserved].filter((it) => it !== undefined).join('; ');
  if (problem !== undefined || missing.length > 0) return { state: 'RightsMissing', message };
  return { state: complaint === undefined ? 'KindNotServed' : 'KindRefused', message };
}
