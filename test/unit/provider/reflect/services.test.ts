import { describe, expect, test } from '@jest/globals';
import type { Service } from '../../../../src/api/wire.ts';
import type { MirrorContext } from '../../../../src/provider/reflect/mirrored-kind.ts';
import { serviceKind } from '../../../../src/provider/reflect/services.ts';
import { FakeNetwork, NO_WORLD } from '../support/network.ts';
import { NOW } from '../support/pods.ts';

const CONTEXT: MirrorContext = {
  ...NO_WORLD,
  owner: 'rome',
  homeNamespace: 'shop',
  tenantNamespace: 'tenant',
  network: new FakeNetwork(),
  ingressClasses: {},
  isSelected: () => true,
  isReflected: () => false,
};

type Spec = NonNullable<Service['spec']>;

const service = (spec: Spec, metadata: Partial<Service['metadata']> = {}): Service => ({
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: NOW,
    ...metadata,
  },
  spec,
});
const forge = (source: Service): Service => serviceKind.forge(source, CONTEXT, undefined)?.object as Service;

/** As an API server at home has it. */
const PLAIN: Spec = {
  type: 'ClusterIP',
  clusterIP: '10.96.0.7',
  clusterIPs: ['10.96.0.7'],
  ipFamilies: ['IPv4'],
  ipFamilyPolicy: 'SingleStack',
  internalTrafficPolicy: 'Cluster',
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
  publishNotReadyAddresses: true,
  selector: { app: 'web' },
  ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http', appProtocol: 'h2c' }],
};
const TRAVELS: Spec = {
  type: 'ClusterIP',
  ipFamilyPolicy: 'SingleStack',
  internalTrafficPolicy: 'Cluster',
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
  publishNotReadyAddresses: true,
  selector: { app: 'web' },
  ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http', appProtocol: 'h2c' }],
};

describe('what travels', () => {
  test('ports, affinity, selector and policies; no address of home', () => {
    expect(forge(service(PLAIN)).spec).toEqual(TRAVELS);
  });

  test('a load balancer becomes a ClusterIP, without anything that draws traffic from outside', () => {
    const balancer = {
      ...PLAIN,
      type: 'LoadBalancer',
      externalIPs: ['203.0.113.7'],
      loadBalancerIP: '203.0.113.8',
      loadBalancerClass: 'example.com/lb',
      loadBalancerSourceRanges: ['0.0.0.0/0'],
      allocateLoadBalancerNodePorts: true,
      externalTrafficPolicy: 'Local',
      externalName: 'example.com',
      healthCheckNodePort: 30_001,
      trafficDistribution: 'PreferClose',
      unheardOf: 'by this version',
      ports: (PLAIN.ports ?? []).map((port) => ({ ...port, nodePort: 30_000 })),
    } as Spec;
    const made = forge({
      ...service(balancer),
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } },
    });
    expect(made.spec).toEqual(TRAVELS);
    expect(made).not.toHaveProperty('status');
  });

  test('headless stays headless', () => {
    const { clusterIP: _one, clusterIPs: _all, ...rest } = PLAIN;
    expect(forge(service({ ...rest, clusterIP: 'None', clusterIPs: ['None'] })).spec).toEqual({
      ...TRAVELS,
      clusterIP: 'None',
    });
  });

  test('ExternalName stays one', () => {
    const spec: Spec = { type: 'ExternalName', externalName: 'db.example.com', sessionAffinity: 'None' };
    expect(forge(service(spec)).spec).toEqual(spec);
  });

  test.each([
    ['SingleStack', 'SingleStack'],
    ['PreferDualStack', 'PreferDualStack'],
    ['RequireDualStack', 'PreferDualStack'],
  ])('of the provider no family is required: %s', (ipFamilyPolicy, wanted) => {
    expect(forge(service({ ...PLAIN, ipFamilyPolicy })).spec?.ipFamilyPolicy).toBe(wanted);
  });

  test('labels of people, annotations that steer nothing but hints', () => {
    const made = forge(
      service(PLAIN, {
        labels: {
          app: 'web',
          'service.kubernetes.io/service-proxy-name': 'other',
          'tributary.dev/peer': 'x',
          'sub.tributary.dev/y': 'z',
        },
        annotations: {
          'service.kubernetes.io/topology-mode': 'Auto',
          'external-dns.alpha.kubernetes.io/hostname': 'bank.example.com',
          'service.beta.kubernetes.io/aws-load-balancer-internal': 'false',
        },
      }),
    );
    expect(made.metadata.labels).toEqual({ app: 'web', 'tributary.dev/managed-by': 'rome' });
    expect(made.metadata.annotations).toEqual({
      'service.kubernetes.io/topology-mode': 'Auto',
      'tributary.dev/home-namespace': 'shop',
    });
  });
});

