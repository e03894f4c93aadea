import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { chooseTenantNames, type TenantNames } from '../../../../src/peering/lending/tenant-names.ts';

const consumer = 'abcdefghijklmnopqrstuvwxyz';
const choose = (
  names: string[],
  taken: string[] = [],
  before: { homeNamespace: string; tenantNamespace: string }[] = [],
): TenantNames => chooseTenantNames(names, { consumer, before, isTaken: (name) => taken.includes(name) });

test('the home name and the beginning of the ID', () => {
  expect(choose(['shop', 'default', 'shop'])).toEqual({
    namespaces: [
      { homeNamespace: 'shop', tenantNamespace: 'shop-abcdefgh' },
      { homeNamespace: 'default', tenantNamespace: 'default-abcdefgh' },
    ],
    taken: [],
  });
});

test('a name of somebody else is passed over; without a free one there is no tenant', () => {
  expect(choose(['shop'], ['shop-abcdefgh']).namespaces).toEqual([
    { homeNamespace: 'shop', tenantNamespace: 'shop-abcdefghijklm' },
  ]);
  expect(choose(['shop', 'web'], ['shop-abcdefgh', 'shop-abcdefghijklm', `shop-${consumer}`])).toEqual({
    namespaces: [{ homeNamespace: 'web', tenantNamespace: 'web-abcdefgh' }],
    taken: ['shop'],
  });
});

test('what was chosen stays, unless it is no longer free', () => {
  const before = [{ homeNamespace: 'shop', tenantNamespace: 'shop-abcdefghijklm' }];
  expect(choose(['shop'], [], before).namespaces).toEqual(before);
  expect(choose(['shop'], ['shop-abcdefghijklm'], before).namespaces[0]?.tenantNamespace).toBe(
    'shop-abcdefgh',
  );
  expect(
    choose(['shop'], [], [{ homeNamespace: 'shop', tenantNamespace: 'kube-system' }]).namespaces[0],
  ).toEqual({
    homeNamespace: 'shop',
    tenantNamespace: 'shop-abcdefgh',
  });
});

test('any names: DNS labels, no two homes in one tenant, the same again', () => {
  const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  fc.assert(
    fc.property(fc.uniqueArray(label, { maxLength: 20 }), (names) => {
      const wanted = [...names, `${'x'.repeat(60)}-aa`, `${'x'.repeat(60)}-bb`].map((name) =>
        name.slice(0, 63),
      );
      const { namespaces } = choose(wanted);
      const tenants = namespaces.map(({ tenantNamespace }) => tenantNamespace);
      expect(choose(wanted).namespaces).toEqual(namespaces);
      expect(tenants.every((name) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))).toBe(true);
    }),
  );
  const long = ['aa', 'bb'].map((end) => `${'x'.repeat(61)}${end}`);
  const [one, other] = choose(long).namespaces;
  expect(one?.tenantNamespace).not.toBe(other?.tenantNamespace);
  expect(one?.tenantNamespace).toHaveLength(63);
});
