import type { Condition } from './wire.ts';

/** A condition as it should be; `lastTransitionTime` is worked out. */
export interface WantedCondition<Type extends string = string, Reason extends string = string> {
  type: Type;
  status: 'True' | 'False' | 'Unknown';
  reason: Reason;
  message: string;
  observedGeneration?: number;
}

/** The Kubernetes API server takes no longer message in `metav1.Condition`. */
const MAX_MESSAGE = 32_768;

/**
 * The conditions with this one set, in their order. `lastTransitionTime` moves only when the status does; where
 * nothing differs, the same list is returned, so that `===` tells whether to write.
 */
export function withCondition(
  conditions: readonly Condition[],
  wanted: WantedCondition,
  now: number,
): readonly Condition[] {
  const at = conditions.findIndex(({ type }) => type === wanted.type);
  const before = conditions[at];
  const message = wanted.message.slice(0, MAX_MESSAGE);
  const { status, reason, observedGeneration } = wanted;
  if (
    before?.status === status &&
    before.reason === reason &&
    before.message === message &&
    before.observedGeneration === observedGeneration
  ) {
    return conditions;
  }
  const moved = before?.status !== status;
  const lastTransitionTime = moved ? timestamp(now) : before.lastTransitionTime;
  const condition: Condition = { ...wanted, message, lastTransitionTime };
  return before === undefined ? [...conditions, condition] : conditions.with(at, condition);
}

export function withoutCondition(conditions: readonly Condition[], type: string): readonly Condition[] {
  return conditions.some((condition) => condition.type === type)
    ? conditions.filter((condition) => condition.type !== type)
    : conditions;
}

interface Conditioned {
  status?: { conditions?: readonly Condition[] } | undefined;
}

export const conditionOf = (object: Conditioned | undefined, wanted: string): Condition | undefined =>
  object?.status?.conditions?.find(({ type }) => type === wanted);

export function isConditionTrue(
  conditions: readonly Pick<Condition, 'type' | 'status'>[] | undefined,
  type: string,
): boolean {
  return conditions?.find((condition) => condition.type === type)?.status === 'True';
}

/** `metav1.Time`, which has whole seconds: with more, a written object would differ from the one read back. */
export function timestamp(now: number): string {
  const second = Math.floor(now / 1000);
  // Whoever looks at thousands of objects asks thousands of times in a second.
  if (second !== latest.second)
    latest = { second, text: new Date(now).toISOString().replace(/\.\d+Z$/, 'Z') };
  return latest.text;
}

let latest = { second: Number.NaN, text: '' };
