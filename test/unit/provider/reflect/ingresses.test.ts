import { describe, expect, test } from '@jest/globals';
import type { Ingress } from '../../../../src/api/wire.ts';
import {
  classOf,
  ingressKind,
  ingressReferences,
  secretsOf,
  servicesOf,
} from '../../../../src/provider/reflect/ingresses.ts';
import type { Forged, MirrorContext } from '../../../../src/provider/reflect/mirrored-kind.ts';
import { FakeNetwork, NO_WORLD } from '../support/network.ts';
import { NOW } from '../support/pods.ts';

const CONTEXT: MirrorContext = {
  ...NO_WORLD,
  owner: 'rome',
  homeNamespace: 'shop',
  tenantNamespace: 'tenant',
  network: new FakeNetwork(),
  ingressClasses: { nginx: 'haproxy', inner: '', '': 'plain' },
  isSelected: (_kind, name) => name === 'web',
  isReflected: () => true,
};
type Spec = NonNullable<Ingress['spec']>;
const backend = { service: { name: 'web', port: { number: 80 } } };
const path = { path: '/', pathType: 'Prefix', backend };
const SPEC: Spec = {
  ingressClassName: 'nginx',
  rules: [{ host: 'shop.example.com', http: { paths: [path] } }],
  tls: [{ hosts: ['shop.example.com'], secretName: 'cert' }, { secretName: 'cert' }, { hosts: ['x'] }],
};
const ingress = (spec: Spec, annotations: Record<string, string> = {}): Ingress => ({
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: NOW,
    labels: { app: 'web', 'tributary.dev/x': 'y' },
    annotations,
  },
  spec,
  status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
});
const forge = (source: Ingress, context: Partial<MirrorContext> = {}): Forged<Ingress> | undefined =>
  ingressKind.forge(source, { ...CONTEXT, ...context }, undefined);

test('rules and certificates travel, the class by the map, no status', () => {
  expect(forge(ingress(SPEC))).toEqual({
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: {
        name: 'web',
        namespace: 'tenant',
        labels: { app: 'web', 'tributary.dev/managed-by': 'rome' },
        annotations: { 'tributary.dev/home-namespace': 'shop' },
      },
      spec: { ...SPEC, ingressClassName: 'haproxy' },
    },
  });
});

describe('classes', () => {
  const { ingressClassName: _class, ...NO_CLASS } = SPEC;
  const annotated = (name: string): Ingress => ingress(NO_CLASS, { 'kubernetes.io/ingress.class': name });

  test.each<[string, Ingress, string, string | undefined]>([
    ['by its field', ingress(SPEC), 'nginx', 'haproxy'],
    ['by the annotation', annotated('nginx'), 'nginx', 'haproxy'],
    ['the field first', ingress(SPEC, { 'kubernetes.io/ingress.class': 'other' }), 'nginx', 'haproxy'],
    ['none', ingress(NO_CLASS), '', 'plain'],
    ['to the default over there', annotated('inner'), 'inner', undefined],
  ])('%s', (_name, source, homeClass, foreignClass) => {
    expect(classOf(source)).toBe(homeClass);
    expect(forge(source)?.object?.spec?.ingressClassName).toBe(foreignClass);
    expect(forge(source)?.object).toBeDefined();
  });

  test.each(['other', 'constructor', '__proto__', 'toString'])('%s is not mapped: home, and said', (name) => {
    const forged = forge(annotated(name));
    expect(forged?.object).toBeUndefined();
    expect(forged?.leftOut).toMatchObject({
      reason: 'IngressClassNotMapped',
      message: expect.stringContaining(`name "${name}" under ingressClasses of the AcceptancePolicy`),
    });
  });

  test('no class, and none for it: never a silent choice', () => {
    const forged = forge(ingress(NO_CLASS), { ingressClasses: { nginx: 'haproxy' } });
    expect(forged).toEqual({
      leftOut: { reason: 'IngressClassNotMapped', message: expect.stringContaining('it names no class') },
    });
  });
});

test('only annotations that say how, with values that are no text', () => {
  const own = 'nginx.ingress.kubernetes.io';
  const source = ingress(SPEC, {
    [`${own}/configuration-snippet`]: 'return 200;',
    [`${own}/auth-url`]: 'http://10.0.0.1',
    [`${own}/permanent-redirect`]: 'https://x;',
    [`${own}/rewrite-target`]: '/$1',
    [`${own}/ssl-redirect`]: 'true',
    [`${own}/proxy-body-size`]: '8m',
    [`${own}/backend-protocol`]: 'HTTPS"; evil',
    'cert-manager.io/cluster-issuer': 'letsencrypt',
  });
  expect(forge(source)?.object?.metadata.annotations).toEqual({
    [`${own}/ssl-redirect`]: 'true',
    [`${own}/proxy-body-size`]: '8m',
    'tributary.dev/home-namespace': 'shop',
  });
});

describe('backends', () => {
  const two: Spec = { ...SPEC, defaultBackend: { service: { name: 'db', port: { number: 1 } } } };
  test('which Services, each once', () => expect(servicesOf(ingress(two))).toEqual(['db', 'web']));

  test('one that does not travel is said, and the Ingress travels', () => {
    const forged = forge(ingress(two));
    expect(forged?.object?.spec?.defaultBackend).toEqual(two.defaultBackend);
    expect(forged?.leftOut?.message).toBe('Service "db" does not travel, or does not exist');
  });

  test('without a network none of them is there', () => {
    const network = new FakeNetwork();
    network.set({ state: { kind: 'Off' } });
    const forged = forge(ingress(SPEC), { network });
    expect(forged?.object).toBeDefined();
    expect(forged?.leftOut?.message).toContain('no network');
  });

  test('what is no Service keeps it home', () => {
    const resource = { apiGroup: 'k8s.example.com', kind: 'Bucket', name: 'icons' };
    const forged = forge(ingress({ ...SPEC, defaultBackend: { resource } }));
    expect(forged).toEqual({
      leftOut: { reason: 'IngressBackendNotReflected', message: expect.stringContaining('Bucket "icons"') },
    });
  });
});

test('its Secrets, each once', () => {
  expect(secretsOf(ingress(SPEC))).toEqual(['cert']);
  expect(ingressReferences(ingress(SPEC))).toEqual([{ kind: 'Secret', name: 'cert' }]);
  expect(secretsOf(ingress({}))).toEqual([]);
});

test('over a copy: its status and annotations of controllers over there stay, ours are exact', () => {
  const wanted = forge(ingress(SPEC))?.object;
  if (wanted === undefined) throw new Error('nothing forged');
  const copy: Ingress = {
    ...ingress({ ...SPEC, rules: [] }, { theirs: 'x', 'nginx.ingress.kubernetes.io/ssl-redirect': 'true' }),
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
  };
  const merged = ingressKind.merge(copy, wanted);
  expect(merged.status).toEqual(copy.status);
  expect(merged.spec).toEqual(wanted.spec);
  expect(merged.metadata.annotations).toEqual({ theirs: 'x', 'tributary.dev/home-namespace': 'shop' });
});
