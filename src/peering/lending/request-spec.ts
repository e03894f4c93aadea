import { FINALIZER_PEERING } from '../../api/names.ts';
import { type PeeringRequest, type PeeringRequestSpec, peeringRequests } from '../../api/peering-request.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';

/** What a peer says in its request. */
export type Wish = Omit<PeeringRequestSpec, 'clusterID' | 'approval'>;

/** All that a peer says in it; `approval` belongs to people. */
const FIELDS = ['clusterName', 'namespaces', 'moreNamespaces', 'tenantNames', 'tether', 'fence'] as const;

/** Undefined where the object says so already. Pure. */
export function specPatchOf({ spec }: PeeringRequest, wish: Wish): object | undefined {
  const differing = FIELDS.filter((field) => !deepEqual(spec[field], wish[field]));
  if (differing.length === 0) return undefined;
  return Object.fromEntries(FIELDS.map((field) => [field, wish[field] ?? null]));
}

export async function createRequest(
  client: KubeClient,
  clusterID: string,
  wish: Wish,
  signal: AbortSignal,
): Promise<void> {
  const { group, version, kind } = peeringRequests;
  const metadata = { name: clusterID, finalizers: [FINALIZER_PEERING] };
  const body = { apiVersion: `${group}/${version}`, kind, metadata, spec: { clusterID, ...wish } };
  // AlreadyExists: made a moment ago, the watch brings it.
  await client.create(peeringRequests, body, { signal }).catch(ignoring('AlreadyExists'));
}

export async function patchSpec(
  client: KubeClient,
  { metadata: { name, uid } }: PeeringRequest,
  spec: object,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { uid }, spec };
  await client.patch(peeringRequests, { name }, { type: 'merge', body }, { signal });
}
