import { describe, expect, test } from '@jest/globals';
import type { HeldOff, OffloadedCluster } from '../../../../src/api/namespace-offloading.ts';
import { OFFLOADED_REASONS } from '../../../../src/api/names.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { ReleaseAction, ReleaseSituation } from '../../../../src/offloading/release/decide.ts';
import { decideRelease } from '../../../../src/offloading/release/decide.ts';
import { at, boundPod, cluster, NOW, NOW_MS, offloading, refused, REPLICA_SET } from './support.ts';

const OWNED = { ownerReferences: [REPLICA_SET] };
const OWNER = 'ReplicaSet/web-1';
const heldFor = (seconds: number, owner = OWNER, virtualNode = 'milan'): HeldOff => ({
  owner,
  virtualNode,
  until: at(seconds),
});
const MARKED = {
  phase: 'Pending',
  conditions: [
    ...(refused().conditions ?? []),
    { type: 'DisruptionTarget', status: 'True', reason: 'ReleasedFromVirtualNode', lastTransitionTime: NOW },
  ],
};

/** A minute after the pod was refused. */
const decided = (given: Partial<ReleaseSituation> = {}): ReleaseAction =>
  decideRelease({
    pod: boundPod(OWNED),
    virtualNode: 'milan',
    offloading: offloading(),
    nowMs: NOW_MS + 60_000,
    ...given,
  });

type Row = [name: string, given: Partial<ReleaseSituation>, expected: object];

describe('who is released', () => {
  const ROWS: Row[] = [
    ['refused for long enough', {}, { do: 'holdOff', heldOff: [heldFor(660)] }],
    ['refused, but not for long', { nowMs: NOW_MS + 59_000 }, { do: 'wait', ms: 1000 }],
    ['its namespace is not offloaded', { offloading: undefined }, { do: 'nothing' }],
    ['never, by request', { offloading: offloading({ releaseAfterSeconds: 0 }) }, { do: 'nothing' }],
    [
      'its offloading is being removed',
      {
        offloading: {
          ...offloading(),
          metadata: { ...offloading().metadata, deletionTimestamp: NOW },
        },
      },
      { do: 'nothing' },
    ],
    ['it has started', { pod: boundPod(OWNED, { ...refused(), startTime: NOW }) }, { do: 'nothing' }],
    ['it is ending', { pod: boundPod({ ...OWNED, deletionTimestamp: NOW }) }, { do: 'nothing' }],
    ['it has failed', { pod: boundPod(OWNED, { ...refused(), phase: 'Failed' }) }, { do: 'nothing' }],
    ['it is not refused', { pod: boundPod(OWNED, { phase: 'Pending' }) }, { do: 'nothing' }],
    [
      'refused, as the agent says again later',
      { pod: boundPod(OWNED, refused('ExceededQuota', at(30))) },
      { do: 'wait', ms: 30_000 },
    ],
    [
      'held off: it goes with the others of its owner',
      { offloading: offloading({}, { heldOff: [heldFor(600)] }) },
      {
        do: 'mark',
        condition: { type: 'DisruptionTarget', status: 'True', reason: 'ReleasedFromVirtualNode' },
      },
    ],
    [
      'held off and marked',
      { offloading: offloading({}, { heldOff: [heldFor(600)] }), pod: boundPod(OWNED, MARKED) },
      { do: 'release' },
    ],
    [
      'marked, without an owner',
      {
        offloading: offloading({}, { heldOff: [heldFor(600, 'Pod/web-1-a')] }),
        pod: boundPod({}, MARKED),
      },
      { do: 'remake' },
    ],
    [
      'marked, with an owner that replaces nothing',
      {
        offloading: offloading({}, { heldOff: [heldFor(600, 'Pod/web-1-a')] }),
        pod: boundPod({ ownerReferences: [{ ...REPLICA_SET, controller: false }] }, MARKED),
      },
      { do: 'remake' },
    ],
    [
      'without a hold, by request',
      { offloading: offloading({ holdOffSeconds: 0 }), pod: boundPod(OWNED, MARKED) },
      { do: 'release' },
    ],
    [
      'a hold that has passed, and one of another owner, count for nothing',
      {
        offloading: offloading(
          {},
          { heldOff: [heldFor(1), heldFor(300, 'Job/x'), heldFor(300, OWNER, 'rome')] },
        ),
      },
      { do: 'holdOff', heldOff: [heldFor(300, 'Job/x'), heldFor(300, OWNER, 'rome'), heldFor(660)] },
    ],
  ];
  test.each(ROWS)('%s', (_name, given, expected) => expect(decided(given)).toMatchObject(expected));

  const placing = new Set([
    'NamespaceNotOffloaded',
    'NamespaceBeingMade',
    'TenantNamespaceNotFound',
    'Forbidden',
    'ExceededQuota',
    'Invalid',
    'Unschedulable',
    'PlacementNotPossible',
    'PlacementNowhere',
    'VolumeNotHere',
    'NetworkPolicyNotInForce',
  ]);
  test.each(Object.values(OFFLOADED_REASONS))('reason %s', (reason) => {
    const { do: what } = decided({ pod: boundPod(OWNED, refused(reason)) });
    expect(what).toBe(placing.has(reason) ? 'holdOff' : 'nothing');
  });
});

