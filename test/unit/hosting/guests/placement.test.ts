import { describe, expect, test } from '@jest/globals';
import type { Pod } from '../../../../src/api/wire.ts';
import {
  changePatch,
  debugPatch,
  placementOf,
  placementPatch,
} from '../../../../src/hosting/guests/placement.ts';

const CLASS = 'tributary.dev/runtime-class';
const SELECTOR = 'tributary.dev/node-selector';
const TOLERATIONS = 'tributary.dev/tolerations';
const OWN_TOLERATIONS = 'tributary.dev/own-tolerations';
const PULLS = 'tributary.dev/image-pull-policy';
const GUESTS = { key: 'guests', operator: 'Exists', effect: 'NoSchedule' };
const ALL = {
  [CLASS]: 'hardened',
  [SELECTOR]: 'pool=guests,example.com/zone=a',
  [TOLERATIONS]: JSON.stringify([GUESTS]),
};

const pod = (spec: object): Pod => ({ metadata: { name: 'web' }, spec }) as unknown as Pod;

/** RFC 6902 `add` into objects and at the end of lists, as much as is needed here. */
function patched(before: Pod, annotations: Record<string, string>): Record<string, unknown> {
  const after = structuredClone(before) as unknown as Record<string, unknown>;
  for (const { path, value } of placementPatch(before, placementOf(annotations), 'rome')) {
    const parts = path.split('/').slice(1);
    const names = parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = names.pop() ?? '';
    const holder = names.reduce((at, name) => at[name] as Record<string, unknown>, after);
    if (Array.isArray(holder)) holder.push(value);
    else holder[last] = value;
  }
  expect(placementPatch(after as unknown as Pod, placementOf(annotations), 'rome')).toEqual([]);
  return after['spec'] as Record<string, unknown>;
}

test('a namespace that says nothing changes nothing', () => {
  expect(placementPatch(pod({ runtimeClassName: 'any' }), placementOf({}), 'rome')).toEqual([]);
  expect(
    placementPatch(pod({}), placementOf({ [TOLERATIONS]: '', [SELECTOR]: '', [CLASS]: '' }), 'rome'),
  ).toEqual([]);
});

test('a selector of namespaces is narrowed to those of the peer, and a term without one stays', () => {
  const own = { topologyKey: 'kubernetes.io/hostname' };
  const all = { ...own, namespaceSelector: {} };
  const named = { ...own, namespaceSelector: { matchLabels: { a: 'b', 'tributary.dev/peer': 'oslo' } } };
  const spec = {
    affinity: {
      podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [own, named] },
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: all }],
      },
    },
  };
  const rome = { 'tributary.dev/peer': 'rome' };
  expect(patched(pod(spec), {})['affinity']).toEqual({
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        own,
        { ...own, namespaceSelector: { matchLabels: { a: 'b', ...rome } } },
      ],
    },
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, podAffinityTerm: { ...own, namespaceSelector: { matchLabels: rome } } },
      ],
    },
  });
});

test.each<[string, object]>([
  ['that says nothing', {}],
  ['with nulls', { nodeSelector: null, tolerations: null, overhead: null }],
  [
    'of another class, with its overhead',
    { runtimeClassName: 'other', overhead: { cpu: '1' }, nodeSelector: { pool: 'own', disk: 'ssd' } },
  ],
])('a pod %s gets all of it', (_what, spec) => {
  const { runtimeClassName, overhead, nodeSelector, tolerations } = patched(pod(spec), ALL);
  expect(runtimeClassName).toBe('hardened');
  expect(overhead ?? undefined).toBeUndefined();
  expect(nodeSelector).toMatchObject({ pool: 'guests', 'example.com/zone': 'a' });
  expect(tolerations).toEqual([GUESTS]);
});

test('what the pod may have besides stays, and nothing is there twice', () => {
  const own = [{ key: 'a', effect: 'NoExecute', tolerationSeconds: 3 }, GUESTS];
  const { nodeSelector, tolerations } = patched(pod({ nodeSelector: { disk: 'ssd' }, tolerations: own }), {
    ...ALL,
    [OWN_TOLERATIONS]: 'b,a',
  });
  expect(nodeSelector).toEqual({ disk: 'ssd', pool: 'guests', 'example.com/zone': 'a' });
  expect(tolerations).toEqual(own);
});

test('a toleration that says the same in other words is the same', () => {
  const same = { key: 'k', operator: 'Equal', value: 'v' };
  const said = { [TOLERATIONS]: '[{"key":"k","value":"v","effect":""},{"key":"k","value":"v"}]' };
  expect(placementPatch(pod({ tolerations: [same] }), placementOf(said), 'rome')).toEqual([]);
  expect(patched(pod({}), said)['tolerations']).toHaveLength(1);
});

test('names that mean something to JavaScript are names', () => {
  const { nodeSelector } = patched(pod({ nodeSelector: {} }), { [SELECTOR]: 'constructor=x' });
  expect(nodeSelector).toEqual({ constructor: 'x' });
});

