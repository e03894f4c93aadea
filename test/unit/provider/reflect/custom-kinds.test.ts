import { describe, expect, test } from '@jest/globals';

import type { ReflectionRule } from '../../../../src/api/reflection.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { type FieldPath, parsePath, withoutPaths } from '../../../../src/provider/reflect/field-paths.ts';
import { hasSameContent, SettledCopies } from '../../../../src/provider/reflect/settled-copies.ts';
import type { MirrorContext, Wanted } from '../../../../src/provider/reflect/mirrored-kind.ts';
import { customKind, problemOfKind, ruledKinds } from '../../../../src/provider/reflect/mirrored-kinds.ts';
import type { KindRule } from '../../../../src/provider/reflect/rules.ts';
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
  isReflected: () => true,
};
const RULE: KindRule = { group: 'stable.example.com', resource: 'crontabs', policy: 'All' };
const kind = customKind(RULE);

type Custom = KubeObject & Record<string, unknown>;
const META = { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '1', creationTimestamp: NOW };
const custom = (fields: object, metadata: Partial<KubeObject['metadata']> = {}): Custom => ({
  apiVersion: 'stable.example.com/v1',
  kind: 'CronTab',
  metadata: { ...META, ...metadata },
  ...fields,
});
const forge = (source: Custom): Wanted<KubeObject> => {
  const object = kind.forge(source, CONTEXT, undefined)?.object;
  if (object === undefined) throw new Error('nothing forged');
  return object;
};

describe('what travels of an object that nothing is known of', () => {
  test('all fields, but of metadata nothing that speaks of home, and no status', () => {
    const source = custom(
      { spec: { image: 'x' }, data: [1, null], status: { active: 3 } },
      {
        labels: {
          app: 'web',
          'app.kubernetes.io/name': 'web',
          'kubernetes.io/x': 'y',
          'tributary.dev/x': 'y',
        },
        annotations: {
          note: 'hello',
          'example.com/owner': 'me',
          'kubectl.kubernetes.io/last-applied-configuration': '{}',
          'tributary.dev/reflect': 'true',
          'control-plane.alpha.k8s.io/leader': 'z',
        },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'p' }],
        finalizers: ['example.com/keep'],
        generation: 7,
      },
    );
    expect(forge(source)).toEqual({
      apiVersion: 'stable.example.com/v1',
      kind: 'CronTab',
      metadata: {
        name: 'a',
        namespace: 'tenant',
        labels: { app: 'web', 'app.kubernetes.io/name': 'web', 'tributary.dev/managed-by': 'rome' },
        annotations: {
          note: 'hello',
          'example.com/owner': 'me',
          'tributary.dev/applied': '["example.com/owner","note"]',
          'tributary.dev/home-namespace': 'shop',
        },
      },
      spec: { image: 'x' },
      data: [1, null],
    });
  });

  test('a kind that only the API server knows is left to it', () => {
    const source = { ...custom({ spec: {} }), kind: 'crontabs' };
    expect(forge(source).kind).toBe('');
  });

  test.each([
    ['a copy of somebody', custom({}, { labels: { 'tributary.dev/managed-by': 'x' } })],
    ['one that ends', custom({}, { deletionTimestamp: NOW })],
  ])('not %s', (_name, source) => expect(kind.select(source, CONTEXT)).toBe(false));

  test('keys of the prototype are keys like any other', () => {
    const source = JSON.parse(
      '{"metadata":{"name":"a","labels":{"__proto__":"x"}},"__proto__":{"admin":true},"spec":{"constructor":{"prototype":1}}}',
    ) as Custom;
    const sent = JSON.stringify(forge(source));
    expect(sent).toContain('"__proto__":{"admin":true}');
    expect(sent).toContain('"constructor":{"prototype":1}');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

describe('over a copy', () => {
  const stored = (wanted: Wanted<KubeObject>, more: object = {}): Custom => ({
    ...wanted,
    metadata: { ...META, ...wanted.metadata, resourceVersion: '9' },
    ...more,
  });

  test('nothing is written where nothing differs; its status and what others note there stay', () => {
    const wanted = forge(custom({ spec: { image: 'x' } }, { annotations: { note: 'a' } }));
    const copy = stored(wanted, { status: { active: 1 } });
    expect(hasSameContent(kind.merge(copy, wanted), copy)).toBe(true);
    const noted = {
      ...copy,
      metadata: { ...copy.metadata, annotations: { ...copy.metadata.annotations, theirs: 'b' } },
    };
    const merged = kind.merge(noted, wanted) as Custom;
    expect(hasSameContent(merged, noted)).toBe(true);
    expect(merged['status']).toEqual({ active: 1 });
  });

  test('what home has taken away goes, annotations included; what somebody changed there is put back', () => {
    const copy = stored(forge(custom({ spec: { a: 1, b: 2 }, extra: 1 }, { annotations: { note: 'a' } })), {
      spec: { a: 9, b: 2, c: 3 },
    });
    const merged = kind.merge(copy, forge(custom({ spec: { a: 1 } }))) as Custom;
    expect(merged['spec']).toEqual({ a: 1 });
    expect(merged).not.toHaveProperty('extra');
    expect(merged.metadata.annotations).toEqual({ 'tributary.dev/home-namespace': 'shop' });
    expect(merged.metadata.resourceVersion).toBe('9');
  });

  test.each(['no JSON', '{"a":1}', '[1,{"b":2}]', '"x"', 'null'])('a mark that says %s', (mark) => {
    const wanted = forge(custom({ spec: {} }));
    const copy = stored(wanted);
    const hostile = {
      ...copy,
      metadata: { ...copy.metadata, annotations: { 'tributary.dev/applied': mark, theirs: 'b' } },
    };
    expect(kind.merge(hostile, wanted).metadata.annotations).toEqual({
      theirs: 'b',
      'tributary.dev/home-namespace': 'shop',
    });
  });

  test('what an API server adds is no difference, until somebody changes it', () => {
    const settled = new SettledCopies();
    const wanted = forge(custom({ spec: { a: 1 } }));
    const copy = stored(wanted, { spec: { a: 1, replicas: 1 } });
    const merged = kind.merge(copy, wanted);
    expect(hasSameContent(merged, copy)).toBe(false);
    expect(settled.isAsWritten('k', merged, copy)).toBe(false);
    settled.wrote('k', kind, { wanted, copy });
    expect(settled.isAsWritten('k', merged, copy)).toBe(true);
    const changed = { ...copy, spec: { a: 1, replicas: 5 } };
    expect(settled.isAsWritten('k', kind.merge(changed, wanted), changed)).toBe(false);
    const other = forge(custom({ spec: { a: 2 } }));
    expect(settled.isAsWritten('k', kind.merge(copy, other), copy)).toBe(false);
  });
});

test('a huge object is compared in no time that matters, and a deep one does not break', () => {
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, index]));
  const source = custom({ spec: many });
  expect(Object.keys(withoutPaths(source, [['spec', 'k7']])['spec'] as object)).toHaveLength(49_999);
  // The API server's own bound of nesting is 10,000.
  let deep: unknown = 1;
  for (let depth = 0; depth < 1_000; depth++) deep = { a: deep };
  const nested = custom({ spec: deep });
  expect(hasSameContent(nested, structuredClone(nested))).toBe(true);
});