describe('a rule about other pods', () => {
  const RULES = { podAntiAffinity: [{ topologyKey: 'rack' }], topologySpreadConstraints: [] };
  const ruled = (reason: string, placement = 'Hard'): Pod =>
    boundPod(
      {
        ...OWNED,
        annotations: {
          'tributary.dev/placement': placement,
          'tributary.dev/placement-rules': JSON.stringify(RULES),
        },
      },
      refused(reason),
    );
  const clusters = [cluster('milan'), cluster('rome')];
  const given = (podStrategy: 'Remote' | 'LocalAndRemote', pod: Pod): Partial<ReleaseSituation> => ({
    pod,
    offloading: offloading({ podStrategy, holdOffSeconds: 0 }, { clusters }),
  });
  const stays: object = { do: 'stay', message: expect.stringContaining('no other one could') };

  test.each<[string, Partial<ReleaseSituation>, object]>([
    ['that no cluster can be told keeps the pod', given('Remote', ruled('PlacementNowhere')), stays],
    ['by a key of home likewise', given('Remote', ruled('PlacementNotPossible')), stays],
    [
      'unless another virtual node bears the label',
      { ...given('Remote', ruled('PlacementNotPossible')), labelsOf: () => ({ rack: '1' }) },
      { do: 'mark' },
    ],
    [
      'about a namespace that may be elsewhere',
      given('Remote', ruled('PlacementNotPossible', 'Propagate')),
      { do: 'mark' },
    ],
  ])('%s', (_name, situation, expected) => expect(decided(situation)).toMatchObject(expected));

  test('lets the pod come home, and nowhere else', () => {
    const status = { ...MARKED, conditions: MARKED.conditions.slice(1) };
    const { metadata } = ruled('PlacementNowhere');
    const conditions = [...(refused('PlacementNowhere').conditions ?? []), ...status.conditions];
    const action = decided(given('LocalAndRemote', boundPod(metadata, { ...status, conditions })));
    expect(action).toMatchObject({ do: 'release', message: expect.stringMatching(/go to a real node$/u) });
  });
});

test('the words of others end with one full stop', () => {
  const [condition] = MARKED.conditions;
  const said = { ...MARKED.conditions[1], type: 'DisruptionTarget', status: 'True' };
  const conditions = [{ type: '', status: '', ...condition, message: 'for incoming pod.' }, said];
  const action = decided({
    offloading: offloading({ holdOffSeconds: 0 }),
    pod: boundPod(OWNED, { ...MARKED, conditions }),
  });
  expect(action).toMatchObject({ message: expect.stringContaining('for incoming pod. It may go') });
});

describe('a pod with claims', () => {
  const mounting = (
    volume: object,
    reason = 'Unschedulable',
    metadata: Partial<Pod['metadata']> = OWNED,
  ): Pod => ({
    ...boundPod(metadata, refused(reason)),
    spec: { containers: [], volumes: [{ name: 'data', ...volume }] },
  });
  const CLAIM = { persistentVolumeClaim: { claimName: 'data-db-0' } };
  test.each(['Unschedulable', 'ExceededQuota', 'Forbidden', 'Invalid', 'TenantNamespaceNotFound'])(
    'stays with its data, which are over there: %s',
    (reason) => {
      const expected: object = { do: 'stay', message: expect.stringContaining('volumes are over there') };
      expect(decided({ pod: mounting(CLAIM, reason) })).toMatchObject(expected);
      expect(decided({ pod: mounting(CLAIM, reason, {}) })).toMatchObject(expected);
      const held = offloading({}, { heldOff: [heldFor(600)] });
      expect(decided({ pod: mounting(CLAIM, reason), offloading: held })).toMatchObject(expected);
    },
  );
  test.each(['VolumeNotHere', 'NamespaceNotOffloaded', 'NamespaceBeingMade'])(
    'goes to its data, which are elsewhere: %s',
    (reason) => expect(decided({ pod: mounting(CLAIM, reason) }).do).toBe('holdOff'),
  );
  test.each([{ emptyDir: {} }, { ephemeral: { volumeClaimTemplate: { spec: {} } } }])(
    'goes where its volumes end with it: %j',
    (volume) => expect(decided({ pod: mounting(volume) }).do).toBe('holdOff'),
  );
  test('waits as long as any other before that is said', () =>
    expect(decided({ pod: mounting(CLAIM), nowMs: NOW_MS + 59_000 })).toEqual({ do: 'wait', ms: 1000 }));
});

