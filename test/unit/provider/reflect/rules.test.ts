import { describe, expect, test } from '@jest/globals';
import type { ReflectionPolicy, ReflectionRule } from '../../../../src/api/reflection.ts';
import {
  effectiveRules,
  groupResourceKey,
  isSelected,
  ruleFor,
} from '../../../../src/provider/reflect/rules.ts';

const object = (reflect?: string): { metadata: { annotations?: Record<string, string> } } => ({
  metadata: reflect === undefined ? {} : { annotations: { 'tributary.dev/reflect': reflect } },
});

describe('which rule', () => {
  test.each<[string, ReflectionRule[] | undefined, string, ReflectionPolicy]>([
    ['the default of Services', undefined, 'services', 'All'],
    ['the default of Secrets', [], 'secrets', 'Referenced'],
    ['none of other kinds', undefined, 'crontabs.stable.example.com', 'None'],
    ['the own one first', [{ resource: 'services', policy: 'OptIn' }], 'services', 'OptIn'],
    [
      'not that of another group',
      [{ group: 'other.example.com', resource: 'services', policy: 'None' }],
      'services',
      'All',
    ],
    [
      'the first of two',
      [
        { group: '', resource: 'services', policy: 'None' },
        { resource: 'services', policy: 'OptIn' },
      ],
      'services',
      'None',
    ],
    ['not the prototype', undefined, 'constructor', 'None'],
  ])('%s', (_name, rules, kind, policy) => {
    const [resource = '', ...group] = kind.split('.');
    expect(ruleFor(rules, { group: group.join('.'), resource })).toMatchObject({ resource, policy });
  });

  test('each kind once, defaults included', () => {
    const rules: ReflectionRule[] = [
      { group: 'stable.example.com', resource: 'crontabs', policy: 'All', drop: ['spec.image'] },
      { resource: 'services', policy: 'None' },
    ];
    const shown = effectiveRules(rules).map((rule) => `${groupResourceKey(rule)} ${rule.policy}`);
    expect(shown).toEqual([
      'configmaps Referenced',
      'secrets Referenced',
      'services None',
      'ingresses.networking.k8s.io All',
      'networkpolicies.networking.k8s.io All',
      'crontabs.stable.example.com All',
    ]);
  });
});

describe('which objects', () => {
  test.each<[ReflectionPolicy, string | undefined, boolean, boolean]>([
    ['All', undefined, false, true],
    ['All', 'false', true, false],
    ['All', 'yes', false, true],
    ['OptIn', undefined, true, false],
    ['OptIn', 'true', false, true],
    ['OptIn', 'True', false, false],
    ['Referenced', undefined, false, false],
    ['Referenced', undefined, true, true],
    ['Referenced', 'true', false, true],
    ['Referenced', 'false', true, false],
    ['None', 'true', true, false],
  ])('%s, annotation %s, referenced %s: %s', (policy, word, isReferenced, wanted) => {
    expect(isSelected({ policy }, object(word), isReferenced)).toBe(wanted);
  });
});
