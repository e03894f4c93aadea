import { expect, test } from '@jest/globals';
import { differsEnough, type Comparable } from '../../../../src/peering/offer/next-offer.ts';
import { anOffer } from '../support/offers.ts';

const shape = (cpu: string, count = 1, zone = 'a'): Comparable['shapes'][number] => ({
  count,
  resources: { cpu, memory: '8Gi', pods: '100' },
  architecture: 'amd64',
  operatingSystem: 'linux',
  labels: { 'topology.kubernetes.io/zone': zone },
});
const before = anOffer({
  resources: { cpu: '10', memory: '16Gi', pods: '100', 'a.com/b': '0' },
  shapes: [shape('5', 2)],
  images: ['a:1'],
});
const with_ = (more: Partial<Comparable>): Comparable => ({ ...before, ...more });
const cpu = (amount: string): Comparable => with_({ resources: { ...before.resources, cpu: amount } });

test.each<[string, Comparable, boolean, boolean]>([
  ['nothing', before, false, false],
  ['the number and the times', { ...before, generation: 9, issued: 'later' } as Comparable, false, false],
  ['an amount by less', cpu('9010m'), false, true],
  ['an amount by the threshold', cpu('9'), true, true],
  ['an amount upwards', cpu('11'), true, true],
  ['an amount upwards by less', cpu('10990m'), false, true],
  ['an amount that is used up', cpu('0'), true, true],
  ['an amount that has come', with_({ resources: { ...before.resources, 'a.com/b': '1' } }), true, true],
  ['an amount that is gone', with_({ resources: { cpu: '10', memory: '16Gi' } }), true, true],
  ['the same amount in other words', cpu('10000m'), false, true],
  ['the largest node', with_({ shapes: [shape('4500m'), shape('4')] }), true, true],
  ['not the largest node', with_({ shapes: [shape('5'), shape('1')] }), false, true],
  ['a node more', with_({ shapes: [shape('5', 3)] }), true, true],
  ['a node elsewhere', with_({ shapes: [shape('5'), shape('5', 1, 'b')] }), true, true],
  ['images', with_({ images: [] }), false, true],
  ['a label', with_({ labels: { a: 'b' } }), true, true],
  ['a price', with_({ prices: { cpu: { amount: '1', currency: 'EUR' } } }), true, true],
  ['a class', with_({ classes: { ingress: ['a'] } }), true, true],
  ['security', with_({ podSecurity: 'restricted' }), true, true],
  ['keeping', with_({ keepForSeconds: 1 }), true, true],
  ['default requests', with_({ defaultRequests: { cpu: '0' } }), true, true],
  ['overhead', with_({ podOverhead: { cpu: '1m' } }), true, true],
  ['a version', with_({ kubernetesVersion: '1.36.4' }), true, true],
  ['namespaces', with_({ namespaces: [] }), true, true],
])('%s: news beyond 10 %%, and when the policy has changed', (_name, after, beyondTen, beyondNone) => {
  expect(differsEnough(before, after, 10)).toBe(beyondTen);
  expect(differsEnough(before, after, 0)).toBe(beyondNone);
});
