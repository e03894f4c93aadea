import { ANNOTATION_HOME_NAMESPACE, ANNOTATION_SOURCE, LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ResourceType } from '../../api/resources.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import type { ConfigMap, DraftMeta, KubeObject, ObjectMeta, Secret } from '../../api/wire.ts';
import type { ReferenceKind } from '../forge/references.ts';
import { remoteReferenceName } from '../forge/references.ts';

/** What a copy must bear to be known as ours, and as the copy of which state of which object. */
export interface CopyOptions {
  /** Whose it is: a virtual node, or the peering whose virtual nodes share it. */
  owner: string;
  tenantNamespace: string;
}

/** How objects of one kind travel. */
export interface ReflectedKind<T extends KubeObject = KubeObject> {
  kind: ReferenceKind;
  type: ResourceType<T>;
  /** The object as it is to be over there: data only, none of the home cluster's bookkeeping. */
  forge: (source: T, options: CopyOptions) => Omit<T, 'metadata'> & { metadata: DraftMeta };
}

export const sourceVersion = (meta: ObjectMeta): string => `${meta.uid}/${meta.resourceVersion}`;

function copyMeta(kind: ReferenceKind, source: KubeObject, options: CopyOptions): DraftMeta {
  return {
    name: remoteReferenceName(kind, source.metadata.name),
    namespace: options.tenantNamespace,
    labels: { [LABEL_MANAGED_BY]: options.owner },
    annotations: {
      [ANNOTATION_SOURCE]: sourceVersion(source.metadata),
      [ANNOTATION_HOME_NAMESPACE]: source.metadata.namespace ?? '',
    },
  };
}

const configMapKind: ReflectedKind<ConfigMap> = {
  kind: 'ConfigMap',
  type: configMaps,
  forge: (source, options) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: copyMeta('ConfigMap', source, options),
    ...(source.data === undefined ? {} : { data: source.data }),
    ...(source.binaryData === undefined ? {} : { binaryData: source.binaryData }),
    ...(source.immutable === undefined ? {} : { immutable: source.immutable }),
  }),
};

/** Types whose objects the API server ties to an account or a signer of its own: their data travels as Opaque. */
const TIED_SECRET_TYPES = new Set(['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token']);

const secretKind: ReflectedKind<Secret> = {
  kind: 'Secret',
  type: secrets,
  forge: (source, options) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: copyMeta('Secret', source, options),
    type: source.type === undefined || TIED_SECRET_TYPES.has(source.type) ? 'Opaque' : source.type,
    ...(source.data === undefined ? {} : { data: source.data }),
    ...(source.immutable === undefined ? {} : { immutable: source.immutable }),
  }),
};

export const REFLECTED_KINDS: Readonly<Record<ReferenceKind, ReflectedKind>> = {
  ConfigMap: configMapKind,
  Secret: secretKind,
};
