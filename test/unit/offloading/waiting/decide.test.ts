import { expect, test } from '@jest/globals';
import type { NamespaceOffloading, OffloadedCluster } from '../../../../src/api/namespace-offloading.ts';
import type { Pod, PodSpec } from '../../../../src/api/wire.ts';
import type { AvoidFacts } from '../../../../src/offloading/admission/avoid.ts';
import { admit } from '../../../../src/offloading/admission/decide.ts';
import { decideWaiting, placesOf, type WaitingAction } from '../../../../src/offloading/waiting/decide.ts';
import { patched } from '../admission/scheduler.ts';
import { at, boundPod, cluster, NOW_MS, offloading, REPLICA_SET } from '../release/support.ts';

const CLAIM = { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } };
const SPEC: PodSpec = { containers: [{ name: 'main', image: 'web:1' }], volumes: [CLAIM] };

const clusters = (milan: OffloadedCluster['phase']): OffloadedCluster[] => [
  { ...cluster('milan', milan), reason: milan === 'Ready' ? 'AsExpected' : 'NameTaken' },
  cluster('rome'),
];
const facts = (one: NamespaceOffloading, failedNodes: readonly string[] = []): AvoidFacts => ({
  offloading: one,
  failedNodes,
  nowMs: NOW_MS,
});
const back = facts(offloading({}, { clusters: clusters('Ready') }));
const away = facts(offloading({}, { clusters: clusters('Failed') }), ['milan']);

/** As it was let in while milan could not take it. */
function waiting(metadata: Partial<Pod['metadata']> = {}, spec: Partial<PodSpec> = {}): Pod {
  const asked: Pod = { ...boundPod(metadata, { phase: 'Pending' }), spec: { ...SPEC, ...spec } };
  return patched(asked, admit(asked, { ...away, isOpen: false }).patch);
}
const owned = { ownerReferences: [REPLICA_SET] };

test.each<[string, Pod, AvoidFacts, WaitingAction['do']]>([
  ['whose virtual node is back', waiting(owned), back, 'Evict'],
  ['that nobody would make again', waiting(), back, 'Remake'],
  ['without claims', waiting(owned, { volumes: [] }), back, 'Evict'],
  ['whose virtual node is still away', waiting(owned), away, 'Stay'],
  [
    'whose owner is held off by now',
    waiting(owned),
    facts(
      offloading(
        {},
        {
          clusters: clusters('Ready'),
          heldOff: [{ owner: 'ReplicaSet/web-1', virtualNode: 'milan', until: at(60) }],
        },
      ),
    ),
    'Stay',
  ],
  [
    'whose owner was held off until now',
    waiting(owned),
    facts(
      offloading(
        {},
        {
          clusters: clusters('Ready'),
          heldOff: [{ owner: 'ReplicaSet/web-1', virtualNode: 'milan', until: at(0) }],
        },
      ),
    ),
    'Evict',
  ],
  [
    'that is to stay home by now',
    waiting(owned),
    facts(offloading({ podStrategy: 'Local' }, { clusters: clusters('Ready') })),
    'Stay',
  ],
  ['that somebody holds back', waiting(owned, { schedulingGates: [{ name: 'queue' }] }), back, 'Later'],
  ['that ends', waiting({ ...owned, deletionTimestamp: at(0) }), back, 'Stay'],
  [
    'of a DaemonSet',
    {
      ...waiting(owned),
      metadata: boundPod({ ownerReferences: [{ ...REPLICA_SET, kind: 'DaemonSet' }] }).metadata,
    },
    back,
    'Stay',
  ],
  [
    'that has only the mark of another',
    { ...boundPod({ ...owned, annotations: { 'tributary.dev/avoids': 'milan' } }), spec: SPEC },
    back,
    'Stay',
  ],
])('a waiting pod %s', (_what, pod, known, expected) => {
  expect(decideWaiting(pod, known).do).toBe(expected);
});

test('a pod that has a node is left alone', () => {
  const pod = waiting(owned);
  expect(decideWaiting({ ...pod, spec: { ...SPEC, ...pod.spec, nodeName: 'n1' } }, back)).toEqual({
    do: 'Stay',
  });
});

test('it is looked again when a virtual node is ready for the namespace, or a time is over, and not otherwise', () => {
  expect(placesOf(away).key).not.toBe(placesOf(back).key);
  const heldOff = [{ owner: 'Job/a', virtualNode: 'rome', until: at(60) }];
  const held = facts(offloading({}, { clusters: clusters('Ready'), heldOff }));
  expect(placesOf(held)).toEqual({ key: expect.any(String), untilMs: NOW_MS + 60_000 });
  expect(placesOf(held).key).not.toBe(placesOf(back).key);
  expect(placesOf({ ...held, nowMs: NOW_MS + 60_000 })).toEqual(
    placesOf({ ...back, nowMs: NOW_MS + 60_000 }),
  );
});

test('a pod is marked with the virtual nodes that it was let in to avoid, whatever it claims itself', () => {
  const avoids = (annotations: Record<string, string> | undefined, known: AvoidFacts): string | undefined => {
    const asked: Pod = { ...boundPod(annotations && { annotations }), spec: SPEC };
    return patched(asked, admit(asked, { ...known, isOpen: false }).patch).metadata.annotations?.[
      'tributary.dev/avoids'
    ];
  };
  const claim = { 'tributary.dev/avoids': 'oslo' };
  expect(avoids(undefined, away)).toBe('milan');
  expect(avoids(claim, { ...away, failedNodes: ['oslo', 'milan'] })).toBe('milan,oslo');
  expect(avoids(claim, back)).toBe('');
  expect(avoids(undefined, back)).toBeUndefined();
});

test('a pod that was too large for each node is made anew when one is large enough, and not before', () => {
  const sized = (cpu: string): AvoidFacts => {
    const nodeSizes = [{ cpu, memory: '64Gi', pods: '100' }];
    const labels = { 'tributary.dev/virtual-node': 'milan' };
    return { ...back, selected: [{ name: 'milan', labels, isTainted: true, nodeSizes }] };
  };
  const asked: Pod = {
    ...boundPod(owned, { phase: 'Pending' }),
    spec: { containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '20' } } }] },
  };
  const pod = patched(asked, admit(asked, { ...sized('16'), isOpen: false }).patch);
  expect(decideWaiting(pod, sized('16'))).toEqual({ do: 'Stay' });
  expect(decideWaiting(pod, sized('19'))).toEqual({ do: 'Stay' });
  expect(decideWaiting(pod, sized('20'))).toEqual({ do: 'Evict', back: ['milan'] });
  expect(placesOf(sized('16')).key).not.toBe(placesOf(sized('20')).key);
});
