/** How objects are kept over there of which this program knows nothing but where they live. Pure. */
import { ANNOTATION_APPLIED } from '../../api/names.ts';
import { defineResource, type ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { MirrorContext, MirroredKind, Wanted } from './mirrored-kind.ts';
import { isReflection, mergedMeta, mirroredMeta, unmanaged } from './mirrored-meta.ts';
import { groupResourceKey, type KindRule } from './rules.ts';

type Fields = Record<string, unknown>;

/** Carried across in another way, or a matter of one cluster alone. */
const CORE_NEVER: ReadonlySet<string> = new Set([
  'bindings',
  'componentstatuses',
  'configmaps',
  'endpoints',
  'events',
  'limitranges',
  'namespaces',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'resourcequotas',
  'secrets',
  'serviceaccounts',
]);
/** Who may do what is said by each cluster itself; the others are lists of what is, kept by a cluster's own parts. */
const GROUPS_NEVER: ReadonlySet<string> = new Set([
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'metrics.k8s.io',
  'rbac.authorization.k8s.io',
  'tributary.dev',
]);

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u;
const GROUP = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/u;

/** Why a rule can have no effect: its names lead nowhere, or the kind never travels. */
export function problemOfKind({ group, resource, version = 'v1' }: KindRule): string | undefined {
  const isPlace = DNS_LABEL.test(resource) && DNS_LABEL.test(version) && (group === '' || GROUP.test(group));
  if (!isPlace) return 'group, resource or version is not one that an API server could have';
  const isNever = group === '' ? CORE_NEVER.has(resource) : GROUPS_NEVER.has(group);
  return isNever || group.endsWith('.tributary.dev') ? 'this kind is never reflected by a rule' : undefined;
}

/**
 * Everything travels but metadata (of which labels and annotations do, without those that speak of their own cluster) and
 * status. Owners and finalizers never do: nobody over there would end them.
 */
export function customKind(rule: KindRule): MirroredKind {
  const type = typeOf(rule);
  return {
    kind: groupResourceKey(rule),
    type,
    ruledBy: rule,
    needsNetwork: false,
    remoteName: (name) => name,
    homeName: (name) => name,
    select: (source) => !isReflection(source) && source.metadata.deletionTimestamp === undefined,
    forge: (source, context) => ({ object: forge(source, type, context) }),
    mustReplace: () => false,
    merge: (copy, wanted) => merge(copy, wanted),
  };
}

/** Its kind is not known: an object of a custom kind says it itself, of others the API server fills it in. */
function typeOf({ group, version = 'v1', resource }: KindRule): ResourceType<KubeObject> {
  return defineResource(`${group}/${version}`, resource, resource, 'Namespaced');
}

function forge(
  source: KubeObject,
  type: ResourceType<KubeObject>,
  context: MirrorContext,
): Wanted<KubeObject> {
  const { apiVersion: _version, kind, metadata, status: _status, ...fields } = source as KubeObject & Fields;
  const annotations = unmanaged(metadata.annotations);
  const applied = JSON.stringify(Object.keys(annotations).sort());
  return {
    ...fields,
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: kind === undefined || kind === type.kind ? '' : kind,
    metadata: mirroredMeta(metadata.name, context, {
      labels: unmanaged(metadata.labels),
      // What we have put there, so that it can go again while what others put there stays.
      annotations: applied === '[]' ? annotations : { ...annotations, [ANNOTATION_APPLIED]: applied },
    }),
  };
}

function merge(copy: KubeObject, wanted: Wanted<KubeObject>): KubeObject {
  const { metadata, ...fields } = wanted;
  const { status } = copy as KubeObject & Fields;
  return {
    ...fields,
    metadata: mergedMeta(copy.metadata, metadata, [ANNOTATION_APPLIED, ...appliedTo(copy)]),
    ...(status !== undefined && { status }),
  };
}

/** The provider could have written anything there. */
function appliedTo({ metadata }: KubeObject): string[] {
  try {
    const keys = JSON.parse(metadata.annotations?.[ANNOTATION_APPLIED] ?? '[]') as unknown;
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