test.each<[string, Partial<Service['metadata']>, boolean]>([
  ['any', {}, true],
  ["the API server's own", { name: 'kubernetes', namespace: 'default' }, false],
  ['one of that name elsewhere', { name: 'kubernetes' }, true],
  ['a reflection of another cluster', { labels: { 'tributary.dev/managed-by': 'paris' } }, false],
  ['one on its way out', { deletionTimestamp: NOW }, false],
])('selected: %s', (_what, metadata, wanted) => {
  expect(serviceKind.select(service(PLAIN, metadata), CONTEXT)).toBe(wanted);
});

describe('against what is there', () => {
  const copyOf = (source: Service): Service => {
    const made = forge(source);
    return {
      ...made,
      metadata: { ...service({}).metadata, ...made.metadata, uid: 'remote', resourceVersion: '9' },
      spec: { ...made.spec, clusterIP: '10.32.0.1', clusterIPs: ['10.32.0.1'], ipFamilies: ['IPv4'] },
      status: { loadBalancer: {} },
    };
  };

  test('addresses of the provider are no difference', () => {
    const copy = copyOf(service(PLAIN));
    expect(serviceKind.merge(copy, forge(service(PLAIN)))).toEqual(copy);
  });

  test('what others annotated stays, what home took back goes', () => {
    const copy = copyOf(
      service(PLAIN, { annotations: { 'service.kubernetes.io/topology-mode': 'Auto' }, labels: { a: 'b' } }),
    );
    copy.metadata.annotations = { ...copy.metadata.annotations, theirs: 'x' };
    const merged = serviceKind.merge(copy, forge(service({ ...PLAIN, sessionAffinity: 'None' })));
    expect(merged.metadata.annotations).toEqual({ 'tributary.dev/home-namespace': 'shop', theirs: 'x' });
    expect(merged.metadata.labels).toEqual({ 'tributary.dev/managed-by': 'rome' });
    expect(merged.spec).toMatchObject({ sessionAffinity: 'None', clusterIP: '10.32.0.1' });
  });

  test('a field that home took back goes', () => {
    const { selector: _selector, sessionAffinityConfig: _config, ...rest } = PLAIN;
    const merged = serviceKind.merge(copyOf(service(PLAIN)), forge(service(rest)));
    expect(merged.spec).not.toHaveProperty('selector');
    expect(merged.spec).not.toHaveProperty('sessionAffinityConfig');
  });

  test.each<[string, Spec, Spec, boolean]>([
    ['ports', PLAIN, { ...PLAIN, ports: [] }, false],
    ['to headless', PLAIN, { ...PLAIN, clusterIP: 'None' }, true],
    ['to ExternalName', PLAIN, { type: 'ExternalName', externalName: 'a.b' }, true],
    ['from ExternalName', { type: 'ExternalName', externalName: 'a.b' }, PLAIN, true],
  ])('made anew: %s', (_what, before, after, anew) => {
    const copy = copyOf(service(before));
    expect(serviceKind.mustReplace(copy, forge(service(after)))).toBe(anew);
  });
});