describe('paths', () => {
  test.each<[string, FieldPath]>([
    ['spec', ['spec']],
    ['spec.clusterName', ['spec', 'clusterName']],
    ['metadata.annotations.example\\.com/owner', ['metadata', 'annotations', 'example.com/owner']],
    ['spec.a\\\\b', ['spec', 'a\\b']],
    ['spec.constructor', ['spec', 'constructor']],
  ])('%s', (text, path) => expect(parsePath(text)).toEqual(path));

  test.each([
    '',
    '.',
    'spec.',
    '.spec',
    'spec..a',
    'spec\\',
    'spec.__proto__.a',
    '__proto__',
    'kind',
    'apiVersion',
    'metadata',
    'metadata.name',
    'metadata.namespace',
    'metadata.ownerReferences',
    Array.from({ length: 33 }, () => 'a').join('.'),
  ])('%j is none', (text) => expect(parsePath(text)).toMatchObject({ problem: expect.any(String) }));

  test.each<[string, FieldPath[], unknown]>([
    ['nothing of that name', [['x']], { spec: { a: 1, b: [{ c: 1, d: 2 }, { c: 3 }, 4] } }],
    ['not on a leaf', [['spec', 'a', 'x']], { spec: { a: 1, b: [{ c: 1, d: 2 }, { c: 3 }, 4] } }],
    ['of each item', [['spec', 'b', 'c']], { spec: { a: 1, b: [{ d: 2 }, {}, 4] } }],
    [
      'several',
      [
        ['spec', 'a'],
        ['spec', 'b'],
      ],
      { spec: {} },
    ],
    [
      'not what is inherited',
      [['spec', 'toString'], ['constructor']],
      { spec: { a: 1, b: [{ c: 1, d: 2 }, { c: 3 }, 4] } },
    ],
  ])('dropped: %s', (_name, paths, left) => {
    const value = { spec: { a: 1, b: [{ c: 1, d: 2 }, { c: 3 }, 4] } };
    const before = structuredClone(value);
    expect(withoutPaths<unknown>(value, paths)).toEqual(left);
    expect(value).toEqual(before);
  });
});

