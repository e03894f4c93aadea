import { expect, test } from '@jest/globals';

import type { Offer } from '../../../../src/api/offer.ts';
import { checkOffer, type OfferContext } from '../../../../src/peering/offer/check.ts';
import type { OfferDocument } from '../../../../src/peering/protocol/documents.ts';
import { fc } from '../../../support/property.ts';
import { anOffer, consumer, NOW_MS, provider, signed } from '../support/offers.ts';

const context: OfferContext = {
  provider,
  consumer: consumer.clusterID,
  lastGeneration: undefined,
  nowMs: NOW_MS,
};

/** As JSON carries it, signed by the provider: only what is checked beyond the signature can refuse it. */
const overWire = (offer: unknown): OfferDocument => signed(JSON.parse(JSON.stringify(offer)));

const full: Offer = anOffer({
  resources: {
    cpu: '3500m',
    memory: '8Gi',
    pods: '100',
    'ephemeral-storage': '20Gi',
    'hugepages-2Mi': '64Mi',
    'nvidia.com/gpu': '2',
    storage: '1Ti',
  },
  shapes: [
    {
      count: 2,
      resources: {
        cpu: '1750m',
        memory: '4Gi',
        pods: '50',
        'ephemeral-storage': '10Gi',
        'hugepages-2Mi': '32Mi',
        'nvidia.com/gpu': '1',
      },
      architecture: 'arm64',
      operatingSystem: 'linux',
      labels: { 'topology.kubernetes.io/zone': 'a', 'nvidia.com/gpu.product': 'A100' },
    },
  ],
  classes: {
    storage: [
      {
        name: 'fast',
        provisioner: 'disk.csi.example.com',
        isDefault: true,
        volumeBindingMode: 'WaitForFirstConsumer',
        allowVolumeExpansion: false,
      },
    ],
    ingress: ['nginx'],
    loadBalancer: ['example.com/internal'],
    priority: ['quiet'],
  },
  labels: { site: 'basel', 'example.com/tier': '' },
  images: ['registry.example.com/a:1'],
  prices: { cpu: { amount: '0.04', currency: 'EUR' } },
  kubernetesVersion: '1.36.3',
  declaredFeatures: ['GuaranteedQoSPodCPUResize'],
  defaultRequests: { cpu: '10m', memory: '16Mi', 'ephemeral-storage': '0' },
  podOverhead: { cpu: '250m', memory: '160Mi' },
});

test('a sound offer comes back as it was', () => {
  expect(checkOffer(overWire(full), context)).toEqual(full);
});

test('fields that we do not know are signed with the rest, and left out', () => {
  const newer = { ...full, carbon: { grams: 5 }, classes: { ...full.classes, cache: [1] } };
  expect(checkOffer(overWire(newer), context)).toEqual(full);
});

const withResource = (name: string, amount: unknown): unknown => ({
  ...full,
  resources: { ...full.resources, [name]: amount },
});
const withShape = (more: object): unknown => ({ ...full, shapes: [{ ...full.shapes[0], ...more }] });

