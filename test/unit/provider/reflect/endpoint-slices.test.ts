import { describe, expect, test } from '@jest/globals';
import type { Endpoint, EndpointSlice } from '../../../../src/api/wire.ts';
import { endpointSliceKind } from '../../../../src/provider/reflect/endpoint-slices.ts';
import type { Forged, MirrorContext } from '../../../../src/provider/reflect/mirrored-kind.ts';
import { DOWN, FakeNetwork, NO_WORLD } from '../support/network.ts';
import { NOW } from '../support/pods.ts';

const slice = (endpoints: Endpoint[], parts: Partial<EndpointSlice> = {}): EndpointSlice => ({
  metadata: {
    name: 'web-x7k2p',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: NOW,
    labels: {
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      app: 'web',
    },
    annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': NOW },
  },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'http' }],
  endpoints,
  ...parts,
});

const context = (network = new FakeNetwork(), parts: Partial<MirrorContext> = {}): MirrorContext => ({
  ...NO_WORLD,
  owner: 'rome',
  homeNamespace: 'shop',
  tenantNamespace: 'tenant',
  network,
  ingressClasses: {},
  isSelected: () => true,
  isReflected: (kind, name) => kind === 'services' && name === 'web',
  ...parts,
});

const forge = (
  source: EndpointSlice,
  { network, copy }: { network?: FakeNetwork; copy?: EndpointSlice } = {},
): Forged<EndpointSlice> | undefined => endpointSliceKind.forge(source, context(network), copy);

const LOCAL: Endpoint = {
  addresses: ['10.1.2.3'],
  conditions: { ready: true, serving: true, terminating: false },
  hostname: 'db-0',
  nodeName: 'node-1',
  zone: 'a',
  hints: { forZones: [{ name: 'a' }] },
  targetRef: { kind: 'Pod', name: 'db-0', namespace: 'shop' },
};

describe('an endpoint of a pod at home', () => {
  test('by the address that the provider sees, with its conditions and its name, and nothing of home', () => {
    expect(forge(slice([LOCAL]))).toEqual({
      object: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          name: 'tributary-web-x7k2p',
          namespace: 'tenant',
          labels: {
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
            'tributary.dev/managed-by': 'rome',
          },
          annotations: { 'tributary.dev/home-namespace': 'shop' },
        },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'http' }],
        endpoints: [
          {
            addresses: ['100.99.2.3'],
            conditions: { ready: true, serving: true, terminating: false },
            hostname: 'db-0',
          },
        ],
      },
    });
  });

  test('terminating and serving are kept', () => {
    const conditions = { ready: false, serving: true, terminating: true };
    expect(forge(slice([{ ...LOCAL, conditions }]))?.object?.endpoints?.[0]?.conditions).toEqual(conditions);
  });

  test('one of a third cluster goes by the view of the view', () => {
    const network = new FakeNetwork();
    network.set({ seenAs: [{ prefix: '100.80.0.0/16', as: '100.77.0.0/16' }] });
    const source = slice([{ addresses: ['100.80.4.5'] }]);
    expect(forge(source, { network })?.object?.endpoints).toEqual([{ addresses: ['100.77.4.5'] }]);
  });
});

