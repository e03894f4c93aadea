/** Names of all that is in a cluster, to compare it before and after. */
import type { KubeApi, KubeObject } from './kube-api.ts';

/** Kinds that report events, or that exist only while somebody renews them. */
const PASSING = new Set([
  'events',
  'leases',
  'endpoints',
  'endpointslices',
  'componentstatuses',
  'certificatesigningrequests',
]);

interface Listable {
  readonly path: string;
  readonly resource: string;
}

/** As the last whole look at each API server has found them. */
const kinds = new WeakMap<KubeApi, readonly Listable[]>();

/**
 * All objects of all kinds, except those that come and go by themselves; sorted. A whole look takes some hundred requests. `only` looks
 * again at the kinds that it names (`pods`), of those that the last whole look has found.
 */
export async function inventory(api: KubeApi, only?: ReadonlySet<string>): Promise<string[]> {
  const known = only === undefined ? undefined : kinds.get(api);
  const all = known ?? (await listable(api));
  kinds.set(api, all);
  const found: string[] = [];
  for (const { path, resource } of all) {
    if (only?.has(resource) === false) continue;
    const list = await api.get<{ items: KubeObject[] }>(`${path}/${resource}`);
    for (const { metadata } of list?.items ?? []) {
      found.push(
        `${resource} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`,
      );
    }
  }
  return found.toSorted();
}

async function listable(api: KubeApi): Promise<Listable[]> {
  const groups = await api.get<{ groups: { preferredVersion: { groupVersion: string } }[] }>('/apis');
  const paths = [
    '/api/v1',
    ...(groups?.groups ?? []).map((group) => `/apis/${group.preferredVersion.groupVersion}`),
  ];
  const lists = await Promise.all(
    paths.map(async (path) => ({
      path,
      kinds: await api.get<{ resources: { name: string; verbs: string[] }[] }>(path),
    })),
  );
  return lists.flatMap(({ path, kinds }) =>
    (kinds?.resources ?? [])
      .filter(({ name, verbs }) => verbs.includes('list') && !PASSING.has(name) && !name.includes('/'))
      .map(({ name }) => ({ path, resource: name })),
  );
}

/** `+` what is only in `now`, `-` what is only in `before`; what is new and matches one of `except` is left out. Pure. */
export function difference(
  before: readonly string[],
  now: readonly string[],
  except: readonly RegExp[] = [],
): string[] {
  const [old, current] = [new Set(before), new Set(now)];
  return [
    ...now
      .filter((line) => !old.has(line) && !except.some((one) => one.test(line)))
      .map((line) => `+ ${line}`),
    ...before.filter((line) => !current.has(line)).map((line) => `- ${line}`),
  ];
}
