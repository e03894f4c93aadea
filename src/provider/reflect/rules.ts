/** Which objects of an offloaded namespace travel, by the rules of its mapping. Pure. */
import { ANNOTATION_REFLECT } from '../../api/names.ts';
import { DEFAULT_REFLECTION, type ReflectionRule } from '../../api/reflection.ts';
import type { KubeObject, ObjectMeta } from '../../api/wire.ts';

export interface GroupResource {
  /** Empty for the core group. */
  group: string;
  resource: string;
}

/** A rule with its group said. */
export type KindRule = ReflectionRule & GroupResource;

/** `resource` of the core group, `resource.group` of others: as kubectl names kinds. */
export const groupResourceKey = ({ group, resource }: GroupResource): string =>
  group === '' ? resource : `${resource}.${group}`;

/** The first that names the kind, else the default's; of every other kind nothing travels. */
export function ruleFor(
  rules: readonly ReflectionRule[] | undefined,
  { group, resource }: GroupResource,
): KindRule {
  const isOfKind = (rule: ReflectionRule): boolean =>
    (rule.group ?? '') === group && rule.resource === resource;
  const rule = rules?.find(isOfKind) ?? DEFAULT_REFLECTION.find(isOfKind);
  return { policy: 'None', ...rule, group, resource };
}

/** Every kind that is named by the rules or has a default, once, as its rule says. */
export function effectiveRules(rules: readonly ReflectionRule[] | undefined): KindRule[] {
  const kinds = new Map<string, GroupResource>();
  for (const { group = '', resource } of [...DEFAULT_REFLECTION, ...(rules ?? [])]) {
    kinds.set(groupResourceKey({ group, resource }), { group, resource });
  }
  return [...kinds.values()].map((kind) => ruleFor(rules, kind));
}

export const REFLECT_IGNORED = 'ReflectIgnored';
const MAX_SHOWN = 40;

/** What to tell people of an object whose own word is none; undefined: it has none, or it counts. */
export function ignoredWord({
  metadata,
}: KubeObject): { reason: typeof REFLECT_IGNORED; message: string } | undefined {
  const word = metadata.annotations?.[ANNOTATION_REFLECT];
  if (word === undefined || word === 'true' || word === 'false') return undefined;
  const shown = word.length > MAX_SHOWN ? `${word.slice(0, MAX_SHOWN)}...` : word;
  const message = `annotation ${ANNOTATION_REFLECT} is ignored, since it says "${shown}": say "true" or "false", else the rule of the namespace counts`;
  return { reason: REFLECT_IGNORED, message };
}

/**
 * Whether the object is to travel.
 *
 * @param isReferenced whether a pod over there names it; matters under `Referenced` only
 */
export function isSelected(
  { policy }: Pick<ReflectionRule, 'policy'>,
  { metadata }: { metadata: Pick<ObjectMeta, 'annotations'> },
  isReferenced = false,
): boolean {
  if (policy === 'None') return false;
  const word = metadata.annotations?.[ANNOTATION_REFLECT];
  if (word === 'true') return true;
  if (word === 'false') return false;
  return policy === 'All' || (policy === 'Referenced' && isReferenced);
}