test.each<[string, unknown, string]>([
  ...[
    'NaN',
    'Infinity',
    '-1',
    '+1',
    '1e3',
    '1e309',
    '1E3',
    '0.5',
    '.5',
    '01',
    '1Q',
    '1 ',
    '',
    '1Gib',
    '９',
  ].map((amount): [string, unknown, string] => [
    `cpu ${JSON.stringify(amount)}`,
    withResource('cpu', amount),
    'resources["cpu"] is malformed',
  ]),
  ['cpu as a number', withResource('cpu', 4), 'resources["cpu"] is not text'],
  ['no cpu', withResource('cpu', null), 'resources["cpu"] is not text'],
  ['a long quantity', withResource('cpu', '9'.repeat(1e5)), 'resources["cpu"] has 100000 characters'],
  ['half a device', withResource('nvidia.com/gpu', '500m'), 'resources["nvidia.com/gpu"] is not whole'],
  ['half a byte', withResource('memory', '1500m'), 'resources["memory"] is not whole'],
  ['more than 10^15', withResource('cpu', '1001T'), 'resources["cpu"] is beyond belief'],
  ['more than 2^60 bytes', withResource('storage', '2Ei'), 'resources["storage"] is beyond belief'],
  ['an unknown resource', withResource('magic', '1'), 'resources["magic"] is no resource that can be lent'],
  ['a quota by name', withResource('requests.cpu', '1'), 'resources["requests.cpu"] is no resource'],
  ['a quota for devices', withResource('requests.nvidia.com/gpu', '1'), 'is no resource'],
  ['volumes of a node', withResource('attachable-volumes-csi-x', '1'), 'is no resource'],
  ["a resource of Kubernetes' own", withResource('kubernetes.io/batch', '1'), 'is no resource'],
  ['a prototype', withResource('__proto__', '1'), 'resources["__proto__"] is no resource'],
  [
    'more cpu than nodes hold',
    withResource('cpu', '3501m'),
    'resources["cpu"] is 3501m, but all shapes together hold 3500m',
  ],
  ['devices on no node', { ...full, resources: { ...full.resources, 'amd.com/gpu': '1' } }, 'hold 0'],
  ['nodes without end', withShape({ count: 1e9 }), 'shapes[0].count is 1000000000'],
  ['half a node', withShape({ count: 1.5 }), 'shapes[0].count is not a whole number'],
  ['no node', withShape({ count: 0 }), 'shapes[0].count is 0'],
  ['a shape of nothing', { ...full, shapes: [null] }, 'shapes[0] is not an object'],
  [
    'too many shapes',
    { ...full, shapes: Array.from({ length: 257 }, () => full.shapes[0]) },
    'shapes has 257 entries',
  ],
  ['an odd architecture', withShape({ architecture: 'a b' }), 'shapes[0].architecture is malformed'],
  [
    "a role in a node's labels",
    withShape({ labels: { 'node-role.kubernetes.io/control-plane': '' } }),
    'shapes[0].labels',
  ],
  [
    'a role',
    { ...full, labels: { 'node-role.kubernetes.io/control-plane': '' } },
    'belongs to a reserved domain',
  ],
  ['a hostname', { ...full, labels: { 'kubernetes.io/hostname': 'x' } }, 'belongs to a reserved domain'],
  [
    'a label of ours',
    { ...full, labels: { 'tributary.dev/virtual-node': 'x' } },
    'belongs to a reserved domain',
  ],
  ['a label below ours', { ...full, labels: { 'a.tributary.dev/b': 'x' } }, 'belongs to a reserved domain'],
  ['a label of SIGs', { ...full, labels: { 'x.k8s.io/b': 'x' } }, 'belongs to a reserved domain'],
  ['no label key', { ...full, labels: { 'a b': 'x' } }, 'is no label key'],
  ['a key of two slashes', { ...full, labels: { 'a/b/c': 'x' } }, 'is no label key'],
  ['a long value', { ...full, labels: { a: 'x'.repeat(64) } }, 'labels["a"] has 64 characters'],
  ['no label value', { ...full, labels: { a: 'x y' } }, 'has a value that no label can have'],
  ['a number for a label', { ...full, labels: { a: 1 } }, 'labels["a"] is not text'],
  ['labels in a list', { ...full, labels: [] }, 'labels is not an object'],
  [
    'too many labels',
    { ...full, labels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`a${index}`, ''])) },
    'labels has 65 entries',
  ],
  [
    'too many images',
    { ...full, images: Array.from({ length: 513 }, (_, index) => `a${index}`) },
    'images has 513',
  ],
  ['an image that colours terminals', { ...full, images: ['\u001b[31mred'] }, 'images[0] is malformed'],
  ['an image twice', { ...full, images: ['a', 'a'] }, 'images names something twice'],
  [
    'a price of NaN',
    { ...full, prices: { cpu: { amount: 'NaN', currency: 'EUR' } } },
    'prices["cpu"].amount',
  ],
  [
    'a negative price',
    { ...full, prices: { cpu: { amount: '-1', currency: 'EUR' } } },
    'prices["cpu"].amount',
  ],
  ['an odd currency', { ...full, prices: { cpu: { amount: '1', currency: '€' } } }, 'prices["cpu"].currency'],
  ['a price of nothing', { ...full, prices: { magic: { amount: '1', currency: 'EUR' } } }, 'prices["magic"]'],
  ['default requests of no number', { ...full, defaultRequests: { cpu: -1 } }, 'defaultRequests["cpu"]'],
  [
    'a default request beyond belief',
    { ...full, defaultRequests: { memory: '9Ei' } },
    'defaultRequests["memory"] is beyond belief',
  ],
  [
    'a default request of a device',
    { ...full, defaultRequests: { 'nvidia.com/gpu': '1' } },
    'defaultRequests["nvidia.com/gpu"] has no default request',
  ],
  ['default requests in a list', { ...full, defaultRequests: ['1'] }, 'defaultRequests is not an object'],
  [
    'half a byte of overhead',
    { ...full, podOverhead: { memory: '500m' } },
    'podOverhead["memory"] is not whole',
  ],
  ['overhead of nothing known', { ...full, podOverhead: { magic: '1' } }, 'podOverhead["magic"]'],
  [
    'too much overhead',
    { ...full, podOverhead: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`a.com/r${i}`, '1'])) },
    'podOverhead has 65 entries',
  ],
  ['no namespaces', { ...full, namespaces: undefined }, 'namespaces is missing'],
  [
    'no DNS label',
    { ...full, namespaces: [{ homeNamespace: 'A', tenantNamespace: 'b' }] },
    'namespaces[0].homeNamespace is malformed',
  ],
  [
    'two homes in one tenant',
    {
      ...full,
      namespaces: [
        { homeNamespace: 'a', tenantNamespace: 't' },
        { homeNamespace: 'b', tenantNamespace: 't' },
      ],
    },
    'namespaces names a tenantNamespace twice',
  ],
  [
    'too many namespaces',
    { ...full, namespaces: Array.from({ length: 257 }, () => ({})) },
    'namespaces has 257',
  ],
  [
    'no security',
    { ...full, podSecurity: 'none' },
    'podSecurity is not restricted or baseline or privileged',
  ],
  ['keeping for ever', { ...full, keepForSeconds: 1e12 }, 'keepForSeconds is 1000000000000'],
  ['an odd version', { ...full, kubernetesVersion: '1.36' }, 'kubernetesVersion is malformed'],
  ['odd features', { ...full, declaredFeatures: ['a', ''] }, 'declaredFeatures[1] is malformed'],
  [
    'an odd binding mode',
    { ...full, classes: { storage: [{ name: 'a', provisioner: 'b', volumeBindingMode: 'x' }] } },
    'volumeBindingMode',
  ],
  ['classes in a list', { ...full, classes: { ingress: {} } }, 'classes.ingress is not a list'],
  ['another provider', { ...full, provider: consumer.clusterID }, 'provider is'],
  ['another consumer', { ...full, consumer: provider.clusterID }, 'consumer is'],
  ['a text for a number', { ...full, generation: '8' }, 'generation is not a whole number'],
  ['a negative number', { ...full, generation: -1 }, 'generation is -1'],
  ['a number beyond counting', { ...full, generation: 2 ** 53 }, 'generation is not a whole number'],
  ['no time', { ...full, issued: 'yesterday' }, 'issued is malformed'],
  ['30 February', { ...full, issued: '2025-02-30T00:00:00Z' }, 'issued is no time'],
  ['parts of a second', { ...full, issued: '2026-01-01T11:50:00.5Z' }, 'issued'],
  [
    'a time ahead',
    { ...full, issued: '2026-01-01T12:05:01Z', expires: '2026-01-01T13:00:00Z' },
    'issued lies ahead',
  ],
  ['an end before its beginning', { ...full, expires: full.issued }, 'expires does not lie after issued'],
  ['a life of a month', { ...full, expires: '2026-02-01T00:00:00Z' }, 'expires is more than 604800 s'],
  [
    'an end that has passed',
    { ...full, issued: '2026-01-01T11:00:00Z', expires: '2026-01-01T11:55:00Z' },
    'expires has passed',
  ],
])('%s is refused', (_name, offer, why) => {
  expect(() => checkOffer(overWire(offer), context)).toThrow(
    expect.objectContaining({ code: 'Invalid', message: expect.stringContaining(why) }),
  );
});

