import { describe, expect, test } from '@jest/globals';
import { ANNOTATION_APPLIED, CONDITION_OFFLOADED } from '../../../../src/api/names.ts';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { appliedOf } from '../../../../src/provider/forge/applied.ts';
import { endedStatus, lostStatus } from '../../../../src/provider/forge/ended-status.ts';
import { sameStatus } from '../../../../src/provider/forge/same-status.ts';
import {
  forgeStatus,
  refusedStatus,
  stayHomeStatus,
  unshowableStatus,
} from '../../../../src/provider/forge/status.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const LATER = '2026-01-01T00:01:00Z';
const shown = (
  home: Pod,
  status: PodStatus | undefined,
  metadata: Partial<Pod['metadata']> = {},
): PodStatus =>
  forgeStatus(
    home,
    remotePod(home, { metadata, ...(status === undefined ? {} : { status }) }),
    CONTEXT,
    LATER,
  );
const condition = (status: PodStatus, type: string): object | undefined =>
  status.conditions?.find((one) => one.type === type);
const container = {
  name: 'main',
  image: 'web:1',
  imageID: 'sha256:1',
  ready: true,
  restartCount: 3,
  state: {},
  lastState: {},
};

describe('addresses', () => {
  test('the host is the virtual node, the pod as home sees it', () => {
    const context = { ...CONTEXT, homeViewOf: (address: string) => address.replace('10.0.', '10.99.') };
    const home = homePod();
    const status = forgeStatus(home, remotePod(home, { status: RUNNING }), context, NOW);
    expect(status).toMatchObject({
      hostIP: '192.0.2.1',
      hostIPs: [{ ip: '192.0.2.1' }],
      podIP: '10.99.0.7',
      podIPs: [{ ip: '10.99.0.7' }],
    });
  });

  test.each([
    ['Off', 'True'],
    ['Up', 'False'],
    ['Down', 'False'],
  ] as const)('none that home may show, network %s: Ready is %s', (state, expected) => {
    const context = { ...CONTEXT, network: state, homeViewOf: () => undefined };
    const home = homePod();
    const status = forgeStatus(home, remotePod(home, { status: RUNNING }), context, NOW);
    expect(status).not.toHaveProperty('podIP');
    expect(status).not.toHaveProperty('podIPs');
    expect(condition(status, 'Ready')).toMatchObject({ status: expected });
  });

  test('of a pod that was placed back: a tunnel that is down is no obstacle to it', () => {
    const context = {
      ...CONTEXT,
      network: 'Down' as const,
      homeViewOf: () => undefined,
      returnedTo: () => '10.1.0.7',
      isReturnedReady: (_uid: string, address: string) => (address === '10.1.0.7' ? true : undefined),
    };
    const home = homePod();
    const status = forgeStatus(home, remotePod(home, { status: RUNNING }), context, NOW);
    expect(status.podIP).toBe('10.1.0.7');
    expect(condition(status, 'Ready')).toMatchObject({ status: 'True' });
  });

  test.each([
    ['no address', ['here']],
    ['the loopback', ['127.0.0.1']],
    ['the loopback, dressed up', ['::ffff:127.0.0.1']],
    ['link-local', ['169.254.169.254']],
    ['IPv6 loopback', ['::1']],
    ['with a zone', ['fe80::1%eth0']],
    ['not a text', [7 as unknown as string]],
  ])('left out: %s', (_what, ips) => {
    const status = shown(homePod(), { ...RUNNING, podIP: ips[0] ?? '', podIPs: ips.map((ip) => ({ ip })) });
    expect(status.podIP).toBeUndefined();
    expect(status.podIPs).toBeUndefined();
  });

  test('one of each family, as the API server demands', () => {
    const podIPs = ['10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00::2'].map((ip) => ({ ip }));
    expect(shown(homePod(), { ...RUNNING, podIPs }).podIPs).toEqual([{ ip: '10.0.0.1' }, { ip: 'fd00::1' }]);
  });
});

