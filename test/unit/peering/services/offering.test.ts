import { describe, expect, test } from '@jest/globals';
import { isClusterNamespace } from '../../../../src/api/cluster-namespaces.ts';
import type { EndpointSlice, Service } from '../../../../src/api/wire.ts';
import { offeringOf, type OfferingFacts } from '../../../../src/peering/services/offering.ts';

const service = (
  name: string,
  spec: object = {},
  labels: Record<string, string> = { shared: 'yes' },
): Service =>
  ({
    metadata: { namespace: 'data', name, labels },
    spec: {
      type: 'ClusterIP',
      selector: { app: name },
      ports: [{ name: 'pg', port: 5432, targetPort: 'pg' }],
      ...spec,
    },
  }) as unknown as Service;

const slice = (addresses: string[], more: object = {}, port = 6432): EndpointSlice =>
  ({
    metadata: { namespace: 'data', name: 's' },
    addressType: 'IPv4',
    ports: [{ name: 'pg', protocol: 'TCP', port }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ...more,
  }) as unknown as EndpointSlice;

const facts = (
  services: Service[],
  slices: EndpointSlice[] = [],
  more: Partial<OfferingFacts> = {},
): OfferingFacts => ({
  entries: [{ namespace: 'data', selector: { matchLabels: { shared: 'yes' } } }],
  pods: ['10.244.0.0/16', 'fd00:244::/48'],
  isClosed: isClusterNamespace,
  services: () => services,
  slices: () => slices,
  ...more,
});

describe('what a peer is offered', () => {
  test('Services that are selected, with the ports that their pods listen on', () => {
    const { services, open, leftOut } = offeringOf(
      facts([service('db'), service('private', {}, {})], [slice(['10.244.1.2', '10.244.1.1'])]),
    );
    expect(services).toEqual([
      {
        namespace: 'data',
        name: 'db',
        ports: [{ name: 'pg', protocol: 'TCP', port: 5432, targetPort: 6432 }],
        endpoints: [
          { address: '10.244.1.1', ready: true },
          { address: '10.244.1.2', ready: true },
        ],
      },
    ]);
    expect(open).toEqual([
      { address: '10.244.1.1', protocol: 'TCP', port: 6432 },
      { address: '10.244.1.2', protocol: 'TCP', port: 6432 },
    ]);
    expect(leftOut).toEqual([]);
  });

  test('is the same text whatever the order in the caches', () => {
    const [one, two] = [slice(['10.244.1.1']), slice(['10.244.1.2'])];
    const [a, b] = [service('a'), service('b')];
    expect(JSON.stringify(offeringOf(facts([a, b], [one, two])))).toBe(
      JSON.stringify(offeringOf(facts([b, a], [two, one]))),
    );
  });

  test.each([
    ['a name only', service('x', { type: 'ExternalName', externalName: 'db.example' })],
    ['without a selector', service('x', { selector: {} })],
    ['without ports', service('x', { ports: [] })],
    [
      'with too many ports',
      service('x', { ports: Array.from({ length: 33 }, (_, port) => ({ port: port + 1 })) }),
    ],
    ['of a peer', service('x', {}, { shared: 'yes', 'tributary.dev/managed-by': 'b' })],
    ['of a provider', service('x', {}, { shared: 'yes', 'tributary.dev/offered-service': 'true' })],
    // RelaxedServiceNameValidation (KEP-5311): a peer of an earlier version would refuse all Services for it.
    ['whose name begins with a digit', service('1db')],
  ])('not one %s', (_what, given) => {
    const { services, open, leftOut } = offeringOf(facts([service('db'), given], [slice(['10.244.1.1'])]));
    expect(services.map(({ name }) => name)).toEqual(['db']);
    expect(open).toHaveLength(1);
    expect(leftOut).toEqual([expect.stringMatching(/^data\/(x|1db): it /)]);
  });

  test.each(['kube-system', 'tributary-system'])('nothing of %s', (namespace) => {
    const entries = [{ namespace, selector: {} }];
    const { services, leftOut } = offeringOf(facts([service('x')], [], { entries }));
    expect(services).toEqual([]);
    expect(leftOut).toHaveLength(1);
  });

  test.each(['10.245.0.1', '172.31.0.1', '169.254.169.254', '10.96.0.1', 'fd01::1'])(
    'no endpoint at %s',
    (address) => {
      const { services, open } = offeringOf(facts([service('db')], [slice([address])]));
      expect(services[0]?.endpoints).toEqual([]);
      expect(open).toEqual([]);
    },
  );

  test('of a named port that differs between pods the number of most, and only those pods', () => {
    const { services } = offeringOf(
      facts([service('db')], [slice(['10.244.1.1', '10.244.1.2']), slice(['10.244.1.3'], {}, 7000)]),
    );
    expect(services[0]?.ports[0]?.targetPort).toBe(6432);
    expect(services[0]?.endpoints.map(({ address }) => address)).toEqual(['10.244.1.1', '10.244.1.2']);
  });

  test('an endpoint that is not ready, or terminates, is not; one in two slices is there once', () => {
    const endpoints = [
      { addresses: ['10.244.1.1'], conditions: { ready: false, serving: true, terminating: true } },
      { addresses: ['10.244.1.2'] },
    ];
    const { services } = offeringOf(
      facts([service('db')], [slice([], { endpoints }), slice(['10.244.1.2'])]),
    );
    expect(services[0]?.endpoints).toEqual([
      { address: '10.244.1.1', ready: false },
      { address: '10.244.1.2', ready: true },
    ]);
  });

  test('no more than a Tunnel can hold, and it is told what is missing', () => {
    const many = Array.from({ length: 1000 }, (_, n) => `10.244.${n >> 8}.${n & 255}`);
    const all = ['a', 'b', 'c', 'd', 'e'].map((name) => service(name));
    const { open, services, leftOut } = offeringOf({ ...facts(all, [slice(many)]) });
    expect(services.map(({ endpoints }) => endpoints.length)).toEqual([1000, 1000, 1000, 1000, 96]);
    expect(open.length).toBe(1000);
    expect(leftOut).toEqual(['data/e: 904 endpoints too many']);
  });
});
