import { expect, test } from '@jest/globals';
import { forgeTetherGuards } from '../../../../src/peering/mode/guards.ts';

test('what a guard refuses is forbidden, and not invalid', () => {
  const policies = forgeTetherGuards().filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
  expect(policies.length).toBeGreaterThan(5);
  for (const policy of policies) {
    expect(policy).toMatchObject({ spec: { validations: [{ reason: 'Forbidden' }] } });
  }
});
