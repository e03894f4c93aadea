/** Everything that an API server stores, to be compared with itself later. */
import type { Cluster } from '../../../lab/cluster.ts';
import { eventually } from '../eventually.ts';

interface Resources {
  groupVersion: string;
  resources: { name: string; namespaced: boolean; verbs: string[] }[];
}

interface Listed {
  items: { metadata: { namespace?: string; name: string; generation?: number; resourceVersion: string } }[];
}

/** What comes and goes by itself. */
const PASSING =
  /^(events|events\.events\.k8s\.io|leases\.coordination\.k8s\.io|ipaddresses\..*|.*\.metrics\.k8s\.io)$/;

interface Choice {
  readonly isWithVersions?: boolean;
  readonly only?: RegExp;
}

/** `resource.group namespace/name`, and, where it is asked for, its generation, or its version if it has none. */
export async function allObjects(
  { api }: Pick<Cluster, 'api'>,
  { isWithVersions = false, only = /./ }: Choice = {},
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const [resource, path] of await collections(api)) {
    const list = await readPatiently<Partial<Listed>>(api, path);
    for (const { metadata } of list.items ?? []) {
      const key = `${resource} ${metadata.namespace ?? ''}/${metadata.name}`;
      const version = String(metadata.generation ?? metadata.resourceVersion);
      if (only.test(key)) found.set(key, isWithVersions ? version : '');
    }
  }
  return found;
}

interface Groups {
  groups: { preferredVersion: { groupVersion: string } }[];
}

/** `resource.group` and its path. */
async function collections(api: Cluster['api']): Promise<[resource: string, path: string][]> {
  const list = await api.get<Groups>('/apis');
  const versions = (list?.groups ?? []).map(({ preferredVersion }) => preferredVersion.groupVersion);
  const found: [string, string][] = [];
  for (const root of ['/api/v1', ...versions.map((version) => `/apis/${version}`)]) {
    const { resources = [] } = await readPatiently<Partial<Resources>>(api, root);
    const group = root === '/api/v1' ? '' : `.${root.split('/')[2]}`;
    for (const { name, verbs } of resources) {
      const isKept = verbs.includes('list') && !PASSING.test(`${name}${group}`);
      if (isKept) found.push([`${name}${group}`, `${root}/${name}`]);
    }
  }
  return found;
}

/** For a moment after a definition was made, its kind is served but not ready. */
async function readPatiently<T>(api: Cluster['api'], path: string): Promise<T> {
  let body = '';
  await eventually(`${path} can be listed`, async () => {
    const answer = await api.call('GET', path);
    body = answer.status === 404 ? '{}' : answer.body;
    return answer.status === 200 || answer.status === 404;
  });
  return JSON.parse(body) as T;
}

/** `+` for what came, `-` for what went, `~` for what changed. */
export function differing(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [
    ...[...before.keys()].filter((key) => !after.has(key)).map((key) => `- ${key}`),
    ...[...after].flatMap(([key, value]) => {
      const old = before.get(key);
      if (old === undefined) return [`+ ${key}`];
      return old === value ? [] : [`~ ${key}`];
    }),
  ];
}

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Borrowed labs have our kinds already; the cluster of a new user has not. */
export async function withoutOurKinds({ api }: Pick<Cluster, 'api'>): Promise<void> {
  const list = await api.get<Listed>(DEFINITIONS);
  for (const { metadata } of list?.items ?? []) await api.call('DELETE', `${DEFINITIONS}/${metadata.name}`);
  await eventually('our kinds are gone', async () => {
    const { status } = await api.call('GET', '/apis/tributary.dev');
    return status === 404;
  });
}