describe('conditions', () => {
  test('the scheduler’s word stays with home, and is given where none has spoken', () => {
    const mine = { type: 'PodScheduled', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' };
    const home = homePod({ status: { phase: 'Pending', conditions: [mine] } });
    expect(condition(shown(home, RUNNING), 'PodScheduled')).toEqual(mine);
    expect(condition(shown(homePod(), RUNNING), 'PodScheduled')).toMatchObject({ lastTransitionTime: LATER });
  });

  test('what the kubelet no longer says is gone, what others at home said stays', () => {
    const conditions = [
      { type: 'PodResizePending', status: 'True' },
      { type: 'example.com/checked', status: 'True' },
    ];
    const status = shown(homePod({ status: { phase: 'Running', conditions } }), RUNNING);
    expect(condition(status, 'PodResizePending')).toBeUndefined();
    expect(condition(status, 'example.com/checked')).toBeDefined();
  });

  test('what controllers over there said stays there', () => {
    const conditions = [
      { type: 'example.com/theirs', status: 'True' },
      { type: 'DisruptionTarget', status: 'True' },
    ];
    const status = shown(homePod(), { ...RUNNING, conditions });
    expect(condition(status, 'example.com/theirs')).toBeUndefined();
    expect(condition(status, 'DisruptionTarget')).toBeDefined();
  });

  test('unschedulable over there: said apart, with the reason in front of everybody', () => {
    const conditions = [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' },
    ];
    const status = shown(homePod(), { phase: 'Pending', conditions });
    expect(status).toMatchObject({ reason: 'Unschedulable', message: expect.stringContaining('0/3 nodes') });
    expect(condition(status, CONDITION_OFFLOADED)).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
    });
  });

  test.each([
    ['closed', [], 'False'],
    ['opened at home', [{ type: 'lb', status: 'True' }], 'True'],
  ])('a readiness gate that is %s', (_what, conditions, expected) => {
    const home = homePod({
      spec: { readinessGates: [{ conditionType: 'lb' }] },
      status: { phase: 'Running', conditions },
    });
    // The provider's word on the gate is none.
    const there = { ...RUNNING, conditions: [...(RUNNING.conditions ?? []), { type: 'lb', status: 'True' }] };
    expect(condition(shown(home, there), 'Ready')).toMatchObject({ status: expected });
  });
});

describe('observedGeneration', () => {
  const at = (
    generation: number,
    observed: number | undefined,
    before: number | undefined,
  ): number | undefined => {
    const home = homePod({
      metadata: { generation: 3 },
      status: { phase: 'Running', ...(before === undefined ? {} : { observedGeneration: before }) },
    });
    const applied = JSON.stringify({ ...appliedOf(home), generation });
    const status = observed === undefined ? RUNNING : { ...RUNNING, observedGeneration: observed };
    return shown(home, status, { generation: 7, annotations: { [ANNOTATION_APPLIED]: applied } })
      .observedGeneration;
  };

  test.each<[string, Parameters<typeof at>, number | undefined]>([
    ['the kubelet has caught up', [3, 7, 2], 3],
    ['the kubelet lags', [3, 6, 2], 2],
    ['an older kubelet says nothing', [3, undefined, 2], 2],
    ['nothing was ever said', [3, undefined, undefined], undefined],
    ['a record from the future', [9, 7, 2], 2],
    ['a record from the past', [1, 7, 2], 2],
  ])('%s', (_what, given, expected) => {
    expect(at(...given)).toBe(expected);
  });
});

