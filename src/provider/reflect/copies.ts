import { createHash } from 'node:crypto';

import {
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_SOURCE,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
} from '../../api/names.ts';
import { configMaps, pods, type ResourceType, secrets } from '../../api/resources.ts';
import type { ConfigMap, DraftMeta, KubeObject, ObjectMeta, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { present } from '../../lib/fields.ts';
import { podReferences, type ReferenceKind, remoteReferenceName } from '../forge/references.ts';
import { type FieldPath, parsePath, withoutPaths } from './field-paths.ts';
import { ACCOUNT_TOKEN_TYPE, BOOTSTRAP_TOKEN_TYPE } from './travel.ts';

/** What marks a copy as ours, and as the copy of one state of one object. */
interface CopyOptions {
  /** Whose copy it is: a virtual node's, or that of a peering whose virtual nodes share it. */
  owner: string;
  tenantNamespace: string;
  /** Fields that do not travel, as their rule names them. */
  drop?: readonly string[] | undefined;
}

/** How ConfigMaps or Secrets are copied. */
interface ReflectedKind<T extends KubeObject = KubeObject> {
  kind: ReferenceKind;
  type: ResourceType<T>;
  /** The object as it is to be over there: only data, nothing that the home cluster keeps for itself. */
  forge: (source: T, options: CopyOptions) => Omit<T, 'metadata'> & { metadata: DraftMeta };
}

/** Names the state that was copied, and what was left out of it. */
export function sourceVersion(meta: ObjectMeta, drop: readonly string[] = []): string {
  const version = `${meta.uid}/${meta.resourceVersion}`;
  if (drop.length === 0) return version;
  return `${version}/${createHash('sha256').update(JSON.stringify(drop)).digest('hex').slice(0, 16)}`;
}

/** The object without the fields that do not travel. */
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
    ...present({ data: source.data, binaryData: source.binaryData, immutable: source.immutable }),
  }),
};

/** Types that the API server ties to an account or a signer of its own: their data travels as Opaque. */
const TIED_SECRET_TYPES = new Set<string>([ACCOUNT_TOKEN_TYPE, BOOTSTRAP_TOKEN_TYPE]);

const secretKind: ReflectedKind<Secret> = {
  kind: 'Secret',
  type: secrets,
  forge: (source, options) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: copyMeta('Secret', source, options),
    type: source.type === undefined || TIED_SECRET_TYPES.has(source.type) ? 'Opaque' : source.type,
    ...present({ data: source.data, immutable: source.immutable }),
  }),
};

export const REFLECTED_KINDS: Readonly<Record<ReferenceKind, ReflectedKind>> = {
  ConfigMap: configMapKind,
  Secret: secretKind,
};

/** Where a pod begins within this time and finds its copy gone, its own virtual node makes it again. */
const FRESH_MS = 10_000;

/**
 * Which copies pods of all virtual nodes use in a tenant namespace. Virtual nodes of one peering may share the namespace and
 * its copies, while each caches only its own pods. Read at most ten seconds before each decision.
 */
export class CopyUse {
  readonly #foreign: KubeClient;
  readonly #clock: Clock;
  readonly #seen = new Map<string, { atMs: number; used: Promise<ReadonlySet<string>> }>();

  constructor(foreign: KubeClient, clock: Clock) {
    this.#foreign = foreign;
    this.#clock = clock;
  }

  async uses(namespace: string, kind: ReferenceKind, name: string): Promise<boolean> {
    const nowMs = this.#clock.monotonic();
    const seen = this.#seen.get(namespace);
    if (seen !== undefined && nowMs - seen.atMs < FRESH_MS) return (await seen.used).has(`${kind}/${name}`);
    const used = this.#look(namespace);
    this.#seen.set(namespace, { atMs: nowMs, used });
    try {
      return (await used).has(`${kind}/${name}`);
    } catch (error) {
      this.#seen.delete(namespace);
      throw error;
    }
  }

  async #look(namespace: string): Promise<ReadonlySet<string>> {
    const { items } = await this.#foreign.list(pods, { namespace, labelSelector: LABEL_HOME_UID });
    return new Set(items.flatMap((pod) => podReferences(pod).map(({ kind, name }) => `${kind}/${name}`)));
  }
}
