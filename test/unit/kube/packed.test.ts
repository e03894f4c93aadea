import { describe, expect, it } from '@jest/globals';

import type { KubeObject } from '../../../src/api/wire.ts';
import { Packed, Packer, unpacked } from '../../../src/kube/packed.ts';
import { Store } from '../../../src/kube/store.ts';
import { fc } from '../../support/property.ts';

interface Thing extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const thing = (name: string, parts: Pick<Thing, 'spec' | 'status'> = {}): Thing => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    resourceVersion: `${name}1`,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'web' },
  },
  ...structuredClone(parts),
});

const SPEC = { containers: [{ name: 'web', env: [{ name: 'A', value: '1' }] }], volumes: [{ name: 'one' }] };

const valuesOf = (specs: readonly unknown[]): unknown[] => {
  const packer = new Packer<Thing>();
  return specs.map((spec, index) => unpacked(packer.pack({ ...thing(`web-${index}`), spec })).spec);
};

describe('packed objects', () => {
  it('are unpacked as they were, with the parts that they have in common', () => {
    const packer = new Packer<Thing>();
    const held = ['web-a', 'web-b', 'web-c'].map((name) => packer.pack(thing(name, { spec: SPEC })));
    expect(held.every((each) => each instanceof Packed)).toBe(true);
    const [first, second, third] = held.map(unpacked<Thing>);
    expect(first).toStrictEqual(thing('web-a', { spec: SPEC }));
    expect(second).toStrictEqual(thing('web-b', { spec: SPEC }));
    expect(second?.spec).toBe(third?.spec);
    expect(second?.spec).toBe(first?.spec);
  });

  it('cannot be changed by way of one of them', () => {
    const packer = new Packer<Thing>();
    packer.pack(thing('web-a', { spec: SPEC }));
    const second = unpacked(packer.pack(thing('web-b', { spec: SPEC })));
    const [container] = (second.spec as typeof SPEC).containers;
    expect(() => container?.env.push({ name: 'B', value: '2' })).toThrow('not extensible');
    expect(() => Object.assign(second, { spec: {} })).toThrow('read only');
  });

  it.each<[string, unknown, unknown]>([
    ['a list and an object', { list: [] }, { list: {} }],
    ['an object and a list', { list: {} }, { list: [] }],
    ['a part more', { a: {} }, { a: {}, b: {} }],
    ['a part less', { a: {}, b: {} }, { a: {} }],
    ['a part less, deeper', { c: { a: 1, b: 2 } }, { c: { a: 1 } }],
    ['a longer list', { list: [1, 2] }, { list: [1, 2, 3] }],
    ['a shorter list', { list: [1, 2, 3] }, { list: [1, 2] }],
    ['a list with another entry', { list: [{ a: 1 }, { a: 2 }] }, { list: [{ a: 1 }, { a: 3 }] }],
    ['null', { a: null }, { a: {} }],
    ['an object for null', { a: {} }, { a: null }],
    ['a number for its text', { a: 1 }, { a: '1' }],
    ['lists where texts were', { a: 'longer text', b: 'x' }, { a: ['longer text'], b: [[0], [1, 2]], c: [] }],
    [
      'equal texts',
      { a: 'one text', b: 'one text' },
      { a: 'another text', b: 'another text', c: 'another text' },
    ],
    ['quotes and signs beyond Latin', { a: 'x' }, { a: '"\\\n☃' }],
    ['names of JavaScript', {}, JSON.parse('{"__proto__":{"x":1},"constructor":{},"toString":"x"}')],
    ['names of JavaScript in the model', JSON.parse('{"__proto__":{"x":1},"constructor":{}}'), { a: 1 }],
  ])('keep %s', (_, first, second) => {
    const kept = valuesOf([structuredClone(first), first, second, first]);
    expect(JSON.stringify(kept)).toBe(JSON.stringify([first, first, second, first]));
    expect(Object.isFrozen(Object.prototype)).toBe(false);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it('cannot be changed by way of one that was frozen at its top', () => {
    const packer = new Packer<Thing>();
    packer.pack(Object.freeze(thing('web-a', { spec: SPEC })));
    const second = unpacked(packer.pack(thing('web-b', { spec: SPEC })));
    expect(() => Object.assign(second.metadata.labels ?? {}, { app: 'db' })).toThrow('read only');
  });

  it('keep their model though they differ much, as long as they have more in common', () => {
    const long = (letter: string): object => ({ common: 'c'.repeat(9000), own: letter.repeat(2000) });
    const packer = new Packer<Thing>();
    const held = ['a', 'b', 'c'].map((letter) => packer.pack(thing(`web-${letter}`, { spec: long(letter) })));
    const [, second, third] = held.map(unpacked<Thing>);
    expect(third).toStrictEqual(thing('web-c', { spec: long('c') }));
    expect(third?.metadata.labels).toBe(second?.metadata.labels);
  });

  it('take another model where they differ too much', () => {
    const long = (letter: string): object => ({ ...SPEC, text: letter.repeat(2000) });
    const kept = valuesOf([SPEC, long('a'), long('a'), SPEC]);
    expect(kept).toStrictEqual([SPEC, long('a'), long('a'), SPEC]);
    expect(kept[1]).toBe(kept[2]);
  });

  it('are unpacked as they were, whatever they are', () => {
    const packer = new Packer<Thing>();
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), (spec, status) => {
        const objects = [spec, status, [spec], { spec, status }].map((part, index) =>
          thing(`web-${index}`, { spec: part, status: [status, part] }),
        );
        const kept = objects.map((object) => unpacked(packer.pack(structuredClone(object))));
        // -0 is no number of JSON.
        expect(kept).toStrictEqual(JSON.parse(JSON.stringify(objects)));
      }),
    );
  });

  it('survive what nests for ever', () => {
    const deep = (): unknown => JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
    const kept = valuesOf([deep(), deep(), {}]);
    expect(Array.isArray(kept[1])).toBe(true);
    expect(kept[2]).toStrictEqual({});
  });

  it('survive a thousand ways of differing', () => {
    const specs = Array.from({ length: 1000 }, (_none, index) => ({ [`key${index}`]: index }));
    expect(valuesOf(specs)).toStrictEqual(specs);
  });
});

