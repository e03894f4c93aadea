import { describe, expect, test } from '@jest/globals';

import { ANNOTATION_RECREATED, ANNOTATION_RESULT } from '../../../../src/api/names.ts';
import { decide, type Facts, type NodeState, nodeStateOf } from '../../../../src/hosting/guardian/decide.ts';
import {
  type JournalEntry,
  entryOf,
  recreatedNext,
  recreatedOf,
} from '../../../../src/hosting/guardian/journal-entry.ts';
import { endedByItself } from '../../../../src/hosting/guardian/result.ts';
import { AT, ended, podOf, type PodParts, TERMINATING } from './support.ts';

const NOW = Date.parse('2026-01-01T02:00:00Z');

const entry = (parts: PodParts = {}, isNew = false): JournalEntry => {
  const made = entryOf(podOf(parts), undefined, isNew);
  if (made === undefined) throw new Error('no entry');
  return made;
};
const lost = (whenLost: string): PodParts => ({ annotations: { 'tributary.dev/when-lost': whenLost } });
const decided = (facts: Partial<Facts>): string => {
  const whole = { entry: entry(), pod: undefined, node: 'Answers' as const, terminatingForMs: 0, nowMs: NOW };
  return decide({ ...whole, ...facts }).do;
};

const SUCCEEDED = { phase: 'Succeeded', containerStatuses: [ended(AT)] };
const EVICTED = { phase: 'Failed', reason: 'Evicted' };
const DISRUPTED = { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True' }] };
const RESULT_POD = {
  annotations: { [ANNOTATION_RESULT]: 'true' },
  spec: { nodeName: '', schedulingGates: [{ name: 'tributary.dev/result' }] },
};

describe('a pod that is there', () => {
  test.each<[string, PodParts, string]>([
    ['runs', {}, 'Nothing'],
    ['is pending', { status: { phase: 'Pending' } }, 'Nothing'],
    ['has finished', { status: SUCCEEDED }, 'Nothing'],
    ['has failed by itself', { status: { phase: 'Failed', containerStatuses: [ended(AT, 1)] } }, 'Nothing'],
    ['was evicted', { status: EVICTED }, 'Clear'],
    ['was drained', { status: DISRUPTED }, 'Clear'],
    ['found no room at the kubelet', { status: { phase: 'Failed', reason: 'OutOfcpu' } }, 'Clear'],
    ['was evicted, and is of a Job', { status: EVICTED, spec: { restartPolicy: 'Never' } }, 'Clear'],
    ['was evicted, and is to be left', { status: EVICTED, ...lost('Leave') }, 'Nothing'],
    ['was evicted, and its home said nothing', { status: EVICTED, ...lost('Sometimes') }, 'Nothing'],
    ['bears a result without a status', { ...RESULT_POD, status: { phase: 'Pending' } }, 'Nothing'],
  ])('that %s', (_name, parts, what) => {
    expect(decided({ entry: entry(parts), pod: podOf(parts) })).toBe(what);
  });

  test('and bears a result that is not written yet', () => {
    const before = entry({ status: SUCCEEDED });
    const pod = podOf({ ...RESULT_POD, metadata: { uid: 'new' }, status: { phase: 'Pending' } });
    pod.metadata.annotations = { ...RESULT_POD.annotations };
    const kept = entryOf(pod, before, false);
    expect(kept).toEqual({ ...before, uid: 'new' });
    expect(decided({ entry: kept as JournalEntry, pod })).toBe('WriteResult');
  });
});

describe('a pod that is gone', () => {
  test.each<[string, PodParts, string]>([
    ['Replace', lost('Replace'), 'Recreate'],
    ['WhenFenced', lost('WhenFenced'), 'Recreate'],
    ['Leave', lost('Leave'), 'GiveUp'],
    ['finished', { status: SUCCEEDED }, 'PutBack'],
    ['finished, Leave', { status: SUCCEEDED, ...lost('Leave') }, 'PutBack'],
    ['finished, then marked as disrupted', { status: { ...DISRUPTED } }, 'Recreate'],
    ['lost for the second time', { annotations: again(1) }, 'Recreate'],
    ['lost for the third time, long after', { annotations: again(2) }, 'Recreate'],
    ['lost for the third time, at once', { annotations: again(2), metadata: young() }, 'Wait'],
  ])('%s', (_name, parts, what) => {
    expect(decided({ entry: entry(parts) })).toBe(what);
  });

  test('nobody misses it where its home had deleted it', () => {
    expect(decided({ entry: entry({ metadata: TERMINATING }, true) })).toBe('Nothing');
    const drained = { metadata: TERMINATING, status: { conditions: DISRUPTED.conditions } };
    expect(decided({ entry: entry(drained, true) })).toBe('Recreate');
    // Deleted by somebody here, while its home is away.
    expect(decided({ entry: entry({ metadata: TERMINATING }, false) })).toBe('Recreate');
  });
});

describe('a pod on its way out', () => {
  test.each<[string, [NodeState, string, number], string]>([
    ['by somebody, on a node that answers', ['Answers', 'Replace', 9e6], 'Wait'],
    ['on a fenced node', ['Fenced', 'WhenFenced', 0], 'ForceDelete'],
    ['on a fenced node', ['Fenced', 'Replace', 0], 'ForceDelete'],
    ['on a fenced node', ['Fenced', 'Leave', 0], 'Wait'],
    ['on a silent node, in its grace', ['Silent', 'Replace', 59_999], 'Wait'],
    ['on a silent node, long after its grace', ['Silent', 'Replace', 60_000], 'ForceDelete'],
    ['on a silent node', ['Silent', 'WhenFenced', 9e6], 'Wait'],
    ['on a silent node', ['Silent', 'Leave', 9e6], 'Wait'],
  ])('%s %j', (_name, [node, whenLost, terminatingForMs], what) => {
    const parts = { metadata: TERMINATING, ...lost(whenLost) };
    expect(decided({ entry: entry(parts), pod: podOf(parts), node, terminatingForMs })).toBe(what);
  });
});

describe('whether it ended by itself', () => {
  const early = [ended('2026-01-01T00:59:00Z', 1)];
  const late = [ended('2026-01-01T01:00:10Z', 143)];
  test.each<[string, PodParts, boolean]>([
    ['runs', {}, false],
    ['succeeded', { status: SUCCEEDED }, true],
    ['exceeded its deadline', { status: { phase: 'Failed', reason: 'DeadlineExceeded' } }, true],
    ['evicted', { status: EVICTED }, false],
    [
      'failed before it was deleted',
      { metadata: TERMINATING, status: { phase: 'Failed', containerStatuses: early } },
      true,
    ],
    [
      'failed by deletion',
      { metadata: TERMINATING, status: { phase: 'Failed', containerStatuses: late } },
      false,
    ],
    [
      'a server ended with 0 by deletion',
      {
        metadata: TERMINATING,
        status: { phase: 'Succeeded', containerStatuses: [ended('2026-01-01T01:00:10Z')] },
      },
      false,
    ],
    [
      'a Job ended with 0 by deletion',
      { metadata: TERMINATING, spec: { restartPolicy: 'Never' }, status: { phase: 'Succeeded' } },
      true,
    ],
    ['failed without a word', { metadata: TERMINATING, status: { phase: 'Failed' } }, false],
  ])('%s', (_name, parts, is) => {
    expect(endedByItself(podOf(parts))).toBe(is);
  });
});

test('an entry is what the peer would create', () => {
  const api = { name: 'kube-api-access-x', projected: {} };
  const made = entry({
    spec: {
      priority: 0,
      ephemeralContainers: [{ name: 'debug' }],
      schedulingGates: [],
      volumes: [api, { name: 'data', emptyDir: {} }],
      containers: [{ name: 'app', image: 'a:1', volumeMounts: [{ name: api.name, mountPath: '/v' }] }],
    },
    status: { containerStatuses: [{ name: 'app', restartCount: 3 }] },
  });
  expect(made).toMatchObject({ homeUid: 'home-web', restarts: { app: 3 } });
  expect(made.labels).toEqual({ 'tributary.dev/home-uid': 'home-web' });
  expect(made.spec).toEqual({
    restartPolicy: 'Always',
    volumes: [{ name: 'data', emptyDir: {} }],
    containers: [{ name: 'app', image: 'a:1', volumeMounts: [] }],
  });
});

test('restarts add up over the pods before it, whatever the annotation says', () => {
  const status = { containerStatuses: [{ name: 'app', restartCount: 3 }] };
  const annotations = { [ANNOTATION_RECREATED]: '{"count":1,"restarts":{"app":2,"old":1,"__proto__":5}}' };
  expect(recreatedNext(entry({ status, annotations }))).toMatchObject({
    count: 2,
    restarts: new Map([
      ['app', 5],
      ['old', 1],
      ['__proto__', 5],
    ]),
  });
  for (const text of ['', 'null', '[]', '{"count":-1,"restarts":{"app":"x"}}', '{"count":1e99}']) {
    expect(recreatedOf({ annotations: { [ANNOTATION_RECREATED]: text } })).toEqual({
      count: 0,
      restarts: new Map(),
    });
  }
});

test.each([
  ['Fenced', undefined],
  ['Fenced', { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } }],
  ['Silent', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }],
  ['Silent', { spec: { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] } }],
  ['Answers', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }],
  ['Answers', {}],
])('a node: %s %j', (state, node) => {
  expect(nodeStateOf(node as Parameters<typeof nodeStateOf>[0])).toBe(state);
});

function again(count: number): Record<string, string> {
  return { [ANNOTATION_RECREATED]: JSON.stringify({ count, restarts: {} }) };
}

function young(): object {
  return { creationTimestamp: '2026-01-01T01:59:59Z' };
}
