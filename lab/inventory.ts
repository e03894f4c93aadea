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

/** All objects of all kinds, except those that come and go by themselves; sorted. */
export async function inventory(api: KubeApi): Promise<string[]> {
  const found: string[] = [];
  for (const { path, resource } of await listable(api)) {
    const list = await api.get<{ items: KubeObject[] }>(`${path}/${resource}`);
    for (const { metadata } of list?.items ?? []) {
      found.push(
        `${resource} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`,
      );
    }
  }
  return found.toSorted();
}

async function listable(api: KubeApi): Promise<{ path: string; resource: string }[]> {
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
