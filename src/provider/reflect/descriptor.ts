import { createHash } from 'node:crypto';
import { ANNOTATION_HOME_NAMESPACE, ANNOTATION_SOURCE, LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ResourceType } from '../../api/resources.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import type { ConfigMap, DraftMeta, KubeObject, ObjectMeta, Secret } from '../../api/wire.ts';
import type { ReferenceKind } from '../forge/references.ts';
import { remoteReferenceName } from '../forge/references.ts';
import { type FieldPath, parsePath, withoutPaths } from './custom-paths.ts';
import { ACCOUNT_TOKEN_TYPE, BOOTSTRAP_TOKEN_TYPE } from './travel.ts';

/** What a copy must bear to be known as ours, and as the copy of which state of which object. */
export interface CopyOptions {
  /** Whose it is: a virtual node, or the peering whose virtual nodes share it. */
  owner: string;
  tenantNamespace: string;
  /** Fields that do not travel, as their rule names them. */
  drop?: readonly string[] | undefined;
}

/** How objects of one kind travel. */
export interface ReflectedKind<T extends KubeObject = KubeObject> {
  kind: ReferenceKind;
  type: ResourceType<T>;
  /** The object as it is to be over there: data only, none of the home cluster's bookkeeping. */
  forge: (source: T, options: CopyOptions) => Omit<T, 'metadata'> & { metadata: DraftMeta };
}

/** The state that a copy is of, and what was left out of it. */
export function sourceVersion(meta: ObjectMeta, drop: readonly string[] = []): string {
  const version = `${meta.uid}/${meta.resourceVersion}`;
  if (drop.length === 0) return version;
  return `${version}/${createHash('sha256').update(JSON.stringify(drop)).digest('hex').slice(0, 16)}`;
}

/** What is left of the object to travel. */
export const withoutDropped = <T>(source: T, drop: readonly string[] = []): T =>
  withoutPaths(source, drop.map(parsePath).filter(isFieldPath));

const isFieldPath = (path: ReturnType<typeof parsePath>): path is FieldPath => Array.isArray(path);

function copyMeta(kind: ReferenceKind, source: KubeObject, options: CopyOptions): DraftMeta {
  return {
    name: remoteReferenceName(kind, source.metadata.name),
    namespace: options.tenantNamespace,
    labels: { [LABEL_MANAGED_BY]: options.owner },
    annotations: {
      [ANNOTATION_SOURCE]: sourceVersion(source.metadata, options.drop),
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
const TIED_SECRET_TYPES = new Set<string>([ACCOUNT_TOKEN_TYPE, BOOTSTRAP_TOKEN_TYPE]);

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