describe('a store with a packer', () => {
  const NAMES = Array.from({ length: 1000 }, (_none, index) => `web-${index}`);

  function filled(): Store<Thing> {
    const store = new Store<Thing>({ uid: ({ metadata }) => [metadata.uid] }, new Packer<Thing>());
    for (const name of NAMES) store.set(name, thing(name, { spec: SPEC }));
    return store;
  }

  it('shows all that is there, packed or not', () => {
    const store = filled();
    expect(store.size).toBe(1000);
    expect(store.get('web-0')).toStrictEqual(thing('web-0', { spec: SPEC }));
    expect(Array.from(store.list(), ({ metadata }) => metadata.name)).toStrictEqual(NAMES);
    expect(store.byIndex('uid', 'uid-web-1')).toStrictEqual([thing('web-1', { spec: SPEC })]);
  });

  it('packs what has not changed for long', () => {
    const store = filled();
    expect(store.get('web-1')).not.toBe(store.get('web-1'));
    expect(store.get('web-999')).toBe(store.get('web-999'));
    store.set('web-1', thing('web-1', { spec: SPEC }));
    expect(store.get('web-1')).toBe(store.get('web-1'));
  });

  it('tells what was there, and finds it no more', () => {
    const store = filled();
    expect(store.set('web-2', undefined)).toStrictEqual(thing('web-2', { spec: SPEC }));
    expect(store.get('web-2')).toBeUndefined();
    expect(store.hasIndexed('uid', 'uid-web-2')).toBe(false);
    store.addIndex('name', ({ metadata }) => [metadata.name]);
    expect(store.byIndex('name', 'web-3')).toHaveLength(1);
  });
});
