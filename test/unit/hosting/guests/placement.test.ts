import { expect, test } from '@jest/globals';
import type { Pod } from '../../../../src/api/wire.ts';
import { placementOf, placementPatch } from '../../../../src/hosting/guests/placement.ts';

const CLASS = 'tributary.dev/runtime-class';
const SELECTOR = 'tributary.dev/node-selector';
const TOLERATIONS = 'tributary.dev/tolerations';
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
  for (const { path, value } of placementPatch(before, placementOf(annotations))) {
    const parts = path.split('/').slice(1);
    const names = parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = names.pop() ?? '';
    const holder = names.reduce((at, name) => at[name] as Record<string, unknown>, after);
    if (Array.isArray(holder)) holder.push(value);
    else holder[last] = value;
  }
  expect(placementPatch(after as unknown as Pod, placementOf(annotations))).toEqual([]);
  return after['spec'] as Record<string, unknown>;
}

test('a namespace that says nothing changes nothing', () => {
  expect(placementPatch(pod({ runtimeClassName: 'any' }), placementOf({}))).toEqual([]);
  expect(placementPatch(pod({}), placementOf({ [TOLERATIONS]: '', [SELECTOR]: '', [CLASS]: '' }))).toEqual(
    [],
  );
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

test('what the pod has besides stays, and nothing is there twice', () => {
  const own = [{ key: 'a', effect: 'NoExecute', tolerationSeconds: 3 }, GUESTS];
  const { nodeSelector, tolerations } = patched(
    pod({ nodeSelector: { disk: 'ssd' }, tolerations: own }),
    ALL,
  );
  expect(nodeSelector).toEqual({ disk: 'ssd', pool: 'guests', 'example.com/zone': 'a' });
  expect(tolerations).toEqual(own);
});

test('a toleration that says the same in other words is the same', () => {
  const same = { key: 'k', operator: 'Equal', value: 'v' };
  const said = { [TOLERATIONS]: '[{"key":"k","value":"v","effect":""},{"key":"k","value":"v"}]' };
  expect(placementPatch(pod({ tolerations: [same] }), placementOf(said))).toEqual([]);
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
