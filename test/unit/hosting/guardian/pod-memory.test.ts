import { expect, test } from '@jest/globals';

import type { Pod } from '../../../../src/api/wire.ts';
import { decide } from '../../../../src/hosting/guardian/decide.ts';
import { type JournalEntry, entryOf } from '../../../../src/hosting/guardian/journal-entry.ts';
import { PodMemory } from '../../../../src/hosting/guardian/pod-memory.ts';
import { podBody, slimPod, bytesInMemory } from '../../../../src/hosting/guardian/slim-pod.ts';
import { ended, podOf, TERMINATING } from './support.ts';

const TEN = 10_000;
const MOST = 5 * TEN + 4000;
const SHOP = 'rome-shop';

interface Parts {
  namespace?: string;
  created?: string;
  phase?: string;
  bytes?: number;
  version?: string;
  uid?: string;
}

const large = (name: string, parts: Parts = {}): Pod => {
  const { namespace = SHOP, created = '2026-01-01T00:00:00Z', phase = 'Running', bytes = TEN } = parts;
  const pod = podOf({ name, annotations: { large: 'x'.repeat(bytes - 1500) }, status: { phase } });
  const { version = '1', uid = pod.metadata.uid } = parts;
  const metadata = { ...pod.metadata, namespace, uid, creationTimestamp: created, resourceVersion: version };
  return { ...pod, metadata };
};

interface World {
  memory: PodMemory;
  dropped: string[];
  kept: () => string;
}

function world(): World {
  const memory = new PodMemory(MOST);
  const dropped: string[] = [];
  for (const namespace of [SHOP, 'rome-bank']) {
    memory.open(namespace, (name) => dropped.push(`${namespace}/${name}`));
  }
  const names = 'abcdefghij'.split('');
  const kept = (): string =>
    names.filter((name) => memory.pod(SHOP, name, `uid-${name}`) !== undefined).join('');
  return { memory, dropped, kept };
}

const entry = (pod: Pod): JournalEntry => entryOf(pod, undefined, false) as JournalEntry;

test('what is within the budget is kept, and beyond it nothing grows', () => {
  const { memory, dropped, kept } = world();
  for (const name of 'abcde') memory.listed(large(name));
  expect(dropped).toEqual([]);
  for (let at = 0; at < 200; at++) {
    memory.listed(
      large(`more-${at}`, { namespace: at % 2 === 0 ? SHOP : 'rome-bank', created: '2026-02-01T00:00:00Z' }),
    );
    expect(memory.bytes).toBeLessThanOrEqual(MOST);
  }
  expect(kept()).toBe('abcde');
  expect(dropped).toHaveLength(200);
});

test.each([
  ['those that run before those that have ended', 'd', 'j', { phase: 'Succeeded' }],
  ['the older before the younger', 'd', 'j', { created: '2026-01-02T00:00:00Z' }],
  ['then by name', 'j', 'd', {}],
])('%s, in whatever order they come', (_what, worst, other, its) => {
  for (const isFirst of [true, false]) {
    const { memory, dropped } = world();
    const two = [large(worst, its), large(other)];
    for (const name of 'abce') memory.listed(large(name));
    for (const pod of isFirst ? two : two.toReversed()) memory.listed(pod);
    expect(dropped).toEqual([`${SHOP}/${worst}`]);
  }
});

test('entries count as the pods that they are made of do, and once with them', () => {
  const { memory, dropped } = world();
  for (const name of 'abcde') {
    memory.listed(large(name));
    memory.hold(SHOP, entry(large(name)));
  }
  expect(dropped).toEqual([]);
  memory.gone(SHOP, 'a', 'uid-a');
  expect(memory.bytes).toBeGreaterThan(4.5 * TEN);
  memory.hold(SHOP, entry(large('lost', { created: '2025-01-01T00:00:00Z' })));
  expect(dropped).toEqual([`${SHOP}/e`]);
  for (const name of ['a', 'b', 'c', 'd', 'lost']) memory.letGo(SHOP, name);
  for (const name of 'bcd') memory.gone(SHOP, name, `uid-${name}`);
  expect(memory.bytes).toBe(0);
});