test.each<[string, string, RegExp]>([
  [TOLERATIONS, '{', /tolerations of the tenant namespace is not a JSON list/u],
  [TOLERATIONS, '{"key":"a"}', /JSON list/u],
  [TOLERATIONS, 'null', /JSON list/u],
  [TOLERATIONS, '[null]', /JSON list/u],
  [TOLERATIONS, '[["key"]]', /JSON list/u],
  [TOLERATIONS, '[{"key":1}]', /JSON list/u],
  [TOLERATIONS, '[{"kee":"a"}]', /JSON list/u],
  [TOLERATIONS, '[{"key":"a","tolerationSeconds":"1"}]', /JSON list/u],
  [TOLERATIONS, JSON.stringify(Array.from({ length: 65 }, () => ({}))), /JSON list/u],
  [SELECTOR, 'pool', /key=value/u],
  [SELECTOR, 'pool=a=b', /key=value/u],
  [SELECTOR, '=a', /key=value/u],
  [SELECTOR, 'a/b/c=d', /key=value/u],
  [SELECTOR, '__proto__=x', /key=value/u],
  [CLASS, 'Not A Name', /RuntimeClass/u],
])('%s: %s cannot be read, and no pod comes in', (annotation, value, problem) => {
  expect(() => placementOf({ [annotation]: value })).toThrow(problem);
});

const exists = (key: string, effect = 'NoSchedule'): object => ({ key, operator: 'Exists', effect });

test.each<[string, object[], string, string[]]>([
  ['nothing is opened', [exists('a'), { operator: 'Exists' }], '', []],
  [
    'two that every pod gets',
    [exists('node.kubernetes.io/not-ready', 'NoExecute')],
    '',
    ['node.kubernetes.io/not-ready'],
  ],
  ['but not with another effect', [exists('node.kubernetes.io/not-ready')], '', []],
  ['one key', [exists('a'), exists('b')], 'b', ['b']],
  [
    'all keys, which are not all',
    [
      exists('a'),
      exists('node-role.kubernetes.io/control-plane'),
      exists('node.kubernetes.io/unschedulable'),
      exists('tributary.dev/virtual-node'),
      { operator: 'Exists' },
    ],
    '*',
    ['a'],
  ],
])('of its own tolerations a pod keeps those that the provider opens: %s', (_what, own, open, keys) => {
  const { tolerations } = patched(pod({ tolerations: own }), { [OWN_TOLERATIONS]: open });
  expect((tolerations as { key: string }[]).map(({ key }) => key)).toEqual(keys);
});

test('of tolerations that are added later, too; what the pod has stays', () => {
  const before = pod({ tolerations: [exists('old')] });
  const now = pod({ tolerations: [exists('old'), exists('a'), exists('b')] });
  expect(changePatch(now, before, placementOf({ [OWN_TOLERATIONS]: 'b' }))).toEqual([
    { op: 'add', path: '/spec/tolerations', value: [exists('old'), exists('b')] },
  ]);
  expect(changePatch(now, before, placementOf({ [OWN_TOLERATIONS]: '*' }))).toEqual([]);
  const given = { ...ALL, [TOLERATIONS]: JSON.stringify([exists('a'), exists('b')]) };
  expect(changePatch(now, before, placementOf(given))).toEqual([]);
  // What every new pod gets is not put into one that is there.
  expect(changePatch(pod({}), pod({}), placementOf(ALL))).toEqual([]);
});

test('a taint of a lent resource may be tolerated: API servers add that themselves', () => {
  const said = { 'tributary.dev/extended-resources': 'example.com/gpu' };
  expect(patched(pod({ tolerations: [exists('example.com/gpu')] }), said)['tolerations']).toHaveLength(1);
});

describe('images are pulled anew', () => {
  const spec = {
    containers: [
      { name: 'a', imagePullPolicy: 'Never' },
      { name: 'b', imagePullPolicy: 'Always' },
      { name: 'c' },
    ],
    initContainers: [{ name: 'i', imagePullPolicy: 'IfNotPresent' }],
    volumes: [
      { name: 'v', image: { reference: 'x', pullPolicy: 'Never' } },
      { name: 'w', emptyDir: {} },
    ],
  };

  test('by all containers and volumes', () => {
    expect(patched(pod(spec), { [PULLS]: 'Always' })).toEqual({
      containers: ['a', 'b', 'c'].map((name) => ({ name, imagePullPolicy: 'Always' })),
      initContainers: [{ name: 'i', imagePullPolicy: 'Always' }],
      volumes: [
        { name: 'v', image: { reference: 'x', pullPolicy: 'Always' } },
        { name: 'w', emptyDir: {} },
      ],
    });
  });

  test('or as the pod says, where the provider leaves that to it', () => {
    expect(placementPatch(pod(spec), placementOf({}), 'rome')).toEqual([]);
  });

  test('by a container that is put into a pod, and not by those that were there', () => {
    const old = { name: 'old', imagePullPolicy: 'Never' };
    const now = pod({ ephemeralContainers: [old, { name: 'new', imagePullPolicy: 'Never' }] });
    const before = pod({ ephemeralContainers: [old] });
    const path = '/spec/ephemeralContainers/1/imagePullPolicy';
    expect(debugPatch(now, before, placementOf({ [PULLS]: 'Always' }))).toEqual([
      { op: 'add', path, value: 'Always' },
    ]);
    expect(debugPatch(now, before, placementOf({}))).toEqual([]);
  });
});
