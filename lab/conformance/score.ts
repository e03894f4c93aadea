/** The score of a run: what passes directly on the foreign cluster and fails through the virtual node. Pure. */
import type { Spec } from './specs.ts';

/** What a run found; written as JSON, from which docs/conformance.md is made. */
export interface Result {
  /** Version of the suite and of both clusters. */
  readonly kubernetes: string;
  readonly processes: number;
  readonly cores: number;
  /** What ran directly: all specs, or only what had failed through the virtual node. */
  readonly directly: 'all' | 'failed';
  readonly minutes: { readonly direct: number; readonly through: number; readonly total: number };
  /** By name, in alphabetical order. */
  readonly passed: readonly string[];
  /** Failed through the virtual node only: the score. */
  readonly differences: readonly string[];
  /** Failed directly only. */
  readonly betterThrough: readonly string[];
  readonly failedBoth: readonly string[];
  /** Found on both sides that it does not fit these clusters. */
  readonly skipped: readonly string[];
  /** Failed the first time, and passed when they ran again with fewer beside them. */
  readonly again: readonly string[];
  /** Not run; the reasons are in reasons.ts. */
  readonly leftOut: readonly string[];
}

export type Outcomes = Pick<Result, 'passed' | 'differences' | 'betterThrough' | 'failedBoth' | 'skipped'>;

/** Compares two runs of the chosen specs. A spec that one of them does not know counts as failed there. */
export function compare(
  chosen: readonly string[],
  direct: readonly Spec[],
  through: readonly Spec[],
): Outcomes {
  const states = (specs: readonly Spec[]): ReadonlyMap<string, Spec['state']> =>
    new Map(specs.map(({ name, state }) => [name, state]));
  const [there, here] = [states(direct), states(through)];
  const outcomes = {
    passed: [] as string[],
    differences: [] as string[],
    betterThrough: [] as string[],
    failedBoth: [] as string[],
    skipped: [] as string[],
  };
  for (const name of chosen.toSorted()) {
    const [d, t] = [there.get(name) ?? 'failed', here.get(name) ?? 'failed'];
    outcomes[outcomeOf(d, t)].push(name);
  }
  return outcomes;
}

function outcomeOf(direct: Spec['state'], through: Spec['state']): keyof Outcomes {
  if (through === 'passed') return direct === 'passed' ? 'passed' : 'betterThrough';
  if (direct === 'failed') return 'failedBoth';
  return direct === 'skipped' && through === 'skipped' ? 'skipped' : 'differences';
}

/** The specs of a run with those that ran again in their place. */
export function withSecondRun(first: readonly Spec[], second: readonly Spec[]): Spec[] {
  const again = new Map(second.filter(({ state }) => state !== 'skipped').map((spec) => [spec.name, spec]));
  return first.map((spec) => again.get(spec.name) ?? spec);
}

/** Differences that nobody has explained. */
export function unexplained(
  result: Pick<Result, 'differences'>,
  reasons: ReadonlyMap<string, string>,
): string[] {
  return result.differences.filter((name) => !reasons.has(name));
}
