import { beforeEach, expect, test } from '@jest/globals';
import { addTo, formatAmounts, type Sums } from '../../../../src/api/amounts.ts';
import { podRequests } from '../../../../src/api/pod-requests.ts';
import type { Pod, ResourceList } from '../../../../src/api/wire.ts';
import { Room } from '../../../../src/provider/node/room.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { homePod } from '../support/pods.ts';

const AGREED = { cpu: '10', memory: '20Gi', pods: '20' };
const pod = (cpu?: string): Pod =>
  homePod({
    spec: { containers: [{ name: 'main', ...(cpu !== undefined && { resources: { requests: { cpu } } }) }] },
  });
const many = (count: number, cpu?: string): Sums => {
  const sums: Sums = new Map();
  addTo(sums, podRequests(pod(cpu)), BigInt(count));
  return sums;
};

let clock: FakeClock;
let room: Room;
beforeEach(() => {
  clock = new FakeClock();
  room = new Room(clock);
});

const shown = (): ResourceList => formatAmounts(room.bounds(AGREED));
const refuse = (cpu: string, left: bigint, used: Sums): string[] =>
  room.refused({ pod: pod(cpu), shortages: [{ resource: 'cpu', left }], used });
/** Past the growth that is due, and no other. */
const nextStep = async (): Promise<void> => clock.advance(room.waitMs());

test('all is shown while nothing is refused', () => {
  expect(shown()).toEqual({});
  expect(room.waitMs()).toBe(Infinity);
});

test('what is placed and what is left, of what was refused alone', () => {
  expect(refuse('2', 500n, many(4, '1'))).toEqual(['cpu']);
  expect(shown()).toEqual({ cpu: '4500m' });
  expect(refuse('2', 0n, many(4, '1'))).toEqual([]);
  expect(shown()).toEqual({ cpu: '4' });
});

test('it comes back in steps: one pod, two, four, until all is shown', async () => {
  refuse('1', 0n, many(3, '1'));
  const steps: (string | undefined)[] = [];
  for (let step = 0; step < 4; step++) {
    await nextStep();
    steps.push(shown()['cpu']);
  }
  expect(steps).toEqual(['4', '6', undefined, undefined]);
});

test('a refusal after it came back doubles the pause, up to ten minutes; one before does not', async () => {
  const pauses: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    refuse('1', 0n, many(3, '1'));
    refuse('1', 0n, many(3, '1'));
    pauses.push(room.waitMs() / 1000);
    await nextStep();
    expect(shown()).toEqual({ cpu: '4' });
  }
  expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
});

test('what home does not count is bounded by the number of pods', async () => {
  room.refused({ pod: pod(), shortages: [{ resource: 'cpu', left: 50n }], used: many(7) });
  expect(shown()).toEqual({ pods: '7' });
  await nextStep();
  expect(shown()).toEqual({ pods: '8' });
});

test('a refused pod that finds room proves what is there, and the rest is tried soon', async () => {
  for (let turn = 0; turn < 5; turn++) {
    refuse('1', 0n, many(3, '1'));
    await nextStep();
    shown();
  }
  refuse('1', 0n, many(3, '1'));
  room.admitted(pod('1'), () => many(4, '1'));
  expect(shown()).toEqual({ cpu: '5' });
  expect(room.waitMs()).toBe(5000);
});

test('a larger agreement does not lift the bound, a smaller one does', () => {
  refuse('1', 0n, many(3, '1'));
  expect(formatAmounts(room.bounds({ ...AGREED, cpu: '100' }))).toEqual({ cpu: '3' });
  expect(room.bounds({ ...AGREED, cpu: '2' })).toEqual(new Map());
  expect(shown()).toEqual({});
});

test('it tells of each refusal', () => {
  let told = 0;
  room.onChange(() => told++);
  refuse('1', 0n, new Map());
  room.admitted(pod('1'), () => new Map());
  expect(told).toBe(2);
});
