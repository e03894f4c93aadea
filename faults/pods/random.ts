/** What happens in a random run. Pure: all of it comes from the seed. */
import { type Chance, chanceOf, oneOf, seedOf } from '../chance.ts';
import type { Fault, WatchFault } from '../proxy/fault.ts';
import type { Side } from './lane.ts';
import { type Operation, OPERATIONS } from './workload.ts';

/** Something goes wrong for a while. */
export type RandomFault = { readonly sides: readonly Side[] } & (
  | {
      readonly kind: 'requests';
      readonly fault: Fault;
      readonly of: 'all' | 'writes' | 'lists';
      /** Of those requests. */
      readonly percent: number;
    }
  | { readonly kind: 'watches'; readonly fault: WatchFault }
  /** The agent begins anew, and what it reads first is false. */
  | { readonly kind: 'cold'; readonly fault: Fault }
  /** Nothing gets through, and nobody says so. */
  | { readonly kind: 'away' }
  | { readonly kind: 'cut' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'kills' }
);

export interface RandomRun {
  readonly operation: Operation;
  readonly fault: RandomFault;
  readonly lastsMs: number;
}

const SOME_SIDES: readonly [readonly Side[], ...(readonly Side[])[]] = [
  ['home'],
  ['provider'],
  ['home', 'provider'],
];
const TRUE_OR_FALSE_LISTS: readonly [Fault, ...Fault[]] = [
  { kind: 'stale' },
  { kind: 'empty' },
  { kind: 'truncate' },
  { kind: 'status', code: 500 },
];

export function randomRun(seed: number): RandomRun {
  const chance = chanceOf(seedOf(seed, 'choices'));
  return {
    operation: oneOf(chance, OPERATIONS),
    fault: { sides: oneOf(chance, SOME_SIDES), ...faultOf(chance) },
    lastsMs: chance.between(500, 4_000),
  };
}

/** `Omit` of a union would lose what its members have alone. */
type WithoutSides<T> = T extends unknown ? Omit<T, 'sides'> : never;

function faultOf(chance: Chance): WithoutSides<RandomFault> {
  switch (
    oneOf(chance, [
      'requests',
      'requests',
      'requests',
      'watches',
      'watches',
      'cold',
      'away',
      'cut',
      'stop',
      'kills',
    ])
  ) {
    case 'requests':
      return requestsOf(chance);
    case 'watches':
      return { kind: 'watches', fault: watchFaultOf(chance) };
    case 'cold':
      return { kind: 'cold', fault: oneOf(chance, TRUE_OR_FALSE_LISTS) };
    case 'away':
      return { kind: 'away' };
    case 'cut':
      return { kind: 'cut' };
    case 'stop':
      return { kind: 'stop' };
    default:
      return { kind: 'kills' };
  }
}

function requestsOf(chance: Chance): WithoutSides<Extract<RandomFault, { kind: 'requests' }>> {
  const when = oneOf(chance, ['before', 'after'] as const);
  const fault = oneOf<Fault>(chance, [
    { kind: 'delay', ms: chance.between(50, 1_500) },
    { kind: 'cut', when },
    { kind: 'truncate' },
    { kind: 'duplicate' },
    { kind: 'silence' },
    { kind: 'status', code: 500 },
    { kind: 'status', code: 503 },
    { kind: 'status', code: 429, retryAfter: 1 },
    { kind: 'status', code: 410 },
    ...TRUE_OR_FALSE_LISTS,
  ]);
  const isOfLists = fault.kind === 'stale' || fault.kind === 'empty';
  const of = isOfLists
    ? 'lists'
    : fault.kind === 'duplicate'
      ? 'writes'
      : oneOf(chance, ['all', 'writes'] as const);
  return { kind: 'requests', fault, of, percent: chance.between(10, 80) };
}

const watchFaultOf = (chance: Chance): WatchFault =>
  oneOf<WatchFault>(chance, [
    { kind: 'delay', ms: chance.between(50, 1_500) },
    { kind: 'truncate' },
    { kind: 'duplicate' },
    { kind: 'reorder' },
    { kind: 'replay' },
    { kind: 'error', code: 410 },
    { kind: 'error', code: 500 },
    { kind: 'silence' },
  ]);
