/** Which kinds are mirrored by the rules of a mapping. Pure. */
import type { ReflectionRule } from '../../api/reflection.ts';
import type { KubeObject } from '../../api/wire.ts';
import { customKind, problemOfKind } from './custom-kind.ts';
import { parsePath, type FieldPath } from './custom-paths.ts';
import { endpointSliceKind } from './endpoint-slices.ts';
import { ingressKind } from './ingresses.ts';
import type { MirroredKind, MirroredKindName } from './mirrored-kind.ts';
import { effectiveRules, groupResourceKey, type KindRule } from './rules.ts';
import { serviceKind } from './services.ts';

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
}

const general = <T extends KubeObject>(kind: MirroredKind<T>): MirroredKind =>
  kind as unknown as MirroredKind;

/** Those that this program knows; slices after Services, which they follow. */
const KNOWN: readonly MirroredKind[] = [
  general(serviceKind),
  general(endpointSliceKind),
  general(ingressKind),
];
/** The Reflector's: they travel where pods name them, too. */
const REFLECTORS: ReadonlySet<string> = new Set(['configmaps', 'secrets']);

/** Every kind that a rule or a default names, those included of which nothing is to travel (policy None). */
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
    const paths = (rule.drop ?? []).map((path) => ({ path, parsed: parsePath(path) }));
    const problem = known.length > 0 ? undefined : problemOfKind(rule);
    const problems = [
      ...(problem === undefined ? [] : [problem]),
      ...paths.flatMap(({ path, parsed }) =>
        'problem' in parsed ? [`"${path.slice(0, 100)}" is no path of a field: ${parsed.problem}`] : [],
      ),
    ];
    if (problems[0] !== undefined) bad.push({ kind: key, problem: problems[0] });
    // Of a kind that may never travel nothing is over there; a path that is none lets everything stay home.
    if (problem !== undefined) continue;
    const drop = paths.flatMap(({ parsed }) => ('problem' in parsed ? [] : [parsed]));
    const inForce: KindRule = problems.length > 0 ? { ...rule, policy: 'None' } : rule;
    const found = known.length > 0 ? known : [customKind(rule)];
    kinds.push(...found.map((kind) => ({ kind, rule: inForce, drop })));
  }
  return { kinds, bad };
}
