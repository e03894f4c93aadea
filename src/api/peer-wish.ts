/** What a person who wants to peer writes, on the command line or on the dashboard: a ForeignCluster, and a join token in a Secret. */
import {
  type Direction,
  DIRECTIONS,
  disabledIn,
  type ForeignCluster,
  type ForeignClusterSpec,
  peerTokenSecretName,
} from './foreign-cluster.ts';
import { APP_NAME, LABEL_APP_NAME, SYSTEM_NAMESPACE } from './manifest.ts';
import { ANNOTATION_FORCE } from './names.ts';
import type { DraftMeta, Secret } from './wire.ts';
import { present } from '../lib/fields.ts';

const TOKEN_KEY = 'token';

type Said = Pick<ForeignClusterSpec, 'clusterID' | 'endpoint' | 'outgoing' | 'incoming' | 'namespaces'>;

export type PeerWish = { [Field in keyof Said]?: Said[Field] | undefined } & { token?: string | undefined };

/** `name`: of the ForeignCluster. What is undefined is not said. */
export const peerSpec = (
  name: string,
  { clusterID, endpoint, outgoing, incoming, namespaces, token }: PeerWish,
): ForeignClusterSpec => ({
  ...present({ clusterID, endpoint, outgoing, incoming, namespaces }),
  ...(token !== undefined && { joinTokenSecretRef: peerTokenRef(name) }),
});

export const peerTokenRef = (cluster: string): NonNullable<ForeignClusterSpec['joinTokenSecretRef']> => ({
  name: peerTokenSecretName(cluster),
  key: TOKEN_KEY,
});

/** It comes before the ForeignCluster: nobody may see a reference to a Secret that does not exist. */
export const forgePeerToken = (
  cluster: string,
  token: string,
): Pick<Secret, 'data' | 'type'> & { metadata: DraftMeta & { name: string } } => ({
  metadata: {
    namespace: SYSTEM_NAMESPACE,
    name: peerTokenSecretName(cluster),
    labels: { [LABEL_APP_NAME]: APP_NAME },
  },
  type: 'Opaque',
  data: { [TOKEN_KEY]: Buffer.from(token).toString('base64') },
});

/** Part of a patch of that Secret: it goes when the ForeignCluster does. */
export const ownedBy = ({ metadata: { name, uid } }: ForeignCluster): object => ({
  metadata: {
    ownerReferences: [{ apiVersion: 'tributary.dev/v1alpha1', kind: 'ForeignCluster', name, uid }],
  },
});

/** Part of a patch of a ForeignCluster: the next end waits again for the other cluster. */
export const unforced = ({ metadata: { annotations = {} } }: ForeignCluster): object =>
  Object.hasOwn(annotations, ANNOTATION_FORCE)
    ? { metadata: { annotations: { [ANNOTATION_FORCE]: null } } }
    : {};

/** A patch that lifts what `tributary unpeer` has left: not to peer, in these directions. Undefined: nobody has said it. */
export function permission(
  cluster: ForeignCluster,
  directions: readonly Direction[] = DIRECTIONS,
): { spec: Partial<Record<Direction, null>> } | undefined {
  const lifted = disabledIn(cluster).filter((direction) => directions.includes(direction));
  if (lifted.length === 0) return undefined;
  return { spec: Object.fromEntries(lifted.map((direction) => [direction, null])), ...unforced(cluster) };
}
