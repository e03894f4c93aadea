/**
 * Rights as data. Roles are forged from these tables, docs/rights.md is printed from them, and an integration test
 * asks a real API server whether they are the whole truth.
 */
import { CLUSTER_NAME, type Manifest, type ManifestOf, SYSTEM_NAMESPACE } from './manifest.ts';
import type { Stored, Wire } from './wire.ts';
import type * as models from '@kubernetes/client-node';

export type Role = Stored<models.V1Role>;
export type RoleBinding = Stored<models.V1RoleBinding>;
export type PolicyRule = Wire<models.V1PolicyRule>;

const RBAC_GROUP = 'rbac.authorization.k8s.io';
export const RBAC_VERSION: string = `${RBAC_GROUP}/v1`;

/**
 * A closed list: no `*`, no `deletecollection`, no `escalate` or `impersonate` can be written down. `bind` is only
 * ever given with names (`rulesOf` refuses it without): who may bind any role may become anybody. `serve` is a word of
 * our own that no API server acts on: admission policies ask for it (src/deploy/agents.ts).
 */
export type Verb =
  'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'approve' | 'bind' | 'serve';

/** One line of a table: what may be done to one resource, and why each verb is there. */
export interface Right {
  /** As kubectl names it, plural, with group and subresource: `pods`, `pods/log`, `tunnels.tributary.dev/status`. */
  readonly resource: string;
  readonly verbs: readonly Verb[];
  /**
   * Where given, these objects only. A name may hold a placeholder, see `named`. `create` cannot be narrowed
   * this way, except where server-side apply makes the object: the API server authorises a POST before it knows the name.
   */
  readonly names?: readonly string[];
  /** One phrase for a person who asks why. */
  readonly why: string;
}

/** Right to tell events; `patch`: one that is told again counts on. */
export const eventRight = (why: string): Right => ({ resource: 'events', verbs: ['create', 'patch'], why });

/** The rights as rules of a Role; placeholders such as `<node>` in names are filled in. */
export function rulesOf(
  rights: readonly Right[],
  names: Readonly<Record<string, string>> = {},
): PolicyRule[] {
  return rights.map(checkedRight).map((right) => {
    const { group, resource } = groupAndResource(right);
    return {
      apiGroups: [group],
      resources: [resource],
      ...(right.names && { resourceNames: right.names.map((name) => filled(name, names)) }),
      verbs: [...right.verbs],
    };
  });
}

/** As the API has them; the core group is empty. Throws for what kubectl would not take for a resource. */
export function groupAndResource({ resource }: Pick<Right, 'resource'>): { group: string; resource: string } {
  const parts = /^([^./]+)(?:\.([^/]+))?(\/.+)?$/.exec(resource);
  if (parts === null) throw new Error(`${resource} is no resource: write plural.group/subresource`);
  const [, plural = '', group = '', subresource = ''] = parts;
  return { group, resource: plural + subresource };
}

function checkedRight(right: Right): Right {
  if (right.verbs.includes('bind') && (right.names ?? []).length === 0) {
    throw new Error(`bind on ${right.resource} without names would be a way to every right there is`);
  }
  return right;
}

/** The text with each `<key>` replaced; a placeholder nobody fills is a bug, and would be a silent loss of rights. */
function filled(text: string, names: Readonly<Record<string, string>>): string {
  return text.replaceAll(/<([a-z-]+)>/g, (whole, key: string) => {
    const name = names[key];
    if (name === undefined) throw new Error(`no value for ${whole} in "${text}"`);
    return name;
  });
}

export interface AccountRef {
  namespace: string;
  name: string;
}

/** Of role `cluster`. */
export const CLUSTER_ACCOUNT: AccountRef = { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME };

/** All accounts of a namespace, also those to come. */
export interface AccountsOf {
  accountsOf: string;
}

/** Who gets what where; the Role and its binding bear the same name. */
export interface Grant {
  name: string;
  /** Absent: cluster-wide. */
  namespace?: string;
  labels: Record<string, string>;
  account: AccountRef | AccountsOf | readonly AccountRef[];
  rules: PolicyRule[];
}

/** The pair of objects that gives these rules to the account, or to each of several, and to nobody else. */
export function forgeGrant(grant: Grant): [ManifestOf<Role>, ManifestOf<RoleBinding>] {
  const kind = grant.namespace === undefined ? 'ClusterRole' : 'Role';
  return [
    { apiVersion: RBAC_VERSION, kind, metadata: metadataOf(grant), rules: grant.rules },
    forgeBinding({ kind, name: grant.name }, grant),
  ];
}

/** On a ClusterRole, `true`: its rules become rights of the role `cluster`, which passes them on to tenants. */
export const LABEL_AGGREGATE_LENDING = 'tributary.dev/aggregate-to-lending';
/** On a ClusterRole, `true`: its rules become rights of agents in each offloaded namespace. */
export const LABEL_AGGREGATE_AGENTS = 'tributary.dev/aggregate-to-agents';

/** A ClusterRole whose rules are those of all ClusterRoles that bear this label with the value `true`; its own are none. */
export const forgeAggregate = (
  name: string,
  { labels, label }: { labels: Record<string, string>; label: string },
): ManifestOf<Stored<models.V1ClusterRole>> => ({
  apiVersion: RBAC_VERSION,
  kind: 'ClusterRole',
  metadata: { name, labels },
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] },
});

/** Binds the account to a role that exists; by itself, to one that Kubernetes ships. */
export function forgeBinding(
  role: { kind: 'Role' | 'ClusterRole'; name: string },
  grant: Omit<Grant, 'rules'>,
): ManifestOf<RoleBinding> {
  return {
    apiVersion: RBAC_VERSION,
    kind: grant.namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: metadataOf(grant),
    roleRef: { apiGroup: RBAC_GROUP, ...role },
    subjects: [grant.account].flat().map(subjectOf),
  };
}

const subjectOf = (account: AccountRef | AccountsOf): NonNullable<RoleBinding['subjects']>[number] =>
  'accountsOf' in account
    ? { kind: 'Group', apiGroup: RBAC_GROUP, name: `system:serviceaccounts:${account.accountsOf}` }
    : { kind: 'ServiceAccount', ...account };

const metadataOf = ({ name, namespace, labels }: Omit<Grant, 'rules'>): Manifest['metadata'] => ({
  name,
  ...(namespace !== undefined && { namespace }),
  labels,
});
