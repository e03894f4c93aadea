import { describe, expect, test } from '@jest/globals';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { sameStatus } from '../../../../src/provider/forge/same-status.ts';
import { forgeStatus, refusedStatus, unshowableStatus } from '../../../../src/provider/forge/status.ts';
import { isWaiting, withAcceptance } from '../../../../src/provider/forge/waiting-status.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const LATER = '2026-01-01T00:05:00Z';
const WANTS = { reason: 'MissingReference', message: 'secret "key" not found' } as const;
const waitingStatus = (home: Pod, now = NOW): PodStatus =>
  withAcceptance(home, refusedStatus(home, WANTS, now), CONTEXT, now);
const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: NOW };
const bound = homePod({ status: { phase: 'Pending', conditions: [scheduled] } });

describe('a pod that waits for an object', () => {
  test('is shown as a kubelet shows a pod that it has accepted', () => {
    const of = { lastTransitionTime: NOW, observedGeneration: 1 };
    const unready = { reason: 'ContainersNotReady', message: 'containers with unready status: [main]' };
    const { conditions, ...status } = waitingStatus(bound);
    expect(status).toEqual({
      phase: 'Pending',
      reason: 'MissingReference',
      message: 'secret "key" not found',
      startTime: NOW,
      hostIP: '192.0.2.1',
      hostIPs: [{ ip: '192.0.2.1' }],
      observedGeneration: 1,
    });
    expect(conditions).toEqual([
      scheduled,
      expect.objectContaining({ type: 'tributary.dev/Offloaded', status: 'False' }),
      { type: 'PodReadyToStartContainers', status: 'False', ...of },
      { type: 'Initialized', status: 'True', ...of },
      { type: 'ContainersReady', status: 'False', ...unready, ...of },
      { type: 'Ready', status: 'False', ...unready, ...of },
    ]);
  });

  test('names its init containers, sidecars among those that are not ready; bound by hand, it is scheduled', () => {
    const named = (name: string): { name: string; image: string } => ({ name, image: 'x' });
    const initContainers = [named('first'), { ...named('side'), restartPolicy: 'Always' }];
    const { conditions } = waitingStatus(homePod({ spec: { initContainers } }));
    expect(conditions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'Initialized',
          status: 'False',
          reason: 'ContainersNotInitialized',
          message: 'containers with incomplete status: [first side]',
        }),
        expect.objectContaining({ type: 'Ready', message: 'containers with unready status: [side main]' }),
        expect.objectContaining(scheduled),
      ]),
    );
  });

  test('waits on without another write, also where the API server keeps no observed generations', () => {
    const byHand = waitingStatus(homePod());
    expect(sameStatus(waitingStatus(homePod({ status: byHand }), LATER), byHand)).toBe(true);
    const first = waitingStatus(bound);
    expect(sameStatus(waitingStatus(homePod({ status: first }), LATER), first)).toBe(true);
    const { observedGeneration: _generation, ...plain } = first;
    const dropped = {
      ...plain,
      conditions: (first.conditions ?? []).map(({ observedGeneration: _observed, ...one }) => one),
    };
    expect(sameStatus(waitingStatus(homePod({ status: dropped }), LATER), dropped)).toBe(true);
    const changed = waitingStatus(homePod({ metadata: { generation: 2 }, status: first }), LATER);
    expect(changed).toMatchObject({ observedGeneration: 2, startTime: NOW });
  });

  test('starts when it was accepted, whenever its body starts', () => {
    const home = homePod({ status: waitingStatus(bound) });
    const later = { ...RUNNING, startTime: LATER };
    const status = forgeStatus(home, remotePod(home, { status: later }), CONTEXT, LATER);
    expect(status).toMatchObject({ phase: 'Running', startTime: NOW });
    expect(isWaiting(homePod({ status }))).toBe(false);
  });

  test.each<[string, (home: Pod) => PodStatus]>([
    [
      'refused for another reason',
      (home) => refusedStatus(home, { reason: 'Forbidden', message: '' }, LATER),
    ],
    ['in a state that home cannot show', (home) => unshowableStatus(home, 'x', LATER)],
    [
      'that finds no place over there',
      (home) => {
        const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
        return forgeStatus(
          home,
          remotePod(home, { status: { phase: 'Pending', conditions } }),
          CONTEXT,
          LATER,
        );
      },
    ],
  ])('%s: it has not started, and nothing of that remains', (_, next) => {
    const status = next(homePod({ status: waitingStatus(bound) }));
    expect(status.startTime ?? status.hostIP ?? status.hostIPs).toBeUndefined();
    expect(status.conditions?.map(({ type }) => type)).toEqual(['PodScheduled', 'tributary.dev/Offloaded']);
  });
});
