import { expect, test } from '@jest/globals';
import type { PeeringRequest } from '../../../../src/api/peering-request.ts';
import type { ReflectableKind } from '../../../../src/api/reflection.ts';
import type { SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import { policyConditions } from '../../../../src/peering/lending/policy-conditions.ts';
import type { PolicyConditions } from '../../../../src/peering/policy/policy-status.ts';

const widgets = { group: 'shop.example', resource: 'widgets' };
const jobs = { group: 'batch', resource: 'jobs' };

const PRIORITIES = [
  { name: 'quiet', value: 100, preempts: false },
  { name: 'loud', value: 100, preempts: true },
  { name: 'low', value: -1, preempts: false },
];
const LENT = ['cpu', 'memory', 'pods', 'example.com/gpu'];
const conditionsOf = (spec: Partial<SharingPolicy['spec']>, peers: PeeringRequest[] = []): PolicyConditions =>
  policyConditions(
    { metadata: { name: 'p', generation: 3 }, spec: { peers: {}, ...spec } } as unknown as SharingPolicy,
    { peers, hasRuntimeClass: (name) => name === 'gvisor', priorityClasses: PRIORITIES, lent: LENT },
  );
const peer = (status: 'True' | 'False', reason: string): PeeringRequest =>
  ({
    status: { conditions: [{ type: 'KindsReflectable', status, reason, message: `says ${reason}` }] },
  }) as unknown as PeeringRequest;

test.each<[ReflectableKind[], PeeringRequest[], object]>([
  [[widgets], [], { status: 'True', reason: 'AsExpected', observedGeneration: 3 }],
  [[widgets], [peer('True', 'AsExpected')], { status: 'True' }],
  [[widgets, jobs], [], { status: 'False', reason: 'KindRefused' }],
  [[widgets], [peer('True', 'AsExpected'), peer('False', 'RightsMissing')], { reason: 'RightsMissing' }],
])('kinds %j with peers %j are told as %j', (reflectableKinds, peers, wanted) => {
  const conditions = conditionsOf({ reflectableKinds }, peers);
  expect(conditions['KindsReflectable']).toMatchObject({ type: 'KindsReflectable', ...wanted });
});

test.each([
  ['gvisor', { status: 'True', reason: 'AsExpected', observedGeneration: 3 }],
  ['kata', { status: 'False', reason: 'RuntimeClassMissing' }],
])('of the runtime class %s it says %j', (runtimeClassName, wanted) => {
  const conditions = conditionsOf({ runtimeClassName });
  expect(conditions['RuntimeClassFound']).toMatchObject({ type: 'RuntimeClassFound', ...wanted });
});

test.each([
  [
    ['quiet'],
    {},
    { status: 'True', reason: 'AsExpected', message: 'peers may use all classes that are named' },
  ],
  [
    ['quiet', 'loud', 'low', 'gone'],
    {},
    {
      status: 'False',
      reason: 'PriorityClassNotLent',
      message:
        'not lent: pods of PriorityClass loud would push out others: it needs preemptionPolicy: Never; pods of PriorityClass low ' +
        'could be pushed out by other peers: its value -1 is below maxPriority 0; there is no PriorityClass gone',
    },
  ],
  [
    ['quiet'],
    { maxPriority: 101 },
    { status: 'False', message: expect.stringContaining('below maxPriority 101') },
  ],
  [['low'], { maxPriority: -1 }, { status: 'True' }],
])('of the priority classes %j with %j it says %j', (priorityClasses, spec, wanted) => {
  const conditions = conditionsOf({ priorityClasses, ...spec });
  expect(conditions['PriorityClassesLent']).toMatchObject({ type: 'PriorityClassesLent', ...wanted });
});

test.each([
  [['cpu', 'example.com/gpu'], { status: 'True', reason: 'AsExpected', observedGeneration: 3 }],
  [
    ['cpus', 'CPU', 'cpu'],
    {
      status: 'False',
      reason: 'PricedNotLent',
      message:
        'nothing that is lent has the name cpus, CPU, so that nobody is asked that price; lent are cpu, memory, pods, example.com/gpu. ' +
        'Correct the name, or lend the resource',
    },
  ],
  [['a', 'b', 'c', 'd', 'e', 'f'], { message: expect.stringContaining(' a, b, c, d, e, ..., ') }],
])('of prices for %j it says %j', (names, wanted) => {
  const prices = Object.fromEntries(names.map((name) => [name, { amount: '0.02', currency: 'EUR' }]));
  expect(conditionsOf({ prices })['PricesApply']).toMatchObject({ type: 'PricesApply', ...wanted });
});

test('that pods of peers may be privileged it says in so many words', () => {
  expect(conditionsOf({ podSecurity: 'privileged' })['PeersPrivileged']).toMatchObject({
    status: 'True',
    reason: 'PodSecurityPrivileged',
  });
  expect(conditionsOf({ podSecurity: 'baseline' })['PeersPrivileged']).toBeUndefined();
});

test('of what the policy does not name there is to be no condition', () => {
  expect(conditionsOf({})).toStrictEqual({
    KindsReflectable: undefined,
    PriorityClassesLent: undefined,
    PricesApply: undefined,
    PeersEndSoon: undefined,
    PeersPrivileged: undefined,
    RuntimeClassFound: undefined,
  });
});
