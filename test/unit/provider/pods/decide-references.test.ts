import { expect, test } from '@jest/globals';
import { refusedStatus } from '../../../../src/provider/forge/status.ts';
import { withAcceptance } from '../../../../src/provider/forge/waiting-status.ts';
import { decide, type Situation } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, NOW, situation } from '../support/pods.ts';

/** What a pod refers to and is not there yet. */
const fresh = homePod();
const missing = { kind: 'Secret', name: 'key', optional: false, usage: 'volume', user: 'keys' } as const;
const NOTE = { reason: 'MandatorySecretNotFound', message: 'secret "key" not found' } as const;
const wants = { reason: 'MissingReference', message: 'secret "key" not found' } as const;
const waiting = homePod({ status: withAcceptance(fresh, refusedStatus(fresh, wants, NOW), CONTEXT, NOW) });

test.each<[string, Partial<Situation>, object]>([
  [
    'a new pod whose Secret is on its way',
    { home: fresh, references: { missing: [], refused: [], pending: true, notes: [] } },
    { do: 'nothing' },
  ],
  [
    'a new pod whose Secret does not exist',
    { home: fresh, references: { missing: [missing], refused: [], pending: true, notes: [NOTE] } },
    {
      do: 'refuse',
      reason: 'MissingReference',
      message: 'MountVolume.SetUp failed for volume "keys": secret "key" not found',
      status: { hostIP: '192.0.2.1', startTime: NOW },
      notes: [NOTE],
    },
  ],
  [
    'a new pod with several containers, of which the environment of one lacks a Secret',
    {
      home: homePod({ spec: { initContainers: [{ name: 'first', image: 'web:1' }] } }),
      references: {
        missing: [{ ...missing, usage: 'environment', user: 'main' }],
        refused: [],
        pending: false,
        notes: [NOTE],
      },
    },
    { do: 'create', notes: [NOTE] },
  ],
  ['a pod that has waited for a Secret, which is there', { home: waiting }, { do: 'create' }],
  [
    'a pod that has waited for a Secret, and is now refused',
    {
      home: waiting,
      references: {
        missing: [],
        refused: [{ reason: 'ExceededQuota', message: 'full' }],
        pending: true,
        notes: [],
      },
    },
    { do: 'refuse', reason: 'ExceededQuota', status: expect.not.objectContaining({ startTime: NOW }) },
  ],
  [
    'a pod that has waited for a Secret, in a namespace unknown',
    { home: waiting, context: undefined },
    { do: 'refuse', reason: 'NamespaceNotOffloaded' },
  ],
  [
    'a new pod whose Secret the provider refuses',
    {
      home: fresh,
      references: {
        missing: [],
        refused: [{ reason: 'ExceededQuota', message: 'full' }],
        pending: true,
        notes: [NOTE],
      },
    },
    { do: 'refuse', reason: 'ExceededQuota', message: 'full' },
  ],
])('%s', (_name, given, expected) => {
  expect(decide(situation(given))).toMatchObject(expected);
});
