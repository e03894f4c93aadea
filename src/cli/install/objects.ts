/** Reading and removing objects of any kind, also of kinds that an API server does not have (any more). */
import type { Manifest } from '../../api/manifest.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import { typeOf } from '../../kube/apply.ts';
import type { ListOptions } from '../../kube/client.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { type InstallSession, waitFor } from './waiting.ts';

/** An API server that does not know a kind answers in plain text. */
export function ifMissing(error: unknown): undefined {
  if (hasCode(error, 'NotFound') || (error as { status?: number }).status === 404) return undefined;
  throw error;
}

/** None where the kind is not there. */
export async function listed<T extends KubeObject>(
  { client, signal }: InstallSession,
  type: ResourceType<T>,
  options: ListOptions = {},
): Promise<T[]> {
  const list = await client.list(type, { ...options, signal }).catch(ifMissing);
  return list?.items ?? [];
}

export async function found<T extends KubeObject>(
  { client, signal }: InstallSession,
  type: ResourceType<T>,
  ref: { namespace?: string; name: string },
): Promise<T | undefined> {
  return client.get(type, ref, { signal }).catch(ifMissing);
}

export const nameOf = ({ kind, metadata }: Pick<Manifest, 'kind' | 'metadata'>): string =>
  `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name ?? ''}`;

const refOf = ({ namespace, name }: Manifest['metadata']): { namespace?: string; name: string } => ({
  name: name ?? '',
  ...(namespace !== undefined && { namespace }),
});

/** Deletes one object; whether it was there. */
export async function remove(
  { client, signal }: InstallSession,
  manifest: Pick<Manifest, 'apiVersion' | 'kind' | 'metadata'>,
  propagationPolicy: 'Background' | 'Foreground' = 'Background',
): Promise<boolean> {
  const gone = await client
    .delete(typeOf(manifest), refOf(manifest.metadata), { propagationPolicy, signal })
    .then(() => true)
    .catch(ifMissing);
  return gone === true;
}

/** Asks for the deletion of all objects of a kind; how many there were. */
export async function removeAll(
  session: InstallSession,
  type: ResourceType<KubeObject>,
  options: ListOptions = {},
): Promise<number> {
  const items = await listed(session, type, options);
  for (const { metadata } of items) {
    const { uid } = metadata;
    const more = { signal: session.signal, ...(uid !== undefined && { uid }) };
    await session.client.delete(type, refOf(metadata), more).catch(ignoring('NotFound', 'Conflict'));
  }
  return items.length;
}

/** Removes the finalizers of ours from all objects of a kind: nobody is there to act on them. Names those that had some. */
export async function release(
  session: InstallSession,
  type: ResourceType<KubeObject>,
  prefix: string,
): Promise<string[]> {
  const released: string[] = [];
  for (const { metadata } of await listed(session, type)) {
    const { finalizers = [], resourceVersion } = metadata;
    const others = finalizers.filter((one) => !one.startsWith(prefix));
    if (others.length === finalizers.length) continue;
    const body = { metadata: { resourceVersion, finalizers: others } };
    await session.client
      .patch(type, refOf(metadata), { type: 'merge', body }, { signal: session.signal })
      .catch(ignoring('NotFound', 'Conflict'));
    released.push(`${type.kind} ${metadata.name}`);
  }
  return released;
}

/** Waits until no object of these kinds is left; returns what is. */
export async function untilNone(
  session: InstallSession,
  types: readonly ResourceType<KubeObject>[],
  wait: { what: string; timeoutMs: number; options?: ListOptions },
): Promise<string> {
  const look = async (): Promise<string> => {
    const left: string[] = [];
    for (const type of types) {
      const items = await listed(session, type, wait.options);
      left.push(...items.map(({ metadata }) => nameOf({ kind: type.kind, metadata })));
    }
    return left.length === 0 ? '' : `${left.length} left: ${left.slice(0, 3).join(', ')}`;
  };
  return waitFor(session, { ...wait, look });
}
