import { describe, expect, test } from '@jest/globals';

import type { NamespaceMapping, VirtualNode } from '../../../src/api/virtual-node.ts';
import { heirOf } from '../../../src/provider/siblings.ts';

const SERVICES = { group: '', resource: 'services' };
const SHOP: NamespaceMapping = { homeNamespace: 'shop', tenantNamespace: 'tenant' };
const OTHER: NamespaceMapping = { ...SHOP, tenantNamespace: 'other' };
const WITHOUT: NamespaceMapping = { ...SHOP, reflection: [{ resource: 'services', policy: 'None' }] };
const WIDGETS = { group: 'example.com', resource: 'widgets' };
const WITH_WIDGETS: NamespaceMapping = { ...SHOP, reflection: [{ ...WIDGETS, policy: 'All' }] };

/** As text: `name asked recorded`, each by the initial of what it says. */
const LETTERS: Readonly<Record<string, NamespaceMapping[]>> = {
  '-': [],
  s: [SHOP],
  o: [OTHER],
  n: [WITHOUT],
  w: [WITH_WIDGETS],
};
const view = (...texts: string[]): VirtualNode[] =>
  texts.map((text) => {
    const [name = '', asked = '-', recorded = '-'] = text.split(' ');
    const namespacesOf = (letter: string): { namespaces: NamespaceMapping[] } => ({
      namespaces: LETTERS[letter] ?? [],
    });
    return { metadata: { name }, spec: namespacesOf(asked), status: namespacesOf(recorded) } as VirtualNode;
  });

describe('who inherits what rome leaves', () => {
  test.each([
    ['nobody else is there', ['rome - s'], 'Nobody'],
    ['rome is deleted', [], 'Nobody'],
    ['another one has it', ['rome - s', 'ostia s s'], 'Others'],
    ['rome is deleted, and another one has it', ['ostia s s'], 'Others'],
    ['another one is asked, and has not said yet that it has it', ['rome - s', 'ostia s -'], 'Undecided'],
    ['of two others, one has it', ['rome - s', 'ostia s -', 'terni s s'], 'Others'],
    ['another one leaves as well', ['rome - s', 'ostia - s'], 'Nobody'],
    ['another one has another tenant namespace', ['rome - s', 'ostia o o'], 'Nobody'],
    ['another one moves to it', ['rome - s', 'ostia s o'], 'Undecided'],
    ['another one brings no such objects', ['rome - s', 'ostia n n'], 'Nobody'],
    ['another one no longer brings such objects', ['rome - s', 'ostia n s'], 'Nobody'],
    ['another one is to bring such objects', ['rome - s', 'ostia s n'], 'Undecided'],
    ['the view does not show yet that rome leaves', ['rome s s'], 'Undecided'],
    ['nor does it show that the other one does', ['rome s s', 'ostia s s'], 'Undecided'],
  ])('%s', (_what, virtualNodes, expected) => {
    expect(heirOf({ mapping: SHOP, kind: SERVICES, own: 'rome' }, view(...virtualNodes))).toBe(expected);
  });

  test('a kind that only a rule brings is inherited by those who have that rule', () => {
    const heir = (ostia: string): string =>
      heirOf({ mapping: WITH_WIDGETS, kind: WIDGETS, own: 'rome' }, view('rome - w', ostia));
    expect(heir('ostia w w')).toBe('Others');
    expect(heir('ostia w s')).toBe('Undecided');
    expect(heir('ostia s s')).toBe('Nobody');
  });
});

test('in whatever order they leave, the last one finds nobody, however late each of them looks', () => {
  const orders = [
    ['rome', 'ostia', 'terni'],
    ['terni', 'rome', 'ostia'],
    ['ostia', 'terni', 'rome'],
  ];
  for (const order of orders) {
    // The view after each departure; each looks at its own one, or at a later one.
    const views = order.map((_name, last) =>
      view(...order.map((name, index) => (index <= last ? `${name} - s` : `${name} s s`))),
    );
    const heirs = order.map((own, index) =>
      views.slice(index).map((later) => heirOf({ mapping: SHOP, kind: SERVICES, own }, later)),
    );
    expect(heirs).toEqual([['Others', 'Others', 'Nobody'], ['Others', 'Nobody'], ['Nobody']]);
  }
});
