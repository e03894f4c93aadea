import { expect, test } from '@jest/globals';

import {
  killsOf,
  listed,
  nameOf,
  type Plans,
  planOf,
  randomFrom,
  type RunPlan,
} from '../../../faults/plan.ts';

const kill = (operation: string, write: number): RunPlan => ({
  kind: 'kill',
  operation,
  side: 'home',
  when: 'before',
  write,
});

test.each<[string, RunPlan]>([
  ['kill:create:home:before:3', kill('create', 3)],
  [
    'kill:peer-again:milan:after:12',
    { kind: 'kill', operation: 'peer-again', side: 'milan', when: 'after', write: 12 },
  ],
  ['random:4711', { kind: 'random', seed: 4711 }],
  ['random:0', { kind: 'random', seed: 0 }],
])('%s there and back', (name, plan) => {
  expect(planOf(name)).toEqual(plan);
  expect(nameOf(plan)).toBe(name);
});

test.each([
  '',
  'kill',
  'random',
  'random:',
  'random:-1',
  'random:1.5',
  'random:1:2',
  'kill:create:home:before',
  'kill:create:home:before:0',
  'kill:create:home:before:03',
  'kill:create:home:before:-1',
  'kill:create:home:during:1',
  'kill::home:before:1',
  'kill:create:home:before:1:2',
  'stop:create:home:before:1',
  ' random:1',
])('"%s" is no run', (name) => {
  expect(planOf(name)).toBeUndefined();
});

/** The names of all plans, when those are carried out that `isReached` says; at most a hundred. */
function names(plans: Plans, isReached: (plan: RunPlan) => boolean): string[] {
  const all: string[] = [];
  for (let next = plans.next(true); next.done !== true && all.length < 100;) {
    all.push(nameOf(next.value).replace(/^kill:|:home:before/g, ''));
    next = plans.next(isReached(next.value));
  }
  return all;
}

/** Each operation makes so many writes. */
const making =
  (writes: Readonly<Record<string, number>>) =>
  (plan: RunPlan): boolean =>
    plan.kind === 'kill' && plan.write <= (writes[plan.operation] ?? 0);

const HOME = { side: 'home', when: 'before' } as const;

test('each operation is killed at each write, until it was not reached twice', () => {
  const plans = killsOf({ ...HOME, cycle: ['create', 'delete'] });
  const all = ['create:1', 'delete:1', 'create:2', 'delete:2', 'create:3', 'delete:3', 'create:4'];
  expect(names(plans, making({ create: 2, delete: 1 }))).toEqual(all);
});

test('one miss alone is no end', () => {
  const missed = new Set([2, 4, 5]);
  const plans = killsOf({ ...HOME, cycle: ['create'] });
  const isReached = (plan: RunPlan): boolean => plan.kind === 'kill' && !missed.has(plan.write);
  expect(names(plans, isReached)).toEqual(['create:1', 'create:2', 'create:3', 'create:4', 'create:5']);
});

test('first and stride', () => {
  const plans = killsOf({ ...HOME, cycle: ['create'], first: 3, stride: 5 });
  const all = ['create:3', 'create:8', 'create:13', 'create:18', 'create:23'];
  expect(names(plans, making({ create: 14 }))).toEqual(all);
});

test('chained: all of the cycle is run, as long as any of it has writes left', () => {
  const plans = killsOf({ ...HOME, cycle: ['peer', 'part'], isChained: true });
  const all = ['peer:1', 'part:1', 'peer:2', 'part:2', 'peer:3', 'part:3', 'peer:4', 'part:4'];
  expect(names(plans, making({ peer: 2, part: 0 }))).toEqual(all);
});

test('no operation, no plan', () => {
  expect(names(killsOf({ ...HOME, cycle: [] }), () => true)).toEqual([]);
});

test('listed: these and no others', () => {
  expect(names(listed([kill('create', 2), { kind: 'random', seed: 7 }]), () => false)).toEqual([
    'create:2',
    'random:7',
  ]);
});

test('random: a seed for each, without end; the same ones from the same seed, and none of them from its neighbour', () => {
  const all = names(randomFrom(41), () => true);
  expect(new Set(all).size).toBe(100);
  expect(names(randomFrom(41), () => true)).toEqual(all);
  expect(new Set([...all, ...names(randomFrom(42), () => true)]).size).toBe(200);
  for (const name of all) expect(planOf(name)).toMatchObject({ kind: 'random' });
});
