import { expect, test } from '@jest/globals';
import type { ConfigMap } from '../../../src/api/wire.ts';
import { keyOf, Store } from '../../../src/kube/store.ts';
import { type Listed, type Verdict, View } from '../../../src/kube/view.ts';

type Event = [type: 'ADDED' | 'MODIFIED' | 'DELETED', name: string, uid: string, version: string];

const object = (name: string, uid: string, resourceVersion: string): ConfigMap => ({
  metadata: { name, uid, resourceVersion, creationTimestamp: '' },
});

const listed = (...objects: readonly ConfigMap[]): Listed<ConfigMap>[] =>
  objects.map((each) => [keyOf(each), each]);

/** `a` with UID 1 at version 10, in a list of version 20. */
function known(): { view: View<ConfigMap>; store: Store<ConfigMap>; told: string[] } {
  const store = new Store<ConfigMap>();
  const told: string[] = [];
  const view = new View<ConfigMap>({
    store,
    transform: (kept) => kept,
    notify: (key, current, previous) =>
      told.push(`${key} ${previous?.metadata.uid ?? '-'}>${current?.metadata.uid ?? '-'}`),
  });
  view.replace('20', listed(object('a', '1', '10')));
  told.length = 0;
  return { view, store, told };
}

test.each<[string, Event, Verdict, string[]]>([
  ['news', ['MODIFIED', 'a', '1', '21'], 'applied', ['a 1>1']],
  ['a newcomer', ['ADDED', 'b', '2', '21'], 'applied', ['b ->2']],
  ['an end', ['DELETED', 'a', '1', '21'], 'applied', ['a 1>-']],
  ['an end of what is not known', ['DELETED', 'b', '2', '21'], 'applied', []],
  ['a successor under the name', ['ADDED', 'a', '9', '21'], 'applied', ['a 1>9']],
  ['the end of a predecessor', ['DELETED', 'a', '0', '21'], 'applied', []],
  ['what the store holds already', ['MODIFIED', 'a', '1', '10'], 'replay', []],
  ['older than the store', ['MODIFIED', 'a', '1', '5'], 'replay', []],
  ['the old end of a predecessor', ['DELETED', 'a', '0', '15'], 'replay', []],
  ['the old end of what is gone', ['DELETED', 'b', '2', '15'], 'replay', []],
  ['old news of what is gone', ['MODIFIED', 'b', '2', '15'], 'contradiction', []],
  ['old news that the store lacks', ['MODIFIED', 'a', '1', '15'], 'contradiction', []],
  ['an old end that the store lacks', ['DELETED', 'a', '1', '15'], 'contradiction', []],
  ['an opaque version is believed', ['MODIFIED', 'a', '1', 'abc'], 'applied', ['a 1>1']],
])('%s', (_what, [type, name, uid, version], verdict, told) => {
  const world = known();
  expect(world.view.apply(type, object(name, uid, version))).toBe(verdict);
  expect(world.told).toEqual(told);
});

test('the place to resume never goes back', () => {
  const { view } = known();
  view.advance('30');
  view.advance('25');
  view.apply('MODIFIED', object('a', '1', '22'));
  expect(view.version).toBe('30');
  expect(view.historyOf('29', { goesBack: false, nowMs: 0 })).toBe('lags');
  expect(view.historyOf('30', { goesBack: false, nowMs: 0 })).toBe('ours');
});

test('an older list is believed when history is known to be lost, or after half a minute', () => {
  const { view } = known();
  const judged = (nowMs: number, goesBack = false): string => view.historyOf('19', { goesBack, nowMs });
  expect([judged(0), judged(29_999), judged(30_000)]).toEqual(['lags', 'lags', 'another']);
  expect([judged(40_000), judged(40_001, true)]).toEqual(['lags', 'another']);
});

test('a list tells the differences only, deletions first', () => {
  const { view, told } = known();
  view.replace('20', listed(object('a', '1', '10'), object('b', '2', '15')));
  expect(told).toEqual(['b ->2']);
  view.replace('30', listed(object('b', '3', '25'), object('c', '4', '26')));
  expect(told.slice(1)).toEqual(['a 1>-', 'b 2>3', 'c ->4']);
});
