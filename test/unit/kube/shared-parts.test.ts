import { describe, expect, it } from '@jest/globals';

import type { KubeObject } from '../../../src/api/wire.ts';
import { SharedParts } from '../../../src/kube/shared-parts.ts';

interface Thing extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const OWNER = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u' }];

const thing = (
  name: string,
  { owner = OWNER, ...parts }: { owner?: typeof OWNER; spec?: unknown; status?: unknown } = {},
): Thing => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    resourceVersion: `${name}1`,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'web' },
    ownerReferences: owner,
  },
  ...structuredClone(parts),
});

const SPEC = { containers: [{ name: 'web', env: [{ name: 'A', value: '1' }] }], volumes: [{ name: 'one' }] };

describe('equal parts of objects', () => {
  it('are held in common by the objects of one owner', () => {
    const parts = new SharedParts<Thing>();
    const first = parts.join(thing('a', { spec: SPEC }), undefined);
    const second = parts.join(thing('b', { spec: SPEC }), undefined);
    expect(second.spec).toBe(first.spec);
    expect(second.metadata.labels).toBe(first.metadata.labels);
    expect(second.metadata.name).toBe('b');
  });

  it('are held in common as far as they are equal', () => {
    const parts = new SharedParts<Thing>();
    const first = parts.join(thing('a', { spec: SPEC }), undefined);
    const other = { ...SPEC, volumes: [{ name: 'two' }] };
    const second = parts.join(thing('b', { spec: other }), undefined);
    expect(second).toStrictEqual(thing('b', { spec: other }));
    expect((second.spec as typeof SPEC).containers).toBe((first.spec as typeof SPEC).containers);
    expect((first.spec as typeof SPEC).volumes).toStrictEqual([{ name: 'one' }]);
  });

  it('are held in common with the earlier state of an object', () => {
    const parts = new SharedParts<Thing>();
    const earlier = parts.join(thing('a', { spec: SPEC, status: { phase: 'Pending' } }), undefined);
    const later = parts.join(thing('a', { spec: SPEC, status: { phase: 'Running' } }), earlier);
    expect(later.spec).toBe(earlier.spec);
    expect(later.status).toStrictEqual({ phase: 'Running' });
  });

  it('cannot be changed by way of one of them', () => {
    const parts = new SharedParts<Thing>();
    parts.join(thing('a', { spec: SPEC }), undefined);
    const second = parts.join(thing('b', { spec: SPEC }), undefined);
    const [container] = (second.spec as typeof SPEC).containers;
    expect(() => container?.env.push({ name: 'B', value: '2' })).toThrow('not extensible');
  });

  it('makes an equal object the earlier one', () => {
    const parts = new SharedParts<Thing>();
    const earlier = parts.join(thing('a', { spec: SPEC }), undefined);
    expect(parts.join(thing('a', { spec: SPEC }), earlier)).toBe(earlier);
  });

  it.each<[string, unknown, unknown]>([
    ['a list and an object', { list: [] }, { list: {} }],
    ['a part more', { a: {} }, { a: {}, b: {} }],
    ['a part less', { a: {}, b: {} }, { a: {} }],
    ['a longer list', { list: [1, 2] }, { list: [1, 2, 3] }],
    ['a shorter list', { list: [1, 2, 3] }, { list: [1, 2] }],
    ['null', { a: null }, { a: {} }],
    ['an object for null', { a: {} }, { a: null }],
    ['a number for its text', { a: 1 }, { a: '1' }],
    ['names of JavaScript', {}, JSON.parse('{"__proto__":{},"constructor":{},"toString":"x"}')],
  ])('keeps %s', (_, first, second) => {
    const parts = new SharedParts<Thing>();
    parts.join({ ...thing('a'), spec: structuredClone(first) }, undefined);
    const kept = parts.join({ ...thing('b'), spec: second }, undefined);
    expect(JSON.stringify(kept.spec)).toBe(JSON.stringify(second));
    expect(Object.isFrozen(Object.prototype)).toBe(false);
  });

  it('survives what nests for ever', () => {
    const deep = (): unknown => JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
    const parts = new SharedParts<Thing>();
    parts.join({ ...thing('a'), spec: deep() }, undefined);
    expect(() => parts.join({ ...thing('b'), spec: deep() }, undefined)).not.toThrow();
  });
});