describe('kinds of rules', () => {
  test.each<[string, Partial<KindRule>]>([
    ['pods', { group: '', resource: 'pods' }],
    ['Secrets', { group: '', resource: 'secrets' }],
    ['roles', { group: 'rbac.authorization.k8s.io', resource: 'roles' }],
    ['our own', { group: 'tributary.dev', resource: 'virtualnodes' }],
    ['our own, below', { group: 'x.tributary.dev', resource: 'things' }],
    ['a path', { resource: '../pods' }],
    ['a subresource', { resource: 'pods/exec' }],
    ['another version', { version: 'v1/../..' }],
    ['a group with a slash', { group: 'a/b' }],
    ['a name of capitals', { resource: 'CronTab' }],
  ])('%s never', (_name, parts) => {
    expect(problemOfKind({ ...RULE, ...parts })).toEqual(expect.any(String));
  });

  const shown = (rules?: ReflectionRule[]): string[] =>
    ruledKinds(rules).kinds.map(({ kind: { kind: name }, rule }) => `${name} ${rule.policy}`);

  test('by default Services with their slices, Ingresses and NetworkPolicies', () => {
    expect(shown()).toEqual([
      'services All',
      'endpointslices.discovery.k8s.io All',
      'ingresses.networking.k8s.io All',
      'networkpolicies.networking.k8s.io All',
    ]);
  });

  test('slices follow the rule of Services', () => {
    expect(shown([{ resource: 'services', policy: 'OptIn' }])).toContain(
      'endpointslices.discovery.k8s.io OptIn',
    );
  });

  test('a custom kind in its version; never what is forbidden; with a path that is none, nothing', () => {
    const rules: ReflectionRule[] = [
      { group: 'stable.example.com', resource: 'crontabs', version: 'v1beta1', policy: 'All' },
      { resource: 'pods', policy: 'All' },
      { group: 'a.example.com', resource: 'things', policy: 'All', drop: ['spec..a'] },
    ];
    expect(shown(rules).slice(4)).toEqual(['crontabs.stable.example.com All', 'things.a.example.com None']);
    expect(ruledKinds(rules).kinds[4]?.kind.type).toMatchObject({ version: 'v1beta1', plural: 'crontabs' });
    expect(ruledKinds(rules).bad).toMatchObject([
      { kind: 'pods', staysHome: true },
      { kind: 'things.a.example.com', staysHome: true },
    ]);
  });

  const POLICIES = 'resource networkpolicies of group networking.k8s.io';
  test.each([
    ['', 'networkpolicies', POLICIES],
    ['', 'networkpolicy', POLICIES],
    ['', 'netpol', POLICIES],
    ['networking.k8s.io', 'networkpolicy', POLICIES],
    ['extensions', 'ingresses', 'resource ingresses of group networking.k8s.io'],
    ['networking.k8s.io', 'services', 'resource services of the core group'],
    ['', 'configmap', 'resource configmaps of the core group'],
    ['', 'deployments', 'resource deployments of group apps'],
    ['', 'crontabs', 'the core group has no such kind'],
  ])('%s/%s is told as a name that leads nowhere, and changes nothing', (group, resource, told) => {
    const rules: ReflectionRule[] = [{ group, resource, policy: 'None' }];
    expect(ruledKinds(rules).bad).toEqual([
      { kind: expect.any(String), problem: expect.stringContaining(told), staysHome: false },
    ]);
    expect(shown(rules)).toEqual(shown());
  });

  test.each([
    ['crd.projectcalico.org', 'networkpolicies'],
    ['serving.knative.dev', 'services'],
    ['batch', 'cronjobs'],
    ['apps', 'somethingnew'],
    ['gateway.networking.k8s.io', 'httproutes'],
    ['', 'podtemplates'],
    ['', 'services'],
  ])('%s/%s is a name like others', (group, resource) => {
    expect(ruledKinds([{ group, resource, policy: 'All' }]).bad).toEqual([]);
  });
});