test('an own key __proto__ is a resource like any other, and refused as one', () => {
  const offer: unknown = JSON.parse(
    JSON.stringify(full).replace('"resources":{', '"resources":{"__proto__":{"cpu":"9"},'),
  );
  expect(() => checkOffer(signed(offer), context)).toThrow(/resources\["__proto__"\] is no resource/);
  const hidden: unknown = JSON.parse(`{"__proto__":${JSON.stringify(full)}}`);
  expect(() => checkOffer(signed(hidden), context)).toThrow(/provider is missing/);
});

test.each<[string, Offer, number, boolean]>([
  ['clocks a little apart, issued ahead', { ...full, issued: '2026-01-01T12:05:00Z' }, NOW_MS, true],
  ['clocks a little apart, just ended', { ...full, expires: '2026-01-01T11:55:01Z' }, NOW_MS, true],
  ['ended for more than that', { ...full, expires: '2026-01-01T11:55:00Z' }, NOW_MS, false],
])('%s', (_name, offer, nowMs, isSound) => {
  const check = (): Offer => checkOffer(overWire(offer), { ...context, nowMs });
  if (isSound) expect(check()).toEqual(offer);
  else expect(check).toThrow(/expires has passed/);
});

test('an older number is a replay; the same number is the same offer or a lie', () => {
  const document = signed(full);
  const at = (lastGeneration: number, lastSignature?: string): Offer =>
    checkOffer(document, {
      ...context,
      lastGeneration,
      ...(lastSignature !== undefined && { lastSignature }),
    });
  expect(at(6).generation).toBe(7);
  expect(at(7).generation).toBe(7);
  expect(at(7, document.signature).generation).toBe(7);
  expect(() => at(8)).toThrow('generation is 7, a replay: 8 was seen already');
  const other = signed({ ...full, keepForSeconds: 1 });
  expect(() => at(7, other.signature)).toThrow('generation 7 has been used for another offer');
});