describe('what does not cross', () => {
  test('a pod that runs at the provider: its own controller speaks of it', () => {
    expect(forge(slice([{ addresses: ['100.64.9.9'] }]))).toBeUndefined();
    expect(forge(slice([{ addresses: ['100.64.9.9'] }, LOCAL]))?.object?.endpoints).toHaveLength(1);
  });

  test.each([
    ['loopback', '127.0.0.1'],
    ['link-local, the metadata service', '169.254.169.254'],
    ['unspecified', '0.0.0.0'],
    ['multicast', '224.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['IPv6 loopback', '::1', 'IPv6'],
    ['IPv6 link-local', 'fe80::1', 'IPv6'],
    ['IPv6 link-local with a zone', 'fe80::1%eth0', 'IPv6'],
    ['IPv6 multicast', 'ff02::1', 'IPv6'],
    ['IPv4 loopback in IPv6', '::ffff:127.0.0.1', 'IPv6'],
    ['the other family', '10.1.2.3', 'IPv6'],
    ['no address', 'kubernetes.default', 'IPv4'],
    ['octal notation', '010.1.2.3', 'IPv4'],
    ['nothing', '', 'IPv4'],
  ])('%s, even where it is exported', (_what, address, addressType = 'IPv4') => {
    const network = new FakeNetwork();
    network.set({
      seenAs: [
        { prefix: '0.0.0.0/0', as: '0.0.0.0/0' },
        { prefix: '::/0', as: '::/0' },
      ],
    });
    const source = slice([{ addresses: [address] }], { addressType });
    const forged = forge(source, { network });
    expect(forged?.object).toBeUndefined();
    expect(forged?.leftOut?.reason).toBe('EndpointNotReflected');
  });

  test('a view that leads to a loopback address', () => {
    const network = new FakeNetwork();
    network.set({ seenAs: [{ prefix: '10.1.0.0/16', as: '127.0.0.0/16' }] });
    expect(forge(slice([LOCAL]), { network })?.object).toBeUndefined();
  });

  test('what is not exported is said, with the first of them', () => {
    const forged = forge(slice([LOCAL, { addresses: ['192.0.2.7'] }, { addresses: ['192.0.2.8'] }]));
    expect(forged?.object?.endpoints).toHaveLength(1);
    expect(forged?.leftOut).toEqual({
      reason: 'EndpointNotReflected',
      message:
        '192.0.2.7 and 1 more cannot be reached from the foreign cluster: it is in no prefix that the foreign cluster has a view of',
    });
  });

  test('one whose name leaves no room for the prefix, and that is said', () => {
    const named = (length: number): EndpointSlice => {
      const source = slice([LOCAL]);
      return { ...source, metadata: { ...source.metadata, name: 'x'.repeat(length) } };
    };
    expect(endpointSliceKind.select(named(244), context())).toBe(true);
    expect(forge(named(243))?.object?.metadata.name).toHaveLength(253);
    expect(forge(named(244))).toEqual({
      leftOut: {
        reason: 'EndpointNotReflected',
        message: expect.stringContaining('has 244 characters, at most 243') as unknown,
      },
    });
    const native = { ...named(244), endpoints: [{ addresses: ['100.64.9.9'] }] };
    expect(forge(native)).toBeUndefined();
  });

  test.each([
    ['of no Service', { labels: {} }],
    ['of a Service that is not reflected', { labels: { 'kubernetes.io/service-name': 'kubernetes' } }],
    [
      'that is a reflection itself',
      { labels: { 'kubernetes.io/service-name': 'web', 'tributary.dev/managed-by': 'x' } },
    ],
    ['on its way out', { deletionTimestamp: NOW }],
  ])('a slice %s', (_what, metadata) => {
    const source = slice([LOCAL]);
    const changed = { ...source, metadata: { ...source.metadata, ...metadata } };
    expect(endpointSliceKind.select(source, context())).toBe(true);
    expect(endpointSliceKind.select(changed, context())).toBe(false);
  });

  test('a slice of names', () => {
    expect(endpointSliceKind.select(slice([], { addressType: 'FQDN' }), context())).toBe(false);
  });
});

describe('a slice that no selector made', () => {
  const NATIVE = 'tributary.dev/native-endpoints';
  const NO_POD = 'tributary.dev/no-pod-at';
  /** Of a person, of the controller that mirrors Endpoints, and of somebody's own controller. */
  const MANAGERS = [undefined, 'endpointslicemirroring-controller.k8s.io', 'lb.example.com'];
  const custom = (endpoints: Endpoint[], manager?: string): EndpointSlice => {
    const source = slice(endpoints);
    const { 'endpointslice.kubernetes.io/managed-by': _manager, ...labels } = source.metadata.labels ?? {};
    const managed = manager === undefined ? {} : { 'endpointslice.kubernetes.io/managed-by': manager };
    return { ...source, metadata: { ...source.metadata, labels: { ...labels, ...managed } } };
  };
  const natives = (forged: Forged<EndpointSlice> | undefined): unknown =>
    JSON.parse(forged?.object?.metadata.annotations?.[NATIVE] ?? 'null');
  const conditions = { ready: true, serving: true, terminating: false };
  const THERE: Endpoint = { ...LOCAL, addresses: ['100.64.9.9'], hostname: 'web-0' };

  test.each(MANAGERS)('by %s: asks for the pod over there by its own address', (manager) => {
    const forged = forge(custom([THERE], manager));
    expect(natives(forged)).toEqual([{ address: '10.0.9.9', hostname: 'web-0', conditions }]);
    expect(forged?.object?.endpoints).toEqual([]);
    expect(forged?.object?.ports).toEqual(slice([]).ports);
    expect(forged?.leftOut).toBeUndefined();
  });

  test('pods of both clusters, and what is in neither is said', () => {
    const forged = forge(custom([THERE, LOCAL, { addresses: ['203.0.113.7'] }]));
    expect(natives(forged)).toHaveLength(1);
    expect(forged?.object?.endpoints).toEqual([{ addresses: ['100.99.2.3'], conditions, hostname: 'db-0' }]);
    expect(forged?.leftOut?.message).toMatch(/^203\.0\.113\.7 cannot be reached/u);
  });

  test('an endpoint of two clusters is left out', () => {
    const forged = forge(custom([{ addresses: ['100.64.9.9', '10.1.2.3'] }]));
    expect(forged?.object).toBeUndefined();
    expect(forged?.leftOut?.message).toMatch(/^100\.64\.9\.9 cannot be reached/u);
  });

  test('a tunnel that is down is no matter to pods over there', () => {
    const network = new FakeNetwork();
    network.set({ state: DOWN });
    const forged = forge(custom([THERE, LOCAL]), { network });
    expect(natives(forged)).toEqual([{ address: '10.0.9.9', hostname: 'web-0', conditions }]);
    expect(forged?.object?.endpoints?.[0]?.conditions).toMatchObject({ ready: false, serving: false });
  });

  test('people hear of an address at which the provider has found no pod of theirs', () => {
    const source = custom([THERE, { addresses: ['100.64.9.10'] }]);
    const wanted = forge(source)?.object as EndpointSlice;
    const copy = {
      ...wanted,
      metadata: {
        ...source.metadata,
        ...wanted.metadata,
        annotations: { ...wanted.metadata.annotations, [NO_POD]: '10.0.9.10,192.0.2.1' },
      },
    };
    const forged = forge(source, { copy });
    expect(forged?.leftOut).toEqual({
      reason: 'EndpointNotReflected',
      message:
        '100.64.9.10 cannot be reached from the foreign cluster: it is an address of the foreign cluster, and no pod ' +
        'of this cluster has it there',
    });
    // It is asked for all the same: the pod may come.
    expect(natives(forged)).toHaveLength(2);
    expect(endpointSliceKind.merge(copy, forged?.object as never)).toEqual(copy);
  });

  test('none any more: the annotation goes, and what the provider says stays for it to take back', () => {
    const wanted = forge(custom([THERE, LOCAL]))?.object as EndpointSlice;
    const metadata = { ...slice([]).metadata, ...wanted.metadata };
    const annotations = { ...metadata.annotations, [NO_POD]: '10.0.9.9' };
    const copy: EndpointSlice = { ...wanted, metadata: { ...metadata, annotations } };
    const merged = endpointSliceKind.merge(copy, forge(custom([LOCAL]))?.object as never);
    expect(merged.metadata.annotations).not.toHaveProperty([NATIVE]);
    expect(merged.metadata.annotations).toHaveProperty([NO_POD]);
  });

  test('where that is refused, the rest of it', () => {
    const wanted = forge(custom([THERE, LOCAL]))?.object as EndpointSlice;
    const lesser = endpointSliceKind.lesser?.(wanted);
    expect(lesser).toEqual(forge(custom([LOCAL]))?.object);
    expect(lesser && endpointSliceKind.lesser?.(lesser)).toBeUndefined();
  });
});

describe('while nothing gets through', () => {
  const out = { ready: false, serving: false, terminating: false };

  test('endpoints stay and are not ready', () => {
    const network = new FakeNetwork();
    network.set({ state: DOWN });
    expect(forge(slice([LOCAL]), { network })?.object?.endpoints).toEqual([
      { addresses: ['100.99.2.3'], conditions: out, hostname: 'db-0' },
    ]);
  });

  test('nor while the provider withholds them, and its mark stays', () => {
    const wanted = forge(slice([LOCAL]))?.object as EndpointSlice;
    const metadata = { ...slice([]).metadata, ...wanted.metadata };
    const annotations = { ...metadata.annotations, 'tributary.dev/withheld': 'TunnelDown' };
    const copy: EndpointSlice = { ...wanted, metadata: { ...metadata, annotations } };
    const held = forge(slice([LOCAL]), { copy })?.object;
    expect(held?.endpoints?.[0]?.conditions).toEqual(out);
    const merged = endpointSliceKind.merge(copy, held as EndpointSlice);
    expect(merged.metadata.annotations).toMatchObject({ 'tributary.dev/withheld': 'TunnelDown' });
    expect(endpointSliceKind.merge(merged, forge(slice([LOCAL]), { copy: merged })?.object as never)).toEqual(
      merged,
    );
  });

  test('without a network there are none', () => {
    const network = new FakeNetwork();
    network.set({ state: { kind: 'Off' } });
    expect(forge(slice([LOCAL]), { network })).toBeUndefined();
  });

  test('nobody is told of what is left out before the tunnel works', () => {
    const network = new FakeNetwork();
    network.set({ state: DOWN, seenAs: [] });
    expect(forge(slice([LOCAL]), { network })).toBeUndefined();
  });
});

describe('against what is there', () => {
  const stored = (): EndpointSlice => {
    const wanted = forge(slice([LOCAL]))?.object as EndpointSlice;
    return { ...wanted, metadata: { ...slice([]).metadata, ...wanted.metadata } };
  };

  test('equal, it is left alone', () => {
    const copy = stored();
    const wanted = forge(slice([LOCAL]), { copy })?.object as never;
    expect(endpointSliceKind.merge(copy, wanted)).toEqual(copy);
    expect(endpointSliceKind.mustReplace(copy, wanted)).toBe(false);
  });

  test('an empty list of ports that the API server stores as null is no difference', () => {
    const copy = { ...stored(), ports: null } as unknown as EndpointSlice;
    const wanted = forge(slice([LOCAL], { ports: [] }))?.object as never;
    expect(endpointSliceKind.merge(copy, wanted)).toEqual(copy);
  });

  test('another family cannot be had by an update', () => {
    const network = new FakeNetwork();
    network.set({ seenAs: [{ prefix: 'fd00::/64', as: 'fd99::/64' }] });
    const wanted = forge(slice([{ addresses: ['fd00::7'] }], { addressType: 'IPv6' }), { network })?.object;
    expect(wanted?.endpoints).toEqual([{ addresses: ['fd99::7'] }]);
    expect(endpointSliceKind.mustReplace(stored(), wanted as never)).toBe(true);
  });

  test('names go there and back', () => {
    expect(endpointSliceKind.homeName(endpointSliceKind.remoteName('web-1'))).toBe('web-1');
    expect(endpointSliceKind.homeName('web-1')).toBeUndefined();
  });
});
