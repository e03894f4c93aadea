import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ANNOTATION_REFLECT } from '../../../../src/api/names.ts';
import type { ReflectionRule } from '../../../../src/api/reflection.ts';
import { configMaps, secrets } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import type { Secret } from '../../../../src/api/wire.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { World } from '../support/world.ts';

/** Which ConfigMaps and Secrets get over there, with everything that is ever stored there looked at. */

const VIRTUAL_NODES = 'virtualnodes.tributary.dev';
const KEEP_SECRET = 'c3RheXMgaG9tZQ==';

let world: World;
/** All that the foreign API server has ever been given, in its own words. */
let given: string[];
beforeEach(async () => {
  world = await new World().up();
  given = [];
  world.foreign.storage.subscribe(({ current }) => {
    if (current !== undefined) given.push(JSON.stringify(current));
  });
});
afterEach(async () => world.down());

function setRules(reflection: ReflectionRule[] | undefined): void {
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome') as unknown as VirtualNode;
  const [mapping] = rome.spec.namespaces ?? [];
  if (mapping === undefined) throw new Error('no mapping');
  const { reflection: _earlier, ...names } = mapping;
  const namespaces = [{ ...names, ...(reflection !== undefined && { reflection }) }];
  world.home.storage.update(VIRTUAL_NODES, { ...rome, spec: { ...rome.spec, namespaces } } as never);
}
const policy = (resource: string, which: ReflectionRule['policy']): ReflectionRule[] => [
  { resource, policy: which },
];

function addSecret(
  name: string,
  parts: Partial<Secret> & { annotations?: Record<string, string> } = {},
): void {
  const { annotations = {}, ...rest } = parts;
  world.home.seed(secrets, {
    metadata: { namespace: 'shop', name, annotations },
    type: 'Opaque',
    data: { key: KEEP_SECRET },
    ...rest,
  });
}
const annotate = (resource: string, name: string, annotations: Record<string, string>): void => {
  const object = world.home.storage.get(resource, `shop/${name}`) as AnyObject;
  world.home.storage.update(resource, { ...object, metadata: { ...object.metadata, annotations } });
};
const there = (resource: string): string[] =>
  world.foreign.storage.list(resource).map(({ metadata }) => metadata.name);
const mounting = (secretName: string): object => ({ volumes: [{ name: 'key', secret: { secretName } }] });
const condition = (pod: string): { reason?: string; message?: string } | undefined =>
  (world.status(pod)?.['conditions'] as { type: string; message?: string }[] | undefined)?.find(
    ({ type }) => type === 'tributary.dev/Offloaded',
  );
const runs = (pod: string): boolean => world.status(pod)?.['phase'] === 'Running';

test('a Secret that nobody refers to never leaves: not its data, not its name', async () => {
  addSecret('unreferenced');
  addSecret('used', { data: { key: 'dHJhdmVscw==' } });
  await world.start();
  world.addPod('web', mounting('used'));
  await world.until('runs', () => runs('web'));
  // What changes at home is looked at, too.
  annotate('secrets', 'unreferenced', { changed: 'yes' });
  annotate('secrets', 'used', { changed: 'yes' });
  const source = world.home.storage.get('secrets', 'shop/used')?.metadata;
  await world.until('the copy of the other follows', () =>
    given.some((text) => text.includes(`${source?.uid}/${source?.resourceVersion}`)),
  );
  world.deletePod('web');
  await world.until('gone', () => world.status('web') === undefined);
  expect(given.filter((text) => text.includes('dHJhdmVscw==')).length).toBeGreaterThan(0);
  expect(given.filter((text) => text.includes(KEEP_SECRET) || text.includes('unreferenced'))).toEqual([]);
  expect(world.foreign.count(/unreferenced/u)).toBe(0);
  // Not even the agent has read it.
  expect(world.home.count(/GET .*\/secrets\/unreferenced/u)).toBe(0);
  expect(world.home.count(/GET .*\/secrets\/used/u)).toBeGreaterThan(0);
});

