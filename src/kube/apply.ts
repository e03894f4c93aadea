import * as resources from '../api/resources.ts';
import type { Manifest } from '../api/manifest.ts';
import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { TributaryError, ignoring } from '../lib/errors.ts';
import type { CallOptions, KubeClient, ObjectRef } from './client.ts';

/** Who owns the fields that we apply (server-side apply, KEP-555). */
export const FIELD_MANAGER = 'tributary';

type Named = Manifest & { metadata: { name: string } };

const TYPES: ReadonlyMap<string, ResourceType<KubeObject>> = new Map(
  Object.values(resources)
    .filter((value) => typeof value === 'object')
    .map((type) => [keyOf(type), type]),
);

function keyOf({
  group,
  version,
  kind,
}: Pick<ResourceType<KubeObject>, 'group' | 'version' | 'kind'>): string {
  return `${group === '' ? version : `${group}/${version}`} ${kind}`;
}

/** The resource type of a manifest's kind. A kind that is not listed in api/resources.ts is a bug. */
export function typeOf({
  apiVersion,
  kind,
}: Pick<Manifest, 'apiVersion' | 'kind'>): ResourceType<KubeObject> {
  const type = TYPES.get(`${apiVersion} ${kind}`);
  if (type === undefined) throw new Error(`no resource is known for ${apiVersion} ${kind}`);
  return type;
}

/**
 * Makes each object as its manifest says, in this order. Fields that the manifest does not name stay as they are. If
 * somebody has changed a field of ours, we set it again. A second call changes nothing.
 */
export async function applyManifests(
  client: KubeClient,
  manifests: readonly Manifest[],
  { signal }: Pick<CallOptions, 'signal'> = {},
): Promise<KubeObject[]> {
  const applied: KubeObject[] = [];
  for (const manifest of manifests) {
    const patch = { type: 'apply', body: manifest, fieldManager: FIELD_MANAGER, force: true } as const;
    applied.push(
      await client.patch(typeOf(manifest), checkedRef(manifest), patch, { ...(signal && { signal }) }),
    );
  }
  return applied;
}

/** Deletes the objects of these manifests in reverse order. Objects that do not exist count as deleted. */
export async function deleteManifests(
  client: KubeClient,
  manifests: readonly Pick<Named, 'apiVersion' | 'kind' | 'metadata'>[],
  { signal }: Pick<CallOptions, 'signal'> = {},
): Promise<void> {
  for (const manifest of manifests.toReversed()) {
    const options = { propagationPolicy: 'Background', ...(signal && { signal }) } as const;
    await client.delete(typeOf(manifest), checkedRef(manifest), options).catch(ignoring('NotFound'));
  }
}

function checkedRef({ kind, metadata: { name, namespace } }: Pick<Manifest, 'kind' | 'metadata'>): ObjectRef {
  if (name === undefined) throw new TributaryError('Invalid', `a ${kind} without a name cannot be applied`);
  return { name, ...(namespace !== undefined && { namespace }) };
}