test('a signature of somebody else, of another purpose or of another text proves nothing', () => {
  const { offer, signature } = signed(full);
  const why = /signature is not that of the provider over this offer/;
  expect(() => checkOffer({ offer: { ...offer, keepForSeconds: 0 }, signature }, context)).toThrow(why);
  expect(() => checkOffer(signed(full, consumer), context)).toThrow(why);
  const contract = { offer, signature: provider.sign('contract', JSON.stringify(offer)) };
  expect(() => checkOffer(contract, context)).toThrow(why);
  expect(() => checkOffer({ offer, signature: '' }, context)).toThrow(why);
  expect(() => checkOffer({ offer, signature: 'x'.repeat(1e6) }, context)).toThrow(/signature has 1000000/);
});

/** Throws for anything but an Invalid in one line. */
function refusesPolitely(document: unknown): void {
  try {
    checkOffer(document as OfferDocument, context);
  } catch (error) {
    expect(error).toMatchObject({ code: 'Invalid', message: expect.stringMatching(/^[^\n]{1,400}$/) });
  }
}

test('whatever JSON comes, it is checked or refused in one line', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => refusesPolitely(value)));
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (offer) => refusesPolitely({ offer, signature: 'AA' })),
  );
});

/** Every place in a JSON value, as the way to it. */
function placesOf(value: unknown, way: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [way];
  return [way, ...Object.entries(value).flatMap(([key, item]) => placesOf(item, [...way, key]))];
}

function replaced(value: unknown, [key, ...rest]: string[], by: unknown): unknown {
  if (key === undefined) return by;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = replaced(copy[key], rest, by);
  return copy;
}

test('an offer with any one value replaced, and signed so, is checked or refused in one line', () => {
  const places = placesOf(full).filter((way) => way.length > 0);
  fc.assert(
    fc.property(fc.constantFrom(...places), fc.jsonValue(), (way, value) => {
      refusesPolitely(overWire(replaced(full, way, value)));
    }),
    { numRuns: 3000 },
  );
});
