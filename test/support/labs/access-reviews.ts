/** What an API server really allows an account: every resource it serves, every verb, asked one by one. */
import { groupAndResource, type Right } from '../../../src/api/rbac.ts';
import type { KubeApi } from '../../../lab/kube-api.ts';

/** More verbs than the API server has handlers for: it includes verbs that only authorisation knows. */
const VERBS = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'approve',
  'attest',
  'bind',
  'escalate',
  'impersonate',
  'proxy',
  'serve',
  'sign',
  'use',
  '*',
] as const;

/**
 * Resources that discovery does not show: those of APIs that other servers serve, and those that exist only for
 * authorisation.
 */
const UNSERVED = [
  'metrics.k8s.io/pods',
  'metrics.k8s.io/nodes',
  'certificates.k8s.io/signers',
  '/users',
  '/groups',
  '/nodes/metrics',
  '/nodes/stats',
  '/nodes/log',
  '/serviceaccounts/token',
  'tributary.dev/nodes',
  'nobody.example/things',
  '*/*',
] as const;

const AT_ONCE = 24;

/** `group/resource`, subresources included; the core group is empty. */
export async function servedResources(api: KubeApi): Promise<string[]> {
  const groups =
    (await api.get<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis'))?.groups ?? [];
  const versions = [
    'v1',
    ...groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion)),
  ];
  const found = new Set<string>(UNSERVED);
  for (const version of versions) {
    const path = version === 'v1' ? '/api/v1' : `/apis/${version}`;
    const group = version === 'v1' ? '' : version.split('/')[0];
    const list = await api.get<{ resources: { name: string }[] }>(path);
    for (const { name } of list?.resources ?? []) found.add(`${group}/${name}`);
  }
  return [...found].toSorted();
}

export interface Account {
  user: string;
  groups: readonly string[];
}

export const serviceAccount = (namespace: string, name: string): Account => ({
  user: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** Where to ask: a namespace (empty: cluster-wide), and of which object (empty: of all). */
export interface Scope {
  namespace: string;
  name?: string;
}

/** Every `verb group/resource [name]` that the account is allowed there. */
export async function allowed(
  api: KubeApi,
  account: Account,
  resources: readonly string[],
  { namespace, name = '' }: Scope,
): Promise<string[]> {
  const found: string[] = [];
  const questions = resources.flatMap((resource) => VERBS.map((verb) => ({ resource, verb })));
  const ask = async (): Promise<void> => {
    for (let next = questions.pop(); next !== undefined; next = questions.pop()) {
      if (await mayDo(api, account, { ...next, namespace, name })) {
        found.push(line(next.verb, next.resource, name));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return found.toSorted();
}

const line = (verb: string, resource: string, name: string): string =>
  `${verb} ${resource}${name === '' ? '' : ` ${name}`}`;

async function mayDo(
  api: KubeApi,
  { user, groups }: Account,
  question: { resource: string; verb: string; namespace: string; name: string },
): Promise<boolean> {
  const [group = '', resource, ...sub] = question.resource.split('/');
  const { status, body } = await api.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user,
      groups,
      resourceAttributes: {
        group,
        resource,
        subresource: sub.join('/'),
        verb: question.verb,
        namespace: question.namespace,
        name: question.name,
      },
    },
  });
  if (status !== 201) throw new Error(`SubjectAccessReview: ${status} ${body}`);
  return (JSON.parse(body) as { status: { allowed: boolean } }).status.allowed;
}

/** The name that stands in a table, with its placeholder filled in. */
export const filledIn = (text: string, names: Readonly<Record<string, string>>): string =>
  text.replace(/<[a-z-]+>/u, (placeholder) => names[placeholder] ?? placeholder);

/** The same lines as `allowed`, from tables: rights to an object of this name, or to all objects. */
export function expected(
  tables: readonly (readonly Right[])[],
  name = '',
  names: Record<string, string> = {},
): string[] {
  const lines = tables.flat().flatMap((right) => {
    const own = right.names?.map((text) => filledIn(text, names));
    if (own !== undefined && !own.includes(name)) return [];
    const { group, resource } = groupAndResource(right);
    return right.verbs.map((verb) => line(verb, `${group}/${resource}`, name));
  });
  return [...new Set(lines)].toSorted();
}
