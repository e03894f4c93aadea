import { beforeEach, expect, test } from '@jest/globals';
import { formatAmounts } from '../../../../src/api/amounts.ts';
import type { Pod, PodStatus, ResourceList } from '../../../../src/api/wire.ts';
import { FreedRoom } from '../../../../src/provider/pods/freed-room.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { homePod, RUNNING } from '../support/pods.ts';

let clock: FakeClock;
let room: FreedRoom;
beforeEach(() => {
  clock = new FakeClock();
  room = new FreedRoom(clock);
});

const body = (cpu: string, status: PodStatus = RUNNING): Pod =>
  homePod({ spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }] }, status });
const freed = (): ResourceList => {
  const sums = new Map();
  room.addTo(sums);
  return formatAmounts(sums);
};

test.each<[string, Pod | undefined, Pod | undefined, ResourceList]>([
  ['is gone', undefined, body('2'), { cpu: '2', pods: '1' }],
  ['has finished', body('2', { phase: 'Succeeded' }), body('2'), { cpu: '2', pods: '1' }],
  ['had finished before it was gone', undefined, body('2', { phase: 'Failed' }), {}],
  ['goes on', body('2'), body('2'), {}],
  ['is new', body('2'), undefined, {}],
])('of a body that %s', (_, current, previous, amounts) => {
  room.changed(current, previous);
  expect(freed()).toEqual(amounts);
});

test('all that ended in the last five seconds, and no more', async () => {
  room.changed(undefined, body('1'));
  room.changed(undefined, body('2'));
  await clock.advance(3_000);
  room.changed(undefined, body('500m'));
  expect(freed()).toEqual({ cpu: '3500m', pods: '3' });
  await clock.advance(2_000);
  expect(freed()).toEqual({ cpu: '500m', pods: '1' });
  await clock.advance(3_000);
  expect(freed()).toEqual({});
});