test('a pod that begins waits for a copy that could not be changed, and one that runs goes on', async () => {
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'conf' }, data: { key: 'old' } });
  const reading = { volumes: [{ name: 'conf', configMap: { name: 'conf' } }] };
  await world.start();
  world.addPod('first', reading);
  await world.until('runs', () => runs('first'));
  let isRefused = true;
  world.foreign.fault({
    match: ({ method, path }) => isRefused && method === 'PUT' && path.endsWith('/configmaps/conf'),
    times: Infinity,
    status: 403,
  });
  const before = world.home.storage.get('configmaps', 'shop/conf') as AnyObject;
  world.home.storage.update('configmaps', { ...before, data: { key: 'new' } });
  world.addPod('second', reading);
  await world.until('it is told', () => condition('second') !== undefined);
  await world.clock.advance(60_000);
  expect([runs('first'), runs('second')]).toEqual([true, false]);
  isRefused = false;
  await world.until('it runs', () => runs('second'));
  expect(world.foreign.storage.get('configmaps', 'tenant/conf')).toMatchObject({ data: { key: 'new' } });
});

test('annotated to stay, it stays though referenced, and the pod says so; then it may go', async () => {
  addSecret('key', { annotations: { [ANNOTATION_REFLECT]: 'false' } });
  await world.start();
  world.addPod('web', mounting('key'));
  await world.until('said', () => condition('web') !== undefined);
  expect(condition('web')).toMatchObject({
    reason: 'MissingReference',
    message: 'secret "key" stays home: its annotation tributary.dev/reflect says "false"',
  });
  expect(given.filter((text) => text.includes(KEEP_SECRET))).toEqual([]);
  annotate('secrets', 'key', {});
  await world.until('runs', () => runs('web'));
  annotate('secrets', 'key', { [ANNOTATION_REFLECT]: 'false' });
  await world.until('taken back at once', () => !there('secrets').includes('key'));
});

test('kept home, what a pod would only like to have is as if it were not', async () => {
  addSecret('key', { annotations: { [ANNOTATION_REFLECT]: 'false' } });
  await world.start();
  world.addPod('web', { volumes: [{ name: 'key', secret: { secretName: 'key', optional: true } }] });
  await world.until('runs', () => runs('web'));
  expect(there('secrets')).toEqual([]);
});

test('under OptIn only what says so goes along, referenced or not', async () => {
  setRules(policy('secrets', 'OptIn'));
  addSecret('plain');
  addSecret('willing', { annotations: { [ANNOTATION_REFLECT]: 'true' }, data: { key: 'Z29lcw==' } });
  await world.start();
  world.addPod('web', mounting('plain'));
  await world.until('over there', () => there('secrets').includes('willing'));
  await world.until('said', () => condition('web') !== undefined);
  expect(condition('web')?.message).toMatch(/policy of its namespace for secrets is OptIn/u);
  expect(there('secrets')).toEqual(['willing']);
  expect(given.filter((text) => text.includes(KEEP_SECRET))).toEqual([]);
});

test('under All everything goes, but tokens; with another policy it comes back', async () => {
  setRules(policy('secrets', 'All'));
  addSecret('plain');
  addSecret('token', {
    type: 'kubernetes.io/service-account-token',
    annotations: { 'kubernetes.io/service-account.name': 'default' },
    data: { token: 'dG9rZW4=' },
  });
  // By its metadata alone nobody could tell.
  addSecret('unmarked', { type: 'bootstrap.kubernetes.io/token', data: { token: 'Ym9vdA==' } });
  await world.start();
  await world.until('over there', () => there('secrets').includes('plain'));
  addSecret('later');
  await world.until('the later one, too', () => there('secrets').includes('later'));
  await world.until('looked at', () => world.home.count(/GET .*\/secrets\/unmarked/u) > 0);
  world.home.storage.remove('secrets', 'shop/later');
  await world.until('gone at home, gone there', () => !there('secrets').includes('later'));
  setRules(policy('secrets', 'None'));
  await world.until('all taken back', () => there('secrets').length === 0);
  expect(given.filter((text) => /dG9rZW4=|Ym9vdA==/u.test(text))).toEqual([]);
});

test('a namespace that is taken out keeps nothing over there, whatever its policy was', async () => {
  setRules(policy('configmaps', 'All'));
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data: { a: '1' } });
  await world.start();
  await world.until('over there', () => there('configmaps').includes('settings'));
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome') as AnyObject;
  world.home.storage.update(VIRTUAL_NODES, { ...rome, spec: { ...rome.spec, namespaces: [] } });
  await world.until('gone', () => there('configmaps').length === 0);
  await world.until('forgotten', () => {
    const now = world.home.storage.get(VIRTUAL_NODES, 'rome') as unknown as VirtualNode;
    return (now.status?.namespaces ?? []).length === 0;
  });
});

