import { expect, test } from '@jest/globals';

import type { Contract } from '../../../src/api/offer.ts';
import { canonicalText } from '../../../src/lib/canonical-json.ts';
import {
  checkContract,
  contractText,
  draftContract,
  isSignedBy,
  signContract,
} from '../../../src/peering/contract.ts';
import { fc } from '../../support/property.ts';
import { anOffer, consumer, NOW_MS, provider } from './support/offers.ts';

const offer = anOffer({
  resources: { cpu: '4', memory: '8Gi', pods: '100', 'nvidia.com/gpu': '2' },
  prices: { cpu: { amount: '0.04', currency: 'EUR' } },
});
const draft = (): Contract => draftContract(offer, { cpu: '2', memory: '8Gi', pods: '10' }, NOW_MS + 999);

test('a draft has the terms of the offer, and takes none of what it does not name', () => {
  expect(draft()).toEqual({
    provider: provider.clusterID,
    consumer: consumer.clusterID,
    generation: 7,
    issued: '2026-01-01T12:00:00Z',
    resources: { cpu: '2', memory: '8Gi', pods: '10', 'nvidia.com/gpu': '0' },
    namespaces: offer.namespaces,
    podSecurity: 'baseline',
    keepForSeconds: 3600,
    prices: offer.prices,
  });
});

test('pods are kept for less long where the consumer wants that, and never for longer', () => {
  const keeping = (most: number): Contract => draftContract(offer, offer.resources, NOW_MS, most);
  expect([keeping(7200), keeping(60), keeping(0)].map(({ keepForSeconds }) => keepForSeconds)).toEqual([
    3600, 60, 0,
  ]);
  expect(checkContract(contractText(keeping(60)), offer)).toEqual(keeping(60));
});

test('what was drafted, written and signed is read back as it was', () => {
  fc.assert(
    fc.property(fc.nat(4000), fc.nat(100), fc.nat(2), (milli, pods, gpus) => {
      const resources = { cpu: `${milli}m`, memory: '1Gi', pods: `${pods}`, 'nvidia.com/gpu': `${gpus}` };
      const contract = draftContract(offer, resources, NOW_MS);
      expect(checkContract(contractText(contract), offer)).toEqual(contract);
    }),
  );
});

test.each<[string, object, string]>([
  ['another provider', { provider: consumer.clusterID }, 'contract.provider is'],
  ['another consumer', { consumer: provider.clusterID }, 'contract.consumer is'],
  ['another number', { generation: 6 }, 'contract.generation is 6, but 7 was offered'],
  [
    'too much',
    { resources: { ...offer.resources, cpu: '4001m' } },
    'contract.resources["cpu"] is 4001m, but 4 was offered',
  ],
  [
    'what was not offered',
    { resources: { ...offer.resources, 'amd.com/gpu': '1' } },
    'is 1, but 0 was offered',
  ],
  [
    'none of what was not offered',
    { resources: { ...offer.resources, 'example.com/team': '0' } },
    'contract.resources["example.com/team"] was not offered',
  ],
  ['a resource left open', { resources: { cpu: '1' } }, 'contract.resources["memory"] is missing'],
  [
    'a negative amount',
    { resources: { ...offer.resources, cpu: '-1' } },
    'contract.resources["cpu"] is malformed',
  ],
  ['1e309', { resources: { ...offer.resources, cpu: '1e309' } }, 'contract.resources["cpu"] is malformed'],
  ['other namespaces', { namespaces: [] }, 'contract.namespaces are not as offered'],
  [
    'a tenant of its own choice',
    { namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'kube-system' }] },
    'namespaces',
  ],
  [
    'less security',
    { podSecurity: 'restricted' },
    'contract.podSecurity is restricted, but baseline was offered',
  ],
  ['longer keeping', { keepForSeconds: 3601 }, 'contract.keepForSeconds is 3601, but 3600 was offered'],
  ['another price', { prices: {} }, 'contract.prices are not as offered'],
  ['a clause more', { penalty: 1 }, 'contract["penalty"] is no field of a contract'],
  ['no time', { issued: 'now' }, 'contract.issued is malformed'],
  ['a list for a map', { resources: [] }, 'contract.resources is not an object'],
])('%s is refused', (_name, change, why) => {
  expect(() => checkContract(canonicalText({ ...draft(), ...change }), offer)).toThrow(
    expect.objectContaining({ code: 'Invalid', message: expect.stringContaining(why) }),
  );
});

test.each<[string, string, RegExp]>([
  ['nothing', '', /contract is not JSON/],
  ['a list', '[]', /contract is not an object/],
  ['blanks', ` ${contractText(draft())}`, /not in canonical form/],
  ['keys in another order', JSON.stringify(draft()), /not in canonical form/],
  ['a key twice', contractText(draft()).replace('{', '{"consumer":"x",'), /not in canonical form/],
  ['a megabyte', 'x'.repeat(2 ** 20), /has 1048576 characters/],
  ['a prototype', '{"__proto__":{}}', /"__proto__"\] is no field/],
])('%s for a text is refused', (_name, text, why) => {
  expect(() => checkContract(text, offer)).toThrow(why);
});

test('any text is read or refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(() => checkContract(text, offer)).toThrow(expect.objectContaining({ code: 'Invalid' }));
    }),
  );
});

test('a signature is of one side, over one text', () => {
  const text = contractText(draft());
  const signature = signContract(consumer, text);
  expect(isSignedBy(consumer, text, signature)).toBe(true);
  expect(isSignedBy(provider, text, signature)).toBe(false);
  expect(isSignedBy(consumer, `${text} `, signature)).toBe(false);
  expect(isSignedBy(consumer, text, consumer.sign('offer', text))).toBe(false);
  expect(isSignedBy(consumer, text, '')).toBe(false);
});
