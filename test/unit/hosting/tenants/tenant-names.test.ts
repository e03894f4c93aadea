import { describe, expect, test } from '@jest/globals';

import type { NamespaceOffer } from '../../../../src/api/offer.ts';
import { chooseTenantNames, type TenantNames } from '../../../../src/hosting/tenants/tenant-names.ts';
import { fc } from '../../../support/property.ts';

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
    withheld: [],
  });
});

test('a name of somebody else is passed over; without a free one there is no tenant', () => {
  expect(choose(['shop'], ['shop-abcdefgh']).namespaces).toEqual([
    { homeNamespace: 'shop', tenantNamespace: 'shop-abcdefghijklm' },
  ]);
  expect(choose(['shop', 'web'], ['shop-abcdefgh', 'shop-abcdefghijklm', `shop-${consumer}`])).toEqual({
    namespaces: [{ homeNamespace: 'web', tenantNamespace: 'web-abcdefgh' }],
    taken: ['shop'],
    withheld: [
      { homeNamespace: 'shop', reason: 'NameTaken', message: 'other namespaces bear all names for it' },
    ],
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

describe('SameIfFree', () => {
  const same = (names: string[], taken: string[] = [], before: NamespaceOffer[] = []): NamespaceOffer[] =>
    chooseTenantNames(names, {
      consumer,
      before,
      naming: 'SameIfFree',
      open: ['shop', 'kube-system', 'default'],
      isTaken: (name) => taken.includes(name),
    }).namespaces;

  test.each([
    ['a free name', ['shop'], [], 'shop'],
    ['a name of somebody else', ['shop'], ['shop'], 'shop-abcdefgh'],
    ["the cluster's own", ['default'], [], 'default-abcdefgh'],
    ['one that the policy does not open', ['web'], [], 'web-abcdefgh'],
    ['a reserved one, as ever', ['kube-system'], [], 'peer-kube-system-abcdefgh'],
    ['one of ours, likewise', ['tributary-system'], [], 'peer-tributary-system-abcdefgh'],
  ])('%s', (_what, names, taken, tenant) => {
    expect(same(names, taken)[0]?.tenantNamespace).toBe(tenant);
  });

  test('what was chosen before stays', () => {
    const before = [{ homeNamespace: 'shop', tenantNamespace: 'shop-abcdefgh' }];
    expect(same(['shop'], [], before)).toEqual(before);
  });

  test('two home namespaces never meet in one tenant', () => {
    const before = [{ homeNamespace: 'shop', tenantNamespace: 'shop-abcdefgh' }];
    expect(same(['shop-abcdefgh', 'shop'], [], before)).toEqual([
      { homeNamespace: 'shop-abcdefgh', tenantNamespace: 'shop-abcdefgh-abcdefgh' },
      ...before,
    ]);
    expect(same(['shop-abcdefgh', 'shop'], ['shop'])).toEqual([
      { homeNamespace: 'shop-abcdefgh', tenantNamespace: 'shop-abcdefgh' },
      { homeNamespace: 'shop', tenantNamespace: 'shop-abcdefghijklm' },
    ]);
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

describe('a name that is insisted on', () => {
  const offer = (homeNamespace: string, tenantNamespace: string): NamespaceOffer => ({
    homeNamespace,
    tenantNamespace,
  });
  const insist = (
    homes: string[],
    asked: Record<string, string>,
    more: Partial<Parameters<typeof chooseTenantNames>[1]> = {},
  ): { given: Record<string, string>; not: Record<string, string> } => {
    const { namespaces, withheld, taken } = chooseTenantNames(homes, {
      consumer,
      before: [],
      asked: Object.entries(asked).map(([home, name]) => offer(home, name)),
      naming: 'SameIfFree',
      open: ['store', 'other', 'api', 'kube-public'],
      isTaken: (name) => name === 'other',
      ...more,
    });
    expect(taken).toEqual([]);
    return {
      given: Object.fromEntries(namespaces.map((one) => [one.homeNamespace, one.tenantNamespace])),
      not: Object.fromEntries(withheld.map((one) => [one.homeNamespace, one.reason])),
    };
  };
  const place = (home: string, tenant: string, ending = false): NamespaceOffer & { ending: boolean } => ({
    ...offer(home, tenant),
    ending,
  });
  const Suffixed = 'Suffixed' as const;

  test.each<[string, Record<string, string>, Parameters<typeof insist>[2], string | { not: string }]>([
    ['is given where it is free', { shop: 'store' }, {}, 'store'],
    [
      'is not given where the policy chooses',
      { shop: 'store' },
      { naming: Suffixed },
      { not: 'NamingNotAllowed' },
    ],
    ['nor by default', { shop: 'store' }, { naming: undefined }, { not: 'NamingNotAllowed' }],
    [
      'stays, whatever the policy says now',
      { shop: 'store' },
      { naming: Suffixed, before: [offer('shop', 'store')] },
      'store',
    ],
    ["is not given where it is somebody else's", { shop: 'other' }, {}, { not: 'NameTaken' }],
    [
      'is not given where another peer was promised it',
      { shop: 'store' },
      { isPromised: () => true },
      { not: 'NameTaken' },
    ],
    ['is not given where the policy does not open it', { shop: 'market' }, {}, { not: 'NamingNotAllowed' }],
    ['is given where it ends with the ID of the peer', { shop: 'market-abcdefgh' }, {}, 'market-abcdefgh'],
    [
      'stays where the policy does not open it any more',
      { shop: 'store' },
      { open: [], before: [offer('shop', 'store')] },
      'store',
    ],
    ['is never a reserved one', { shop: 'kube-public' }, {}, { not: 'NamingNotAllowed' }],
    [
      'waits until the old one is out of the contract',
      { shop: 'store' },
      { before: [offer('shop', 'shop-abcdefgh')] },
      { not: 'NameTaken' },
    ],
    [
      'waits until the old one is gone',
      { shop: 'store' },
      { places: [place('shop', 'shop-abcdefgh', true)] },
      { not: 'NameTaken' },
    ],
    [
      'waits until that of before is gone',
      { shop: 'store' },
      { places: [place('shop', 'store', true)] },
      { not: 'NameTaken' },
    ],
    [
      "is not given while it is another of the peer's",
      { shop: 'store' },
      { places: [place('web', 'store')] },
      { not: 'NameTaken' },
    ],
    ['is given where it is there', { shop: 'store' }, { places: [place('shop', 'store')] }, 'store'],
  ])('%s', (_what, asked, more, answer) => {
    expect(insist(['shop'], asked, more)).toEqual(
      typeof answer === 'string'
        ? { given: { shop: answer }, not: {} }
        : { given: {}, not: { shop: answer.not } },
    );
  });

  test('goes before a name that would only be nice, and before a later one', () => {
    expect(insist(['api', 'web', 'shop'], { web: 'api', shop: 'api' })).toEqual({
      given: { api: 'api-abcdefgh', web: 'api' },
      not: { shop: 'NameTaken' },
    });
  });

  test('one that does not insist waits as well while its own of before ends', () => {
    const places = [place('shop', 'shop-abcdefgh', true)];
    expect(insist(['shop', 'web'], {}, { naming: Suffixed, places })).toEqual({
      given: { web: 'web-abcdefgh' },
      not: { shop: 'NameTaken' },
    });
  });

  test('a tenant whose home is not written on it any more keeps its name', () => {
    const before = [offer('shop', 'store')];
    expect(insist(['shop'], { shop: 'store' }, { before, places: [place('', 'store')] }).given).toEqual({
      shop: 'store',
    });
  });

  const name = fc.constantFrom('shop', 'web', 'api', 'other', 'kube-system', 'constructor');
  test('whatever is asked: no name twice, none of others, every home either given or withheld', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name),
        fc.dictionary(name, name),
        fc.array(fc.tuple(name, name)),
        fc.constantFrom('Suffixed' as const, 'SameIfFree' as const),
        (homes, asked, before, naming) => {
          const { namespaces, withheld } = chooseTenantNames(homes, {
            consumer,
            naming,
            before: before.map(([home, tenant]) => offer(home, tenant)),
            asked: Object.entries(asked).map(([home, tenant]) => offer(home, tenant)),
            isTaken: (one) => one === 'other',
          });
          const names = namespaces.map(({ tenantNamespace }) => tenantNamespace);
          expect(new Set(names).size).toBe(names.length);
          expect(names.filter((one) => one === 'other' || one.startsWith('kube-system'))).toEqual([]);
          for (const { homeNamespace, tenantNamespace } of namespaces) {
            const name = Object.hasOwn(asked, homeNamespace) ? asked[homeNamespace] : tenantNamespace;
            expect(name).toBe(tenantNamespace);
          }
          const all = [...namespaces, ...withheld].map(({ homeNamespace }) => homeNamespace);
          expect(all.toSorted()).toEqual(homes.toSorted());
        },
      ),
    );
  });
});
