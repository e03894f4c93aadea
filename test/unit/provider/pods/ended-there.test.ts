import { expect, test } from '@jest/globals';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { forgeStatus } from '../../../../src/provider/forge/status.ts';
import { decide, type Situation } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING, situation } from '../support/pods.ts';

/** The remote pod is being ended, and not by home. */
const endingBody = (left: number): Pod =>
  remotePod(homePod(), {
    metadata: { deletionTimestamp: NOW, deletionGracePeriodSeconds: left },
    status: RUNNING,
  });
const owned = (status: PodStatus): Pod =>
  homePod({
    metadata: {
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true }],
    },
    status,
  });
const told = owned(forgeStatus(owned(RUNNING), endingBody(30), CONTEXT, NOW));

test.each<[string, Partial<Situation>, object]>([
  [
    'a pod that the foreign cluster ends: first that it is not at fault',
    { home: owned(RUNNING), remote: endingBody(30) },
    {
      do: 'writeStatus',
      status: { conditions: expect.arrayContaining([expect.objectContaining({ type: 'DisruptionTarget' })]) },
    },
  ],
  [
    'then it goes, with the grace period that its containers have',
    { home: told, remote: endingBody(30) },
    { do: 'letGo', gracePeriodSeconds: 30 },
  ],
  ['by force', { home: told, remote: endingBody(0) }, { do: 'letGo', gracePeriodSeconds: 1 }],
  [
    'out of contact nothing is believed',
    { home: told, remote: endingBody(30), contact: false },
    { do: 'nothing' },
  ],
  [
    'one that nobody replaces stays until its containers have ended',
    { home: homePod({ status: { ...told.status } }), remote: endingBody(30) },
    { do: 'writeStatus' },
  ],
  [
    'one that has not run is made anew, so it stays',
    { home: owned({ phase: 'Pending' }), remote: endingBody(30) },
    { do: 'writeStatus' },
  ],
])('%s', (_name, given, expected) => {
  expect(decide(situation(given))).toMatchObject(expected);
});
