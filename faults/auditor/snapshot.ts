/** Reads all that an API server stores: for I6, and what is scanned for secrets (I8). */
import { type ApiReader, ReadError } from './api-reader.ts';
import { isPassing } from './checks/strangers.ts';
import type { RawObject } from './snapshot-model.ts';
import { type ClusterSnapshot, storedObject } from './snapshot-model.ts';

interface Resources {
  resources?: { name: string; verbs: string[] }[];
}
interface Groups {
  groups: { preferredVersion: { groupVersion: string } }[];
}

/** A kind that is served, with its collection over all namespaces. */
export interface Collection {
  /** `pods`, `deployments.apps`. */
  readonly resource: string;
  readonly path: string;
}

/** Statuses of collections that are served and cannot be listed, such as those of an aggregated server that is away. */
const NOT_LISTED = new Set([404, 405, 503]);
const AT_ONCE = 4;

/** @throws {ReadError} */
export async function collectionsOf(reader: ApiReader): Promise<Collection[]> {
  const { groups } = await reader.get<Groups>('/apis');
  const roots = [
    '/api/v1',
    ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
  ];
  const found = await Promise.all(
    roots.map(async (root): Promise<Collection[]> => {
      const { resources = [] } = await unlessNotListed(reader.get<Resources>(root), {});
      const group = root === '/api/v1' ? '' : `.${root.split('/')[2]}`;
      return resources
        .filter(({ name, verbs }) => verbs.includes('list') && !name.includes('/'))
        .map(({ name }) => ({ resource: `${name}${group}`, path: `${root}/${name}` }));
    }),
  );
  return found.flat();
}

async function unlessNotListed<T>(read: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ReadError && NOT_LISTED.has(error.status ?? 0)) return otherwise;
    throw error;
  }
}

/**
 * All objects of the cluster.
 *
 * @param notice is called with each object and its kind as `resource.group`; kinds that come and go by themselves are among them
 * @throws {ReadError}
 */
export async function snapshotOf(
  reader: ApiReader,
  notice: (resource: string, object: RawObject) => void,
): Promise<ClusterSnapshot> {
  const left = await collectionsOf(reader);
  const objects: ClusterSnapshot['objects'][number][] = [];
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { resource, path } = next;
      const { items } = await unlessNotListed(reader.list(path), { version: '', items: [] });
      for (const item of items) notice(resource, item);
      if (!isPassing(resource)) objects.push(...items.map((item) => storedObject(resource, item)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { cluster: reader.name, objects };
}
