import { describe, expect, test } from '@jest/globals';

import {
  isOpenName,
  isReservedNamespace,
  isReservedWordIn,
} from '../../../../src/hosting/tenants/reserved-names.ts';
import { chooseTenantNames } from '../../../../src/hosting/tenants/tenant-names.ts';

const RESERVED = (
  'com org io de svc pod cluster local internal arpa 10 xn--p1ai default openshift openshift-x ' +
  'istio-system gatekeeper-system kyverno cattle-fleet'
).split(' ');

describe('names that no tenant is given', () => {
  test.each(RESERVED)('%s', (name) => {
    expect(isReservedNamespace(name)).toBe(true);
    const asked = [{ homeNamespace: 'shop', tenantNamespace: name }];
    const options = { consumer: 'c'.repeat(26), before: [], isTaken: () => false, asked, open: ['*', name] };
    const { namespaces, withheld } = chooseTenantNames(['shop'], { ...options, naming: 'SameIfFree' });
    expect(namespaces).toEqual([]);
    expect(withheld[0]?.reason).toBe('NamingNotAllowed');
  });

  test.each(['shop', 'team-a', 'com-shop', 'systematic', 'my-istio', 'shop-2', 'abc', 'x'])(
    'not %s',
    (name) => {
      expect(isReservedNamespace(name)).toBe(false);
    },
  );

  test.each([...RESERVED, 'shop', 'team-a', 'systematic'])('CEL says the same of %s', (name) => {
    const [, list = '', pattern = ''] =
      /in \[(.*)\] \|\| name\.matches\('(.*)'\)\)$/u.exec(isReservedWordIn('name')) ?? [];
    expect(list.includes(`'${name}'`) || new RegExp(pattern, 'u').test(name)).toBe(isReservedNamespace(name));
  });
});

test('a home namespace that is named after a program gets a name that no policy exempts', () => {
  const { namespaces } = chooseTenantNames(['openshift-evil', 'kube-evil'], {
    consumer: 'c'.repeat(26),
    before: [],
    isTaken: () => false,
  });
  expect(namespaces.map(({ tenantNamespace }) => tenantNamespace)).toEqual([
    'peer-openshift-evil-cccccccc',
    'peer-kube-evil-cccccccc',
  ]);
});

describe('names that a policy opens', () => {
  test.each<[string, string[], boolean]>([
    ['shop', [], false],
    ['shop', ['shop'], true],
    ['shops', ['shop'], false],
    ['team-a', ['team-*'], true],
    ['team-', ['team-*'], true],
    ['team', ['team*'], false],
    ['shop', ['*'], false],
    ['shop-eu', ['*'], true],
    ['a-x-b', ['a*x*b'], true],
    ['a-b', ['a*x*b'], false],
    ['a-xx-b-b', ['a*x*x*b'], true],
    ['ab-a', ['ab-*b-a'], false],
  ])('%s by %j: %s', (name, open, expected) => {
    expect(isOpenName(name, open)).toBe(expected);
  });
});
