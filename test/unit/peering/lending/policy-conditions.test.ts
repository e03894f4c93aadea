import { expect, test } from '@jest/globals';
import type { PeeringRequest } from '../../../../src/api/peering-request.ts';
import type { ReflectableKind } from '../../../../src/api/reflection.ts';
import type { SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import type { Condition } from '../../../../src/api/wire.ts';
import { policyConditions } from '../../../../src/peering/lending/policy-conditions.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const OTHER = { type: 'Other', status: 'True', reason: 'X', message: '', lastTransitionTime: '' } as const;
const widgets = { group: 'shop.example', resource: 'widgets' };
const jobs = { group: 'batch', resource: 'jobs' };

const conditionsOf = (
  of: SharingPolicy,
  peers: PeeringRequest[] = [],
  nowMs = NOW_MS,
): readonly Condition[] =>
  policyConditions(of, { peers, hasRuntimeClass: (name) => name === 'gvisor' }, nowMs);
const policy = (reflectableKinds?: ReflectableKind[], conditions: Condition[] = [OTHER]): SharingPolicy =>
  ({
    metadata: { name: 'p', generation: 3 },
    spec: { peers: {}, ...(reflectableKinds && { reflectableKinds }) },
    status: { conditions },
  }) as unknown as SharingPolicy;
const peer = (status: 'True' | 'False', reason: string): PeeringRequest =>
  ({
    status: { conditions: [{ type: 'KindsReflectable', status, reason, message: `says ${reason}` }] },
  }) as unknown as PeeringRequest;

test.each<[ReflectableKind[] | undefined, PeeringRequest[], object]>([
  [[widgets], [], { status: 'True', reason: 'AsExpected', observedGeneration: 3 }],
  [[widgets], [peer('True', 'AsExpected')], { status: 'True' }],
  [[widgets, jobs], [], { status: 'False', reason: 'KindRefused' }],
  [[widgets], [peer('True', 'AsExpected'), peer('False', 'RightsMissing')], { reason: 'RightsMissing' }],
])('kinds %j with peers %j are told as %j', (kinds, peers, wanted) => {
  const conditions = conditionsOf(policy(kinds), peers);
  expect(conditions).toHaveLength(2);
  expect(conditions[1]).toMatchObject({ type: 'KindsReflectable', ...wanted });
});

test('without kinds there is no condition, and one from before goes', () => {
  const before = conditionsOf(policy([widgets]));
  expect(conditionsOf(policy(undefined, [...before]))).toEqual([OTHER]);
});

test('the same again is the same list', () => {
  const before = [...conditionsOf(policy([widgets]))];
  expect(conditionsOf(policy([widgets], before), [], NOW_MS + 1000)).toBe(before);
});

test.each([
  ['gvisor', { status: 'True', reason: 'AsExpected', observedGeneration: 3 }],
  ['kata', { status: 'False', reason: 'RuntimeClassMissing' }],
])('of the runtime class %s it says %j', (runtimeClassName, wanted) => {
  const plain = policy();
  const conditions = conditionsOf({ ...plain, spec: { ...plain.spec, runtimeClassName } });
  expect(conditions).toHaveLength(2);
  expect(conditions[1]).toMatchObject({ type: 'RuntimeClassFound', ...wanted });
  expect(conditionsOf(policy(undefined, [...conditions]))).toEqual([OTHER]);
});
