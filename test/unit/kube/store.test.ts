import { expect, test } from '@jest/globals';
import type { ConfigMap } from '../../../src/api/wire.ts';
import { Store } from '../../../src/kube/store.ts';

test('a list can be walked more than once, and shows what is there each time', () => {
  const store = new Store<ConfigMap>();
  const list = store.list();
  const names = (): string[] => [...list].map(({ metadata }) => metadata.name);
  store.set('a', { metadata: { name: 'a' } } as ConfigMap);
  expect(names()).toEqual(['a']);
  expect(names()).toEqual(['a']);
  store.set('b', { metadata: { name: 'b' } } as ConfigMap);
  expect(names()).toEqual(['a', 'b']);
});