test.each([
  ['taken out', (rome: AnyObject) => ({ ...rome, spec: { ...(rome['spec'] as object), namespaces: [] } })],
  ['deleted with its VirtualNode', () => undefined],
])('what its rules keep at home stays there while pods still run in a namespace: %s', async (_how, end) => {
  const drop = ['data.secret'];
  setRules([...policy('secrets', 'None'), { resource: 'configmaps', policy: 'Referenced', drop }]);
  addSecret('key');
  const metadata = { namespace: 'shop', name: 'settings' };
  world.home.seed(configMaps, { metadata, data: { a: '1', secret: KEEP_SECRET } });
  await world.start();
  const volumes = [
    { name: 'key', secret: { secretName: 'key', optional: true } },
    { name: 'settings', configMap: { name: 'settings' } },
  ];
  world.addPod('web', { volumes });
  await world.until('runs', () => runs('web'));
  const ended = end(world.home.storage.get(VIRTUAL_NODES, 'rome') as AnyObject);
  if (ended === undefined) world.home.storage.remove(VIRTUAL_NODES, 'rome');
  else world.home.storage.update(VIRTUAL_NODES, ended);
  await world.clock.advance(20_000);
  expect(there('configmaps')).toEqual(['settings']);
  expect(given.filter((text) => text.includes(KEEP_SECRET))).toEqual([]);
  world.deletePod('web');
  await world.until('gone', () => there('configmaps').length === 0);
});

test('a namespace that is taken out keeps nothing over there that asks for it itself', async () => {
  addSecret('key', { annotations: { [ANNOTATION_REFLECT]: 'true' } });
  await world.start();
  await world.until('over there', () => there('secrets').includes('key'));
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome') as AnyObject;
  world.home.storage.update(VIRTUAL_NODES, {
    ...rome,
    spec: { ...(rome['spec'] as object), namespaces: [] },
  });
  await world.until('gone', () => there('secrets').length === 0);
});

test('a home namespace that has gone while the agent was away, and its rights with it, is forgotten', async () => {
  const rome = world.home.storage.get(VIRTUAL_NODES, 'rome') as AnyObject;
  world.home.storage.update(VIRTUAL_NODES, {
    ...rome,
    metadata: { ...rome.metadata, labels: { 'tributary.dev/provider': 'milan' } },
    spec: { ...rome.spec, namespaces: [] },
    status: { namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }] },
  });
  world.home.fault({
    match: ({ path }) => /namespaces\/shop\/(secrets|configmaps)/u.test(path),
    status: 403,
    times: Infinity,
  });
  await world.start();
  await world.until('forgotten', () => {
    const now = world.home.storage.get(VIRTUAL_NODES, 'rome') as unknown as VirtualNode;
    return (now.status?.namespaces ?? []).length === 0;
  });
});

test('a token goes with pods of its own account, and others are told that it is not theirs', async () => {
  addSecret('robot', {
    type: 'kubernetes.io/service-account-token',
    annotations: { 'kubernetes.io/service-account.name': 'robot' },
    data: { token: 'dG9rZW4=' },
  });
  await world.start();
  world.addPod('thief', mounting('robot'));
  await world.until('said', () => condition('thief') !== undefined);
  expect(condition('thief')?.message).toMatch(/service-account tokens of others never leave/u);
  expect(given.filter((text) => text.includes('dG9rZW4='))).toEqual([]);
  world.addPod('owner', { ...mounting('robot'), serviceAccountName: 'robot' });
  await world.until('its own runs', () => runs('owner'));
  expect(world.body('thief')).toBeUndefined();
  expect(world.foreign.storage.get('secrets', 'tenant/robot')).toMatchObject({ type: 'Opaque' });
});

