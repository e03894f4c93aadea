/** Which runs there are. Pure: a run is said by its name, so that it can be repeated. */
import { seedOf } from './chance.ts';

/** Somebody does something, and a program is killed at one of its writes meanwhile. */
export interface KillPlan {
  readonly kind: 'kill';
  readonly operation: string;
  /** Whose API server is written to. */
  readonly side: string;
  /** Whether the API server has carried the write out. */
  readonly when: 'before' | 'after';
  /** The program is killed at this write to that side; from 1. */
  readonly write: number;
}

/** All that happens comes from the seed. */
export interface RandomPlan {
  readonly kind: 'random';
  readonly seed: number;
}

export type RunPlan = KillPlan | RandomPlan;

/** `kill:create:home:before:3`, `random:4711`. */
export const nameOf = (plan: RunPlan): string =>
  plan.kind === 'kill'
    ? ['kill', plan.operation, plan.side, plan.when, plan.write].join(':')
    : `random:${plan.seed}`;

/** The run of that name; undefined when it is none. Whether there is such an operation and side, the bed knows. */
export function planOf(name: string): RunPlan | undefined {
  const [kind, ...rest] = name.split(':');
  if (kind === 'random' && rest.length === 1 && /^\d+$/.test(rest[0] ?? ''))
    return { kind, seed: Number(rest[0]) };
  const [operation = '', side = '', when, write = ''] = rest;
  if (kind !== 'kill' || rest.length !== 4 || operation === '' || !/^[1-9]\d*$/.test(write)) return undefined;
  if (when !== 'before' && when !== 'after') return undefined;
  return { kind, operation, side, when, write: Number(write) };
}

/** Takes whether the plan before was carried out: false when the write to kill at was never made. */
export type Plans = Generator<RunPlan, void, boolean>;

export function* listed(plans: readonly RunPlan[]): Plans {
  for (const plan of plans) yield plan;
}

/** Each has a seed of its own, which is its name: it is repeated without that of the suite. */
export function* randomFrom(seed: number): Plans {
  for (let number = 0; ; number++) yield { kind: 'random', seed: seedOf(seed, 'random', number) };
}

/** An operation ends when it was not killed at so many numbers one after another: how many writes there are varies a little. */
const MISSES = 2;

/**
 * Each operation is killed at its first write, then each at a later one, until none has so many.
 *
 * @param given.cycle in an order in which each finds what it needs; all of it is run each time if `isChained`
 * @param given.first the number of the first write
 * @param given.stride how many writes further each time
 */
export function* killsOf(given: {
  cycle: readonly string[];
  side: string;
  when: KillPlan['when'];
  first?: number;
  stride?: number;
  isChained?: boolean;
}): Plans {
  const { cycle, side, when, first = 1, stride = 1, isChained = false } = given;
  const misses = new Map<string, number>();
  const isLeft = (operation: string): boolean => (misses.get(operation) ?? 0) < MISSES;
  for (let write = first; cycle.some(isLeft); write += stride) {
    for (const operation of isChained ? cycle : cycle.filter(isLeft)) {
      const reached = yield { kind: 'kill', operation, side, when, write };
      misses.set(operation, reached ? 0 : (misses.get(operation) ?? 0) + 1);
    }
  }
}
