/** Reads our objects, to see whether somebody writes them any more, and whether they are what home has (I7). */
import { createHash } from 'node:crypto';

import { type ApiReader, ReadError } from './api-reader.ts';
import type { Copy } from './checks/copies.ts';
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
    const mark = `content ${hashOf([uid, labels, annotations, finalizers, spec])}`;
    return [{ cluster: home.name, name: `virtualnodes ${node}`, mark }];
  } catch (error) {
    if (error instanceof ReadError && error.status === 404) return [];
    throw error;
  }
}

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/**
 * ConfigMaps and Secrets that stand on both sides under one name, the remote one with our label.
 *
 * @throws {ReadError}
 */
export async function copiesNow(home: ApiReader, pairings: readonly Pairing[]): Promise<Copy[]> {
  const found = await Promise.all(
    pairings.flatMap(({ reader, namespaces }) =>
      namespaces.flatMap((pair) =>
        (['configmaps', 'secrets'] as const).map(async (kind): Promise<Copy[]> => {
          const path = (namespace: string): string => `/api/v1/namespaces/${namespace}/${kind}`;
          const [here, there] = await Promise.all([
            home.list(path(pair.home)),
            reader.list(path(pair.tenant)),
          ]);
          const originals = new Map(here.items.map((one) => [one.metadata.name, one]));
          return there.items.flatMap((copy): Copy[] => {
            const original = originals.get(copy.metadata.name);
            if (original === undefined || copy.metadata.labels?.[MANAGED_BY] === undefined) return [];
            return [
              {
                cluster: reader.name,
                name: `${kind} ${pair.tenant}/${copy.metadata.name}`,
                homeName: `${pair.home}/${copy.metadata.name}`,
                home: dataOf(original),
                remote: dataOf(copy),
                isImmutable: copy['immutable'] === true,
              },
            ];
          });
        }),
      ),
    ),
  );
  return found.flat();
}

/** The API server prints keys in their order. */
const dataOf = ({ data, binaryData }: RawObject): string => hashOf([data ?? {}, binaryData ?? {}]);
