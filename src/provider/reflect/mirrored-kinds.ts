import { ANNOTATION_APPLIED } from '../../api/names.ts';
import type { ReflectionRule } from '../../api/reflection.ts';
import { namespaced, type ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { Fields } from '../../lib/fields.ts';
import { type FieldPath, parsePath } from './field-paths.ts';
import { endpointSliceKind } from './endpoint-slices.ts';
import { ingressKind } from './ingresses.ts';
import {
  mayBeCopied,
  mergedMeta,
  type MirrorContext,
  type MirroredKind,
  type MirroredKindName,
  mirroredMeta,
  SAME_NAME,
  unmanaged,
  type Wanted,
} from './mirrored-kind.ts';
import { CORE_UNMIRRORED, misnamed } from './misnamed-kinds.ts';
import { networkPolicyKind } from './network-policies.ts';
import { effectiveRules, groupResourceKey, type KindRule } from './rules.ts';
import { serviceKind } from './services.ts';

/** Which kinds the rules of a mapping mirror, and how a kind is mirrored that this program does not know. Pure. */

/** A kind with the rule that holds for it. */
export interface RuledKind {
  kind: MirroredKind;
  rule: KindRule;
  drop: readonly FieldPath[];
}

/** A rule that can have no effect, and why. */
export interface BadRule {
  kind: MirroredKindName;
  problem: string;
  /** None of the kind travels; otherwise it does as without the rule. */
  staysHome: boolean;
}

const general = <T extends KubeObject, Copy extends KubeObject>(kind: MirroredKind<T, Copy>): MirroredKind =>
  kind as unknown as MirroredKind;

/** Kinds that this program knows; EndpointSlices come after Services, which they follow. */
const KNOWN: readonly MirroredKind[] = [
  general(serviceKind),
  general(endpointSliceKind),
  general(ingressKind),
  general(networkPolicyKind),
];
/** The Reflector's kinds: they also travel where pods name them. */
const REFLECTORS: ReadonlySet<string> = new Set(['configmaps', 'secrets']);

/** Every kind that a rule or a default names, including kinds of which nothing travels (policy None). */
export function ruledKinds(rules: readonly ReflectionRule[] | undefined): {
  kinds: RuledKind[];
  bad: BadRule[];
} {
  const kinds: RuledKind[] = [];
  const bad: BadRule[] = [];
  for (const rule of effectiveRules(rules)) {
    const key = groupResourceKey(rule);
    if (REFLECTORS.has(key)) continue;
    const known = KNOWN.filter(({ ruledBy }) => groupResourceKey(ruledBy) === key);
    const wrong = known.length > 0 ? undefined : wrongKind(rule);
    // A kind that may never travel is not over there.
    if (wrong !== undefined) {
      bad.push({ kind: key, ...wrong });
      continue;
    }
    const isWhole = known.some(({ isWhole: whole }) => whole === true);
    const paths = isWhole ? [] : (rule.drop ?? []).map((path) => ({ path, parsed: parsePath(path) }));
    const problems = [
      ...(isWhole && rule.drop !== undefined ? ['this kind travels as a whole: `drop` has no effect'] : []),
      ...paths.flatMap(({ path, parsed }) =>
        'problem' in parsed ? [`"${path.slice(0, 100)}" is no path of a field: ${parsed.problem}`] : [],
      ),
    ];
    // With a path that cannot be read, everything stays home.
    if (problems[0] !== undefined) bad.push({ kind: key, problem: problems[0], staysHome: !isWhole });
    const drop = paths.flatMap(({ parsed }) => ('problem' in parsed ? [] : [parsed]));
    const inForce: KindRule = problems.length > 0 && !isWhole ? { ...rule, policy: 'None' } : rule;
    const found = known.length > 0 ? known : [customKind(rule)];
    kinds.push(...found.map((kind) => ({ kind, rule: inForce, drop })));
  }
  return { kinds, bad };
}

function wrongKind(rule: KindRule): Omit<BadRule, 'kind'> | undefined {
  const problem = problemOfKind(rule);
  if (problem !== undefined) return { problem, staysHome: true };
  const wrongName = misnamed(rule);
  return wrongName === undefined ? undefined : { problem: wrongName, staysHome: false };
}

/** Kinds that are carried across in another way, or that concern one cluster alone. */
const CORE_NEVER: ReadonlySet<string> = new Set([...CORE_UNMIRRORED, 'configmaps', 'secrets']);
/** Each cluster says itself who may do what; the other groups hold facts that a cluster's own parts record. */
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

/** Why a rule can have no effect: no API server can have such a kind, or the kind never travels. */
export function problemOfKind({ group, resource, version = 'v1' }: KindRule): string | undefined {
  const isPlace = DNS_LABEL.test(resource) && DNS_LABEL.test(version) && (group === '' || GROUP.test(group));
  if (!isPlace) return 'group, resource or version is not one that an API server could have';
  const isNever = group === '' ? CORE_NEVER.has(resource) : GROUPS_NEVER.has(group);
  return isNever || group.endsWith('.tributary.dev') ? 'this kind is never reflected by a rule' : undefined;
}

/**
 * A kind of which this program knows only where its objects live. Everything travels except status and metadata; of metadata,
 * labels and annotations travel, without those that describe the cluster they were set in. Owners and finalizers never do:
 * nobody over there would remove them.
 */
export function customKind(rule: KindRule): MirroredKind {
  const type = typeOf(rule);
  return {
    kind: groupResourceKey(rule),
    type,
    ruledBy: rule,
    needsNetwork: false,
    ...SAME_NAME,
    select: mayBeCopied,
    forge: (source, context) => ({ object: forge(source, type, context) }),
    mustReplace: () => false,
    merge,
  };
}

/** The `kind` is not known: objects of custom resources bear it, and for others the API server fills it in. */
function typeOf({ group, version = 'v1', resource }: KindRule): ResourceType<KubeObject> {
  return namespaced(`${group}/${version}`, resource, resource);
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
      // Records which annotations are ours, so that they can be removed while those of others stay.
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

/** The foreign cluster may have written anything there. */
function appliedTo({ metadata }: KubeObject): string[] {
  try {
    const keys = JSON.parse(metadata.annotations?.[ANNOTATION_APPLIED] ?? '[]') as unknown;
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
