import { describe, expect, test } from '@jest/globals';
import { MAX_LENT_NAMESPACES } from '../../../../src/api/limits.ts';
import type { OffloadedNamespace } from '../../../../src/api/namespace-offloading.ts';
import type { NamespaceMapping, VirtualNode } from '../../../../src/api/virtual-node.ts';
import type { DesiredNamespaces } from '../../../../src/peering/borrowing/facts.ts';
import {
  askedNamespaces,
  desiredNamespaces,
  isNamed,
  mappingsOf,
  usedNamespaces,
} from '../../../../src/peering/borrowing/namespaces.ts';
import { policy } from './support/world.ts';

const there = (homeNamespace: string, tenantNamespace = `${homeNamespace}-t`): NamespaceMapping => ({
  homeNamespace,
  tenantNamespace,
});

const wanted = (
  offloaded: Partial<OffloadedNamespace>[],
  more: Partial<Parameters<typeof desiredNamespaces>[0]> = {},
): DesiredNamespaces =>
  desiredNamespaces({
    intent: { wanted: true, namespaces: [] },
    offloaded: offloaded.map((one) => ({ homeNamespace: 'shop', reflection: [], ...one })),
    mayOffload: (name) => !name.startsWith('kube-'),
    agreed: [],
    ...more,
  });

const virtualNode = (spec: NamespaceMapping[], status: NamespaceMapping[] = spec): VirtualNode =>
  ({ spec: { namespaces: spec }, status: { namespaces: status } }) as VirtualNode;

describe('what is wanted', () => {
  test('by a policy, by a ForeignCluster, by NamespaceOffloadings; each once', () => {
    const intent = {
      wanted: true,
      namespaces: ['shop', 'web'],
      policy: policy({ namespaces: ['shop', 'data'] }),
    };
    const { names, leftOut } = wanted([{ homeNamespace: 'api' }, { homeNamespace: 'kube-system' }], {
      intent,
    });
    expect(names).toEqual(['api', 'data', 'shop', 'web']);
    expect(leftOut).toEqual(['kube-system']);
    expect(['data', 'web', 'shop', 'api'].filter((name) => isNamed(intent, name))).toEqual([
      'data',
      'web',
      'shop',
    ]);
    expect(isNamed({ wanted: true, namespaces: [] }, 'shop')).toBe(false);
  });

  test('of more than a provider takes, first what is there already', () => {
    const many = Array.from({ length: MAX_LENT_NAMESPACES + 10 }, (_, index) => ({
      homeNamespace: `a-${String(index).padStart(3, '0')}`,
    }));
    const { names } = wanted([...many, { homeNamespace: 'zoo' }], { agreed: [there('zoo')] });
    expect(names).toHaveLength(MAX_LENT_NAMESPACES);
    expect(names).toContain('zoo');
    expect(names).toContain('a-000');
    expect(names).not.toContain('a-070');
  });
});

describe('what is used of what a provider maps', () => {
  test.each([
    ['what nobody asked for', [], [there('secret')], []],
    ['any name', [{}], [there('shop')], [there('shop')]],
    [
      'the name that was asked for',
      [{ remoteName: 'store' }],
      [there('shop', 'store')],
      [there('shop', 'store')],
    ],
    ['another name than was asked for', [{ remoteName: 'store' }], [there('shop')], []],
  ])('%s', (_what, offloaded, offered, used) => {
    expect(usedNamespaces(offered, wanted(offloaded))).toEqual(used);
  });

  test('with the rules as the API server stores them', () => {
    const all = wanted([
      { reflection: [{ resource: 'configmaps', policy: 'All' }] },
      { homeNamespace: 'web' },
    ]);
    expect(mappingsOf([there('shop'), there('web')], all)).toEqual([
      { ...there('shop'), reflection: [{ group: '', resource: 'configmaps', policy: 'All' }] },
      there('web'),
    ]);
  });
});

describe('what is asked for', () => {
  test('names of those that insist on one', () => {
    const all = wanted([{ remoteName: 'store' }, { homeNamespace: 'web' }]);
    expect(askedNamespaces(all, [], [])).toEqual({ namespaces: ['shop', 'web'], names: { shop: 'store' } });
  });

  test('a name that no peer would read as a key is not said, and so not had', () => {
    const all = wanted([{ homeNamespace: 'constructor', remoteName: 'constructor' }]);
    expect(askedNamespaces(all, [], [])).toEqual({ namespaces: ['constructor'] });
    expect(usedNamespaces([there('constructor')], all)).toEqual([]);
  });

  test('one that is no longer wanted, while an agent holds it and no longer', () => {
    const [all, agreed] = [wanted([{ homeNamespace: 'web' }]), [there('shop'), there('web')]];
    const asked = (...nodes: VirtualNode[]): string[] => askedNamespaces(all, agreed, nodes).namespaces;
    expect(asked(virtualNode(agreed))).toEqual(['shop', 'web']);
    expect(asked(virtualNode([there('web')], agreed))).toEqual(['shop', 'web']);
    expect(asked(virtualNode([there('web')]), virtualNode([there('web')], agreed))).toEqual(['shop', 'web']);
    expect(asked(virtualNode([there('web')]))).toEqual(['web']);
  });

  test('what an agent holds without a contract is not asked for', () => {
    expect(askedNamespaces(wanted([]), [], [virtualNode([], [there('secret')])]).namespaces).toEqual([]);
  });

  test('another name only when no agent holds the old one', () => {
    const [all, agreed] = [wanted([{ remoteName: 'store' }]), [there('shop')]];
    expect(askedNamespaces(all, agreed, [virtualNode([], agreed)])).toEqual({ namespaces: ['shop'] });
    expect(askedNamespaces(all, agreed, [virtualNode([])])).toEqual({
      namespaces: ['shop'],
      names: { shop: 'store' },
    });
  });
});

test.each([
  ['it leaves', { wanted: true, namespaces: [] }, true],
  ['it leaves, and people name it by other means', { wanted: true, namespaces: ['shop'] }, undefined],
])('how it is mapped where %s', (_what, intent, leaving) => {
  const desired = wanted([{ leaving: true }], { intent });
  expect(mappingsOf([there('shop')], desired)).toEqual([
    { ...there('shop'), ...(leaving === true && { leaving }) },
  ]);
});
