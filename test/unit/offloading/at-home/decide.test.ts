import { describe, expect, test } from '@jest/globals';

import type { PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import type { ObjectMeta, Pod, PodSpec } from '../../../../src/api/wire.ts';
import {
  atHomeCondition,
  atHomeMessage,
  atHomeOf,
  isAtHome,
  type Move,
  podsToMove,
  type SeenPod,
  seenPod,
  withMove,
} from '../../../../src/offloading/at-home/decide.ts';

const pod = (more: Partial<ObjectMeta> = {}, spec: Partial<PodSpec> = {}, phase = 'Running'): Pod => ({
  metadata: {
    name: 'p',
    namespace: 'shop',
    uid: more.name ?? 'uid',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...more,
  },
  spec: { containers: [], ...spec },
  status: { phase },
});
const owner = (kind: string, name = 'o', uid = 'u'): Partial<ObjectMeta> => ({
  ownerReferences: [{ apiVersion: 'v1', kind, name, uid, controller: true }],
});
const LET_IN = { annotations: { 'tributary.dev/strategy': 'LocalAndRemote' } };
const KEPT = { annotations: { 'tributary.dev/strategy': 'Local' } };
const there = (podStrategy: PodStrategy): { podStrategy: PodStrategy; virtual: Set<string> } => ({
  podStrategy,
  virtual: new Set(['milan']),
});
const seen = (one: Pod, podStrategy: PodStrategy = 'Remote'): SeenPod => {
  const found = seenPod(one, there(podStrategy));
  if (found === undefined) throw new Error('the pod is finished');
  return found;
};

describe('made too early', () => {
  const tolerating = (toleration: object): Pod => pod({}, { tolerations: [toleration] });
  const REAL = { nodeName: 'real-1' };
  const rows: [what: string, pod: Pod, either: boolean, remote: boolean][] = [
    ['not bound', pod(), true, true],
    ['on a real node', pod({}, REAL), true, true],
    ['on a virtual node, whatever brought it there', pod({}, { nodeName: 'milan' }), false, false],
    ['finished', pod({}, REAL, 'Succeeded'), false, false],
    ['ending', pod({ deletionTimestamp: 'x' }, REAL), false, false],
    ['a daemon', pod(owner('DaemonSet'), REAL), false, false],
    ['stays by its own will', pod({ labels: { 'tributary.dev/offload': 'false' } }, REAL), false, false],
    ['seen by the webhook', pod(LET_IN), false, false],
    ['seen by the webhook, on a real node', pod(LET_IN, REAL), false, true],
    ['kept home by the webhook, for an earlier strategy', pod(KEPT, REAL), true, true],
    ['kept home, though it tolerates all', pod(KEPT, { tolerations: [{ operator: 'Exists' }] }), true, true],
    ['a kubelet’s own', pod({ annotations: { 'kubernetes.io/config.mirror': 'x' } }, REAL), false, false],
    ['tolerates it', tolerating({ key: 'tributary.dev/virtual-node', operator: 'Exists' }), false, false],
    [
      'tolerates one of them',
      tolerating({ key: 'tributary.dev/virtual-node', value: 'milan', effect: 'NoSchedule' }),
      false,
      false,
    ],
    ['tolerates all', tolerating({ operator: 'Exists' }), false, false],
    ['tolerates another effect', tolerating({ operator: 'Exists', effect: 'NoExecute' }), true, true],
    ['tolerates something else', tolerating({ key: 'x', operator: 'Exists' }), true, true],
  ];
  test.each(rows)('%s', (_what, one, either, remote) => {
    expect(isAtHome(one, there('LocalAndRemote'))).toBe(either);
    expect(isAtHome(one, there('Remote'))).toBe(remote);
  });

  test.each<[string, Pod, string]>([
    [
      'Deployment',
      pod({ ...owner('ReplicaSet', 'web-7d9'), labels: { 'pod-template-hash': '7d9' } }),
      'rollout restart deployment web`',
    ],
    ['ReplicaSet', pod(owner('ReplicaSet', 'web')), 'delete it, and ReplicaSet web makes another'],
    ['StatefulSet', pod(owner('StatefulSet', 'db')), 'kubectl -n shop rollout restart statefulset db`'],
    ['Job', pod(owner('Job', 'once')), 'delete it, and Job once makes another'],
    ['bare', pod(), 'kubectl -n shop delete pod p'],
  ])('what to do: %s', (_what, one, expected) => expect(atHomeMessage(seen(one))).toContain(expected));
});

describe('which pod is moved next', () => {
  const ready = (one: Pod): Pod => ({
    ...one,
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const web = (name: string, nodeName = 'real-1', uid = 'web'): Pod =>
    ready(pod({ name, ...owner('ReplicaSet', 'web', uid) }, { nodeName }));
  const names = (pods: Pod[], moves = new Map<string, Move>(), nowMs = 0): string[] =>
    podsToMove(
      pods.map((one) => seen(one)),
      moves,
      nowMs,
    ).map(({ metadata }) => metadata.name);

  test.each<[string, Pod[], string[]]>([
    ['one of each controller', [web('a'), web('b'), web('c', 'real-1', 'other')], ['a', 'c']],
    [
      'none while another is ending',
      [web('a'), { ...web('b'), ...pod({ ...web('b').metadata, deletionTimestamp: 'x' }) }],
      [],
    ],
    [
      'none while its successor is not Ready',
      [web('a'), pod({ name: 'new', ...owner('ReplicaSet', 'web', 'web') }, { nodeName: 'milan' })],
      [],
    ],
    ['when its successor is Ready', [web('a'), web('new', 'milan')], ['a']],
    [
      'first one that serves nobody',
      [web('a'), pod({ name: 'b', ...owner('ReplicaSet', 'web', 'web') }, { nodeName: 'real-1' })],
      ['b'],
    ],
    ['nobody’s', [ready(pod({ name: 'bare' }, { nodeName: 'real-1' }))], []],
    [
      'of a Job',
      [ready(pod({ name: 'job', ...owner('Job') }, { nodeName: 'real-1', restartPolicy: 'Never' }))],
      [],
    ],
    [
      'with its volumes',
      [
        ready(
          pod(
            { name: 'db', ...owner('StatefulSet') },
            { nodeName: 'real-1', volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'd' } }] },
          ),
        ),
      ],
      [],
    ],
    ['all are abroad', [web('a', 'milan')], []],
  ])('%s', (_what, pods, expected) => expect(names(pods)).toEqual(expected));

  const all = (pods: Pod[]): SeenPod[] => pods.map((one) => seen(one));
  const evicted = (...pods: Pod[]): Map<string, Move> =>
    new Map([['web', withMove(undefined, all(pods), { owner: 'web', nowMs: 0 })]]);

  test('after a pause, since its controller may make another only when it is gone', () => {
    const moves = evicted(web('a'), web('b'));
    const after = [web('b'), web('new', 'milan')];
    expect(names(after, moves, 4999)).toEqual([]);
    expect(names(after, moves, 5000)).toEqual(['b']);
  });

  test('none while there is no other pod for the one that was evicted, and the condition says so', () => {
    const moves = evicted(web('a'), web('b'), web('c'));
    const left = [web('b'), web('c')];
    expect(names(left, moves, 3_600_000)).toEqual([]);
    expect(atHomeOf(all(left), moves, { nowMs: 4999 }).waits).toEqual([]);
    expect(atHomeOf(all(left), moves, { nowMs: 5000 }).waits).toEqual([
      expect.stringContaining('ReplicaSet/web has made no other pod'),
      expect.stringContaining('ReplicaSet/web has made no other pod'),
    ]);
    const ending = { ...web('a'), ...pod({ ...web('a').metadata, deletionTimestamp: 'x' }) };
    expect(atHomeOf(all([ending, ...left]), moves, { nowMs: 60_000 }).waits).toEqual([]);
    const replaced = [...left, web('new', 'milan')];
    expect(atHomeOf(all(replaced), moves, { nowMs: 5000 }).waits).toEqual([]);
    expect(names(replaced, moves, 5000)).toEqual(['b']);
  });

  test('one that comes home again is not sent away at once, and ever more rarely', () => {
    const moves = new Map<string, Move>();
    let pods = [web('a-0')];
    let count = 0;
    for (let nowMs = 0; nowMs < 3_600_000; nowMs += 2000) {
      const [next] = podsToMove(
        pods.map((one) => seen(one)),
        moves,
        nowMs,
      );
      if (next === undefined) continue;
      moves.set(
        'web',
        withMove(
          moves.get('web'),
          pods.map((one) => seen(one)),
          { owner: 'web', nowMs },
        ),
      );
      pods = [web(`a-${++count}`)];
    }
    // 1, 2, 4, 8, 16 and 32 minutes; without that it would be 720 in an hour.
    expect(count).toBeLessThan(8);
    const { waits } = atHomeOf(all(pods), moves, { nowMs: 3_600_000 });
    expect(waits).toEqual([expect.stringContaining('pods of ReplicaSet/web come home again')]);
  });
});

