/** Reads our objects, to see later whether somebody has written them (I7). */
import { createHash } from 'node:crypto';

import { type ApiReader, ReadError } from './api-reader.ts';
import type { Written } from './checks/quiet.ts';
import { HOME_UID, MANAGED_BY, VIRTUAL_NODES } from './contract.ts';
import type { RawObject } from './snapshot-model.ts';

/** What a provider and its virtual node have to do with each other. */
export interface Pairing {
  readonly node: string;
  readonly reader: ApiReader;
  readonly namespaces: readonly { readonly home: string; readonly tenant: string }[];
}

const COPIES = ['configmaps', 'secrets', 'services'] as const;

/** @throws {ReadError} */
export async function writtenNow(home: ApiReader, pairings: readonly Pairing[]): Promise<Written[]> {
  const found = await Promise.all(
    pairings.flatMap(({ node, reader, namespaces }) => [
      virtualNode(home, node),
      ...namespaces.flatMap(({ home: name, tenant }) => [
        objects(home, name, 'pods', ({ spec }) => (spec as { nodeName?: string }).nodeName === node),
        objects(reader, tenant, 'pods', ({ metadata }) => metadata.labels?.[HOME_UID] !== undefined),
        ...COPIES.map(async (kind) =>
          objects(reader, tenant, kind, ({ metadata }) => metadata.labels?.[MANAGED_BY] !== undefined),
        ),
      ]),
    ]),
  );
  return found.flat();
}

async function objects(
  reader: ApiReader,
  namespace: string,
  kind: string,
  isOurs: (object: RawObject) => boolean,
): Promise<Written[]> {
  const { items } = await reader.list(`/api/v1/namespaces/${namespace}/${kind}`);
  return items.filter(isOurs).map(({ metadata: { name, uid, resourceVersion } }) => ({
    cluster: reader.name,
    name: `${kind} ${namespace}/${name}`,
    mark: `uid ${uid}, resourceVersion ${resourceVersion}`,
  }));
}

/** Its agent reports in its status; all else is written only when something changes. */
async function virtualNode(home: ApiReader, node: string): Promise<Written[]> {
  try {
    const { metadata, spec } = await home.get<RawObject>(`${VIRTUAL_NODES}/${node}`);
    const { uid, labels, annotations, finalizers } = metadata;
    const text = JSON.stringify([uid, labels, annotations, finalizers, spec]);
    const mark = createHash('sha256').update(text).digest('hex').slice(0, 16);
    return [{ cluster: home.name, name: `virtualnodes ${node}`, mark: `content ${mark}` }];
  } catch (error) {
    if (error instanceof ReadError && error.status === 404) return [];
    throw error;
  }
}