describe('hostile', () => {
  const hostile = (status: unknown): PodStatus => shown(homePod(), status as PodStatus);

  test.each([
    ['no status', undefined],
    ['a text', 'boom'],
    ['a list', [1, 2]],
    ['lists that are none', { phase: {}, conditions: 'x', containerStatuses: 7, podIPs: {} }],
    ['prototypes', JSON.parse('{"__proto__": {"phase": "Running"}, "constructor": {"prototype": 1}}')],
    ['deep', JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`)],
  ])('survived: %s', (_what, status) => {
    expect(['Pending', 'Unknown']).toContain(hostile(status).phase);
  });

  test('containers that home does not have, and twice the same, are left out', () => {
    const statuses = [container, { ...container, restartCount: 9 }, { ...container, name: 'other' }];
    expect(hostile({ ...RUNNING, containerStatuses: statuses }).containerStatuses).toEqual([container]);
  });

  test.each([
    ['restartCount', { restartCount: -1 }, { restartCount: 0 }],
    ['restartCount', { restartCount: 1e12 }, { restartCount: 0 }],
    ['restartCount', { restartCount: '7' }, { restartCount: 0 }],
    ['image', { image: {} }, { image: '' }],
    ['ready', { ready: 'yes' }, { ready: false }],
    ['state', { state: { running: { startedAt: 'soon' } } }, { state: { running: {} } }],
    [
      'state',
      { state: { running: {}, terminated: { exitCode: 1 } } },
      { state: { terminated: { exitCode: 1 } } },
    ],
    ['state', { state: { terminated: { exitCode: 'one', message: 'x'.repeat(1e5) } } }, {}],
  ])('brought into form: %s', (_what, given, expected) => {
    const [status] =
      hostile({ ...RUNNING, containerStatuses: [{ ...container, ...given }] }).containerStatuses ?? [];
    expect(status).toMatchObject(expected);
    expect(JSON.stringify(status).length).toBeLessThan(40_000);
  });

  test('conditions: names, times and statuses that the API server would refuse', () => {
    const conditions = [
      { type: 'not a name!', status: 'True' },
      { type: 'Ready', status: 'maybe', lastTransitionTime: 'yesterday', observedGeneration: -4 },
      { type: 'Ready', status: 'True' },
    ];
    const found = hostile({ ...RUNNING, conditions }).conditions?.filter(
      ({ type }) => type !== 'PodScheduled',
    );
    expect(found).toEqual([{ type: 'Ready', status: 'Unknown' }]);
  });

  test('the quality of service and the claims are home’s own', () => {
    const status = hostile({
      ...RUNNING,
      qosClass: 'Guaranteed',
      nominatedNodeName: 'x',
      resourceClaimStatuses: [{}],
    });
    expect(status.qosClass).toBeUndefined();
    expect(status.nominatedNodeName).toBeUndefined();
    expect(status.resourceClaimStatuses).toBeUndefined();
  });
});

describe('refused over there', () => {
  const refusing = (home: Pod, what: string): PodStatus => {
    const applied = JSON.stringify(appliedOf(home, new Map([[what, 'violates PodSecurity']])));
    return shown(home, RUNNING, { annotations: { [ANNOTATION_APPLIED]: applied } });
  };

  test('an ephemeral container has ended, with the reason', () => {
    const home = homePod({ spec: { ephemeralContainers: [{ name: 'debug', image: 'tools' }] } });
    expect(refusing(home, 'ephemeral container "debug"').ephemeralContainerStatuses).toMatchObject([
      { name: 'debug', state: { terminated: { exitCode: 128, message: 'violates PodSecurity' } } },
    ]);
  });

  test('a resize is pending, infeasible', () => {
    expect(condition(refusing(homePod(), 'resources'), 'PodResizePending')).toMatchObject({
      status: 'True',
      reason: 'Infeasible',
      message: 'violates PodSecurity',
    });
  });
});

describe('without a body', () => {
  const refusal = {
    reason: 'MissingReference',
    message: 'no',
    waiting: new Map([['main', 'secret "x" not found']]),
  } as const;

  test('refused: Pending with the cause, and the container waits', () => {
    expect(refusedStatus(homePod(), refusal, NOW)).toMatchObject({
      phase: 'Pending',
      reason: 'MissingReference',
      containerStatuses: [{ state: { waiting: { reason: 'CreateContainerConfigError' } } }],
    });
  });

  test('refused again is the same, also as the API server has stored it', () => {
    const first = refusedStatus(homePod(), refusal, NOW);
    const stored = {
      ...first,
      conditions: first.conditions?.map((one) => ({ ...one, lastProbeTime: null as unknown as string })),
      containerStatuses: first.containerStatuses?.map((one) => ({ ...one, resources: {} })),
    } as PodStatus;
    expect(sameStatus(refusedStatus(homePod({ status: stored }), refusal, LATER), stored)).toBe(true);
    expect(sameStatus({ ...stored, message: 'other' }, stored)).toBe(false);
  });

  test('lost: ended as after an eviction, terminated containers as they were', () => {
    const ended = { ...container, name: 'done', state: { terminated: { exitCode: 0 } } };
    const status = lostStatus(
      homePod({ status: { ...RUNNING, containerStatuses: [container, ended] } }),
      'gone',
      LATER,
    );
    expect(status).toMatchObject({
      phase: 'Failed',
      containerStatuses: [{ ready: false, state: { terminated: { exitCode: 137 } } }, ended],
    });
    expect(condition(status, 'Ready')).toMatchObject({ status: 'False', lastTransitionTime: LATER });
    expect(condition(status, 'DisruptionTarget')).toMatchObject({ status: 'True' });
  });

  test('refused for want of a place: since when it has been so, whichever reason it is', () => {
    const since = (reason: 'ExceededQuota' | 'MissingReference', home: Pod, at: string): object | undefined =>
      condition(refusedStatus(home, { reason, message: at }, at), CONDITION_OFFLOADED);
    const first = refusedStatus(homePod(), { reason: 'Unschedulable', message: 'full' }, NOW);
    const placeless = homePod({ status: first });
    expect(since('ExceededQuota', placeless, LATER)).toMatchObject({
      lastTransitionTime: NOW,
      message: LATER,
    });
    expect(since('MissingReference', placeless, LATER)).toMatchObject({ lastTransitionTime: LATER });
    const keyless = homePod({ status: refusedStatus(homePod(), refusal, NOW) });
    expect(since('ExceededQuota', keyless, LATER)).toMatchObject({ lastTransitionTime: LATER });
    expect(since('MissingReference', keyless, LATER)).toMatchObject({ lastTransitionTime: NOW });
  });

  test("a DaemonSet's pod counts as ready, with no address, and says that nothing runs", () => {
    const status = stayHomeStatus(homePod(), 'stays home', NOW);
    expect(status).toMatchObject({ phase: 'Pending', reason: 'DaemonSetNotOffloaded' });
    expect(condition(status, 'Ready')).toMatchObject({ status: 'True', lastTransitionTime: NOW });
    expect(condition(status, CONDITION_OFFLOADED)).toMatchObject({ status: 'False' });
    expect(status.podIP ?? status.podIPs).toBeUndefined();
    expect(stayHomeStatus(homePod({ status }), 'stays home', LATER)).toEqual(status);
    // The node controller says so of all pods of a node that was silent.
    const silent = status.conditions?.map((one) =>
      one.type === 'Ready' ? { ...one, status: 'False' } : one,
    );
    const again = stayHomeStatus(homePod({ status: { ...status, conditions: silent ?? [] } }), 'x', LATER);
    expect(condition(again, 'Ready')).toMatchObject({ status: 'True', lastTransitionTime: LATER });
    expect(again.conditions?.filter(({ type }) => type === 'Ready')).toHaveLength(1);
  });

  test('ended at home: failed, and what others said of it stays', () => {
    const target = { type: 'DisruptionTarget', status: 'True', reason: 'ReleasedFromVirtualNode' };
    const refused = refusedStatus(homePod(), { reason: 'Unschedulable', message: 'full' }, NOW);
    const home = homePod({ status: { ...refused, conditions: [...(refused.conditions ?? []), target] } });
    const status = endedStatus(home, LATER);
    expect(status.phase).toBe('Failed');
    expect(status.reason).toBeUndefined();
    expect(status.conditions).toEqual([target]);
  });

  test('unshowable: all as before, and the cause', () => {
    const status = unshowableStatus(homePod({ status: RUNNING }), 'refused', LATER);
    expect(status).toMatchObject({ phase: 'Running', podIP: '10.0.0.7' });
    expect(condition(status, CONDITION_OFFLOADED)).toMatchObject({ reason: 'Invalid', message: 'refused' });
  });
});