test('a copy made by an agent that knew no such rule is taken back by the next', async () => {
  const type = 'kubernetes.io/service-account-token';
  const annotations = { 'kubernetes.io/service-account.name': 'robot' };
  addSecret('robot', { type, annotations });
  const { uid, resourceVersion } = world.home.storage.get('secrets', 'shop/robot')?.metadata ?? {};
  world.foreign.seed(secrets, {
    metadata: {
      namespace: 'tenant',
      name: 'robot',
      labels: { 'tributary.dev/managed-by': 'rome' },
      annotations: { 'tributary.dev/source': `${uid}/${resourceVersion}` },
    },
  });
  world.addPod('thief', mounting('robot'));
  await world.start();
  await world.until('taken back', () => !there('secrets').includes('robot'));
  await world.until('said', () => condition('thief') !== undefined);
  expect(world.body('thief')).toBeUndefined();
});

test('a thousand ConfigMaps that go along do not keep a pod from running', async () => {
  setRules(policy('configmaps', 'All'));
  for (let index = 0; index < 1000; index++) {
    world.home.seed(configMaps, { metadata: { namespace: 'shop', name: `bulk-${index}` }, data: { a: '1' } });
  }
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'zz-needed' }, data: { a: '1' } });
  world.addPod('web', { volumes: [{ name: 'config', configMap: { name: 'zz-needed' } }] });
  let before = Infinity;
  world.home.storage.subscribe(() => {
    if (before === Infinity && runs('web')) before = there('configmaps').length;
  });
  await world.start();
  await world.until('runs', () => runs('web'));
  expect(before).toBeLessThan(500);
  await world.until('all there', () => there('configmaps').length === 1001);
  expect(world.foreign.count(/^POST .*\/configmaps/u)).toBe(1001);
});

test('a field that is to be left out is; when it may go, it goes', async () => {
  setRules([{ resource: 'configmaps', policy: 'All', drop: ['data.secret\\.key'] }]);
  const data = { plain: '1', 'secret.key': '2' };
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data });
  await world.start();
  const copy = (): unknown => world.foreign.storage.get('configmaps', 'tenant/settings');
  await world.until('over there', () => copy() !== undefined);
  expect(copy()).toMatchObject({ data: { plain: '1' } });
  expect(given.filter((text) => text.includes('secret.key'))).toEqual([]);
  setRules(policy('configmaps', 'All'));
  await world.until('whole', () => JSON.stringify(copy()).includes('secret.key'));
});

test('a name that somebody else has over there: left alone, said on the object, once', async () => {
  setRules(policy('configmaps', 'All'));
  world.foreign.seed(configMaps, {
    metadata: { namespace: 'tenant', name: 'settings' },
    data: { theirs: '1' },
  });
  world.home.seed(configMaps, { metadata: { namespace: 'shop', name: 'settings' }, data: { ours: '1' } });
  await world.start();
  await world.until('said', () => world.events.some((event) => event.startsWith('NameTaken')));
  await world.until('tried again', () => world.foreign.count(/^POST .*\/configmaps/u) > 1);
  expect(world.foreign.storage.get('configmaps', 'tenant/settings')).toMatchObject({ data: { theirs: '1' } });
  expect(world.events.filter((event) => event.startsWith('NameTaken'))).toHaveLength(1);
});

test('a word that is neither "true" nor "false" is told on the object, once for each, whether it travels or not', async () => {
  const told = (): string[] => world.events.filter((event) => event.startsWith('ReflectIgnored'));
  const metadata = { namespace: 'shop', name: 'settings', annotations: { [ANNOTATION_REFLECT]: 'no' } };
  world.home.seed(configMaps, { metadata });
  addSecret('key', { annotations: { [ANNOTATION_REFLECT]: 'False' } });
  world.addPod('web', mounting('key'));
  await world.start();
  await world.until('copied', () => there('secrets').includes('key'));
  const said = (word: string): string =>
    `ReflectIgnored: annotation tributary.dev/reflect is ignored, since it says "${word}": say "true" or "false", else the rule of the namespace counts`;
  await world.until('told', () => told().length >= 2);
  annotate('configmaps', 'settings', { [ANNOTATION_REFLECT]: 'no', other: '1' });
  annotate('secrets', 'key', { [ANNOTATION_REFLECT]: 'never' });
  await world.until('told anew', () => told().length >= 3);
  annotate('secrets', 'key', { [ANNOTATION_REFLECT]: 'false' });
  await world.until('home', () => !there('secrets').includes('key'));
  expect(told().toSorted()).toEqual([said('False'), said('never'), said('no')]);
});