describe('the condition', () => {
  const found = atHomeOf(
    [seen(pod({ name: 'bare' })), seen(pod({ name: 'far' }, { nodeName: 'milan' }))],
    new Map(),
    { nowMs: 0 },
  );

  test('counts them, and says what to do', () => {
    const { status, reason, message } = atHomeCondition(found, { existingPods: 'Stay', generation: 1 });
    expect([status, reason]).toEqual(['True', 'PodsAtHome']);
    expect(message).toContain('still on real nodes: 1; one is bare: ');
    expect(message).toContain('delete pod bare. spec.existingPods: Move');
  });

  test('names the command where the object is of a tether, which would take back another field', () => {
    const { message } = atHomeCondition(found, { existingPods: 'Stay', generation: 1, isOfTether: true });
    expect(message).toContain('delete pod bare. `tributary tether CLUSTER --evict` does so for pods of cont');
    expect(message).not.toContain('existingPods');
  });

  test('says which of them stay although they are to go', () => {
    const { reason, message } = atHomeCondition(found, { existingPods: 'Move', generation: 1 });
    expect(reason).toBe('Moving');
    expect(message).toContain('1 wait: bare stays, nobody would make it again');
  });

  test('is False when there are none', () => {
    const none = atHomeOf([], new Map(), { nowMs: 0 });
    expect(atHomeCondition(none, { existingPods: 'Stay', generation: 1 })).toMatchObject({
      type: 'PodsAtHome',
      status: 'False',
      reason: 'AsExpected',
    });
  });
});
