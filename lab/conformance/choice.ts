/** Which specs are run: all of [Conformance] of these areas, except those that are named with a reason. Pure. */
import { LEFT_OUT } from './reasons.ts';
import type { Spec } from './specs.ts';

/** Areas that are about pods and what runs them. The others are about the API server and the scheduler. */
export const AREAS = [
  'sig-node',
  'sig-apps',
  'sig-network',
  'sig-cli',
  'sig-storage',
  'sig-auth',
  'sig-instrumentation',
] as const;

/** For ginkgo's --label-filter. */
export const LABELS: string = `Conformance && (${AREAS.join(' || ')})`;

export interface Choice {
  readonly chosen: readonly string[];
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
}

export function choose(specs: readonly Spec[]): Choice {
  const names = specs
    .filter(({ labels }) => labels.includes('Conformance') && AREAS.some((area) => labels.includes(area)))
    .map(({ name }) => name)
    .toSorted();
  const reasonOf = (name: string): string | undefined =>
    LEFT_OUT.find(({ specs: pattern }) => pattern.test(name))?.reason;
  return {
    chosen: names.filter((name) => reasonOf(name) === undefined),
    leftOut: names.flatMap((name) => {
      const reason = reasonOf(name);
      return reason === undefined ? [] : [{ name, reason }];
    }),
  };
}

/** The area of a spec, from the first word of its name. */
export const areaOf = (name: string): string => /^\[([\w-]+)\]/.exec(name)?.[1] ?? 'other';