test('a pod that is made anew keeps the place of the one that was lost', () => {
  const { memory, dropped } = world();
  for (const name of 'abcde') memory.listed(large(name));
  memory.changed(large('a', { uid: 'anew', created: '2026-03-01T00:00:00Z', version: '2' }));
  memory.listed(large('b', { bytes: 2 * TEN, version: '3' }));
  expect(dropped).toEqual([`${SHOP}/e`]);
  expect(memory.pod(SHOP, 'a', 'anew')).toBeDefined();
});

test('what is told again of the past changes nothing', () => {
  const { memory } = world();
  memory.listed(large('a', { version: '7', uid: 'new' }));
  memory.changed(large('a', { version: '6', uid: 'old' }));
  memory.ended(large('a', { version: '8', uid: 'old' }));
  memory.ended(large('b', { version: '9' }));
  expect(memory.pod(SHOP, 'a', 'new')?.metadata.resourceVersion).toBe('7');
  memory.onlyThose(SHOP, () => false);
  expect(memory.bytes).toBe(0);
});

test('a namespace that is not watched any more leaves room', () => {
  const { memory, dropped, kept } = world();
  for (const name of 'vwxyz') memory.listed(large(name, { namespace: 'rome-bank' }));
  memory.close('rome-bank');
  expect(memory.bytes).toBe(0);
  for (const name of 'abcde') memory.listed(large(name));
  expect([kept(), dropped]).toEqual(['abcde', []]);
});

const RESULT = {
  annotations: { 'tributary.dev/result': 'true' },
  spec: { nodeName: '', schedulingGates: [{ name: 'tributary.dev/result' }] },
};
const MARKS = Array.from({ length: 40 }, (_, at) => ({ type: `c${at}`, status: 'True' }));
const DISRUPTED = [...MARKS, { type: 'DisruptionTarget', status: 'True' }];

test.each([
  [
    'one that runs',
    podOf({ status: { containerStatuses: [{ name: 'app', restartCount: 3, state: { running: {} } }] } }),
  ],
  ['one that was evicted', podOf({ status: { phase: 'Failed', reason: 'Evicted' } })],
  ['one with the mark of a disruption', podOf({ status: { phase: 'Failed', conditions: DISRUPTED } })],
  ['one on its way out', podOf({ metadata: TERMINATING, status: { conditions: DISRUPTED } })],
  [
    'one that has ended',
    podOf({ status: { phase: 'Succeeded', containerStatuses: [ended('2026-01-01T00:30:00Z')] } }),
  ],
  [
    'one that had ended when it was deleted',
    podOf({
      metadata: TERMINATING,
      status: { phase: 'Failed', containerStatuses: [ended('2026-01-01T00:30:00Z', 1)] },
    }),
  ],
  ['one that bears a result', podOf(RESULT)],
])('of %s, all is kept that is asked for', (_what, pod) => {
  expect(entryOf(podBody(pod), undefined, true)).toEqual(entryOf(pod, undefined, true));
  const known = { ...entry(podOf({})), annotations: { 'tributary.dev/when-lost': 'Replace' } };
  for (const result of [undefined, { phase: 'Succeeded' }]) {
    const facts = {
      entry: { ...known, ...(result && { result }) },
      node: 'Silent',
      terminatingForMs: 0,
      nowMs: 0,
    } as const;
    expect(decide({ ...facts, pod: slimPod(pod) })).toEqual(decide({ ...facts, pod }));
  }
});

test('a slim pod is small, whatever a peer writes', () => {
  const text = 'x'.repeat(200_000);
  const pod = podOf({
    annotations: { text },
    metadata: { labels: { 'tributary.dev/home-uid': 'u', text }, finalizers: [text] },
    spec: { schedulingGates: [{ name: text }], containers: [{ name: 'a', image: text }] },
    status: { message: text, conditions: [{ type: text, status: 'True' }] },
  });
  expect(bytesInMemory(slimPod(pod))).toBeLessThan(1500);
});

test('weight is of memory: short fields by the thousand, and text that is not Latin, count for what they take', () => {
  const names = Array.from({ length: 1000 }, () => ({ name: 'A' }));
  expect(bytesInMemory(names)).toBeGreaterThan(40_000);
  const keys = Object.fromEntries(names.map((_, at) => [`k${at}`, '']));
  expect(bytesInMemory(keys)).toBeGreaterThan(80_000);
  expect(bytesInMemory('ł'.repeat(1000))).toBeGreaterThan(2000);
  expect(bytesInMemory('l'.repeat(1000))).toBeLessThan(1100);
});
