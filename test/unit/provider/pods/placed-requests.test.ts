import { beforeEach, expect, test } from '@jest/globals';
import { formatAmounts } from '../../../../src/api/amounts.ts';
import type { Pod, ResourceList } from '../../../../src/api/wire.ts';
import { PlacedRequests } from '../../../../src/provider/pods/placed-requests.ts';
import { homePod } from '../support/pods.ts';

const pod = (uid: string): Pod =>
  homePod({
    metadata: { ...homePod().metadata, uid },
    spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] },
  });

/** A clock by which looking at a pod takes a millisecond. */
let nowMs: number;
let looks: number;
let placed: Pod[];
let requests: PlacedRequests;

beforeEach(() => {
  [nowMs, looks, placed] = [0, 0, []];
  const clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    after: () => () => undefined,
    sleep: async () => Promise.resolve(),
  };
  const list = function* (): Iterable<Pod> {
    for (const one of placed) {
      nowMs += 1;
      looks += 1;
      yield one;
    }
  };
  requests = new PlacedRequests(list, clock);
});

const beside = (uid: string): ResourceList => formatAmounts(requests.beside(pod(uid)));

test('all but the pod itself, whether it is counted or not', () => {
  placed = [pod('a'), pod('b'), pod('c')];
  expect(beside('b')).toEqual({ cpu: '2', pods: '2' });
  expect(beside('x')).toEqual({ cpu: '3', pods: '3' });
});

test('what has changed shows after ten times what the look took', () => {
  placed = [pod('a'), pod('b')];
  expect(beside('x')).toEqual({ cpu: '2', pods: '2' });
  placed = [pod('a'), pod('b'), pod('c')];
  nowMs = 2 + 19;
  expect(beside('x')).toEqual({ cpu: '2', pods: '2' });
  nowMs = 2 + 20;
  expect(beside('x')).toEqual({ cpu: '3', pods: '3' });
});

test('thousands of refusals, one each millisecond, look at the pods for a tenth of the time', () => {
  placed = Array.from({ length: 100 }, (_none, index) => pod(`p${index}`));
  for (let refusal = 0; refusal < 10_000; refusal++) {
    requests.beside(pod('x'));
    nowMs += 1;
  }
  expect(looks / nowMs).toBeLessThan(0.1);
});