describe('clocks that are apart', () => {
  test.each<Row>([
    [
      "an agent's clock an hour behind: no longer than the pod is old",
      { pod: boundPod({ ...OWNED, creationTimestamp: at(50) }, refused('Forbidden', at(-3600))) },
      { do: 'wait', ms: 50_000 },
    ],
    [
      "an agent's clock an hour ahead: as long as we have watched it",
      { pod: boundPod(OWNED, refused('Forbidden', at(3600))), watchedMs: 60_000 },
      { do: 'holdOff' },
    ],
    [
      "an agent's clock an hour ahead, just seen",
      { pod: boundPod(OWNED, refused('Forbidden', at(3600))), watchedMs: 0 },
      { do: 'wait' },
    ],
    [
      'a time that cannot be read',
      { pod: boundPod({ ...OWNED, creationTimestamp: 'once' }, refused('Forbidden', '')), watchedMs: 1000 },
      { do: 'wait', ms: 59_000 },
    ],
  ])('%s', (_name, given, expected) => expect(decided(given)).toMatchObject(expected));
});

describe('round in a circle', () => {
  // Held off from 0 to 600 s.
  const held = offloading({}, { heldOff: [heldFor(600)] });
  const later = { offloading: held, nowMs: NOW_MS + 200_000 };
  const made = (seconds: number): Partial<ReleaseSituation> => ({
    pod: boundPod({ ...OWNED, creationTimestamp: at(seconds) }, refused('Forbidden', at(seconds))),
  });

  test('a pod made after its owner was held off stays until the hold ends', () => {
    const action = decided({ ...later, ...made(60) });
    expect(action).toMatchObject({ do: 'stay', ms: 400_000 });
    expect(action).toHaveProperty('message', expect.stringContaining('look for a nodeName'));
  });

  test('one that the webhook may have let in too early is released', () => {
    expect(decided({ ...later, ...made(20) })).toMatchObject({ do: 'mark' });
  });
});

describe('where to', () => {
  const two = [cluster('milan'), cluster('rome')];
  const remote = { podStrategy: 'Remote' as const };
  const marked = { pod: boundPod(OWNED, MARKED) };
  const held = (...more: HeldOff[]): { clusters: OffloadedCluster[]; heldOff: HeldOff[] } => ({
    clusters: two,
    heldOff: [heldFor(600), ...more],
  });

  test.each<[string, Partial<ReleaseSituation>, string]>([
    ['Local', { offloading: offloading({ podStrategy: 'Local' }, held()) }, 'It may go to a real node'],
    [
      'LocalAndRemote',
      { offloading: offloading({}, held()) },
      'It may go to a real node, virtual node "rome"',
    ],
    ['Remote', { offloading: offloading(remote, held()) }, 'It may go to virtual node "rome"'],
  ])('%s', (_name, given, text) => {
    expect(decided({ ...marked, ...given })).toMatchObject({
      do: 'release',
      message: expect.stringContaining(text),
    });
  });

  test.each<[string, ReturnType<typeof offloading>, number]>([
    ['the only one', offloading(remote), 60_000],
    [
      'the other one is not ready',
      offloading(remote, { clusters: [cluster('milan'), cluster('rome', 'Failed')] }),
      60_000,
    ],
    ['held off from the other one, too', offloading(remote, held(heldFor(90, OWNER, 'rome'))), 30_000],
  ])('Remote, and nowhere to go: %s', (_name, given, ms) => {
    const action = decided({ offloading: given });
    expect(action).toMatchObject({ do: 'stay', ms });
    expect(action).toHaveProperty('message', expect.stringContaining('no room'));
  });
});
