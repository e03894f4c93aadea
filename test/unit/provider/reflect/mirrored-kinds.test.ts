import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ReflectionRule } from '../../../../src/api/reflection.ts';
import { namespaced, endpointSlices, ingresses, secrets, services } from '../../../../src/api/resources.ts';
import type { VirtualNodeSpec } from '../../../../src/api/virtual-node.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { FakeNetwork } from '../support/network.ts';
import { World } from '../support/world.ts';

const TIMEOUT_MS = 30_000;
const GROUP = 'stable.example.com';
const crontabs = namespaced(`${GROUP}/v1`, 'CronTab');
const CRONTABS = 'crontabs.stable.example.com';
const INGRESSES = 'ingresses.networking.k8s.io';
const ALL: ReflectionRule = { group: GROUP, resource: 'crontabs', policy: 'All' };

let world: World;
beforeEach(async () => {
  world = await new World({ types: [crontabs] }).up();
});
afterEach(async () => {
  await world.down();
});

function setNode(change: (spec: VirtualNodeSpec) => Partial<VirtualNodeSpec>): void {
  const { storage } = world.home;
  const node = storage.get('virtualnodes.tributary.dev', 'rome');
  if (node === undefined) throw new Error('no VirtualNode');
  const spec = node.spec as unknown as VirtualNodeSpec;
  storage.update('virtualnodes.tributary.dev', { ...node, spec: { ...spec, ...change(spec) } });
}
const setRules = (...reflection: ReflectionRule[]): void =>
  setNode(() => ({ namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant', reflection }] }));

const addCronTab = (
  name: string,
  annotations: Record<string, string> = {},
  spec: object = { image: 'x' },
): AnyObject => world.home.seed(crontabs, { metadata: { namespace: 'shop', name, annotations }, spec });
const there = (resource: string, name: string): AnyObject | undefined =>
  world.foreign.storage.get(resource, `tenant/${name}`);
const changeHome = (resource: string, name: string, parts: object): void => {
  const object = world.home.storage.get(resource, `shop/${name}`);
  if (object === undefined) throw new Error(`no ${resource} ${name}`);
  world.home.storage.update(resource, { ...object, ...parts });
};
const asked = (pattern: RegExp): string[] =>
  [...world.home.log, ...world.foreign.log].filter((line) => pattern.test(line));
const told = (reason: string): string[] => world.events.filter((line) => line.startsWith(`${reason}:`));

describe('a kind by configuration alone', () => {
  test('comes, changes with one write, and goes; dropped fields stay home', async () => {
    setRules({ ...ALL, drop: ['spec.secret'] });
    addCronTab('a', {}, { image: 'x', secret: 'y' });
    await world.start();
    await world.until('it is there', () => there(CRONTABS, 'a') !== undefined);
    expect(there(CRONTABS, 'a')?.spec).toEqual({ image: 'x' });
    const writes = world.recordWrites();
    changeHome(CRONTABS, 'a', { spec: { image: 'z', secret: 'y' } });
    await world.until('it follows', () => there(CRONTABS, 'a')?.spec?.['image'] === 'z');
    changeHome(CRONTABS, 'a', { spec: { image: 'z', secret: 'other' } });
    addCronTab('b');
    await world.until('the next is there', () => there(CRONTABS, 'b') !== undefined);
    expect(writes().filter((line) => line.includes('crontabs'))).toEqual([
      expect.stringMatching(/^PUT .*\/crontabs\/a/u),
      expect.stringMatching(/^POST /u),
    ]);
    world.home.storage.remove(CRONTABS, 'shop/a');
    await world.until('it is gone', () => there(CRONTABS, 'a') === undefined);
    expect(there(CRONTABS, 'b')).toBeDefined();
  });

  test('nobody is asked for a kind that no rule names', async () => {
    addCronTab('a');
    world.addPod('p');
    await world.start();
    await world.settled();
    expect(asked(/crontabs/u)).toEqual([]);
  });

  test('a rule that comes, changes and goes while the agent runs; nothing else is read again', async () => {
    addCronTab('a');
    addCronTab('b', { 'tributary.dev/reflect': 'true' });
    addCronTab('c', { 'tributary.dev/reflect': 'false' });
    world.addPod('p');
    await world.start();
    await world.settled();
    const podLists = asked(/\/pods\?/u).length;
    setRules(ALL);
    await world.until(
      'those that may',
      () => there(CRONTABS, 'a') !== undefined && there(CRONTABS, 'b') !== undefined,
    );
    expect(there(CRONTABS, 'c')).toBeUndefined();
    setRules({ ...ALL, policy: 'OptIn' });
    await world.until('a stays home', () => there(CRONTABS, 'a') === undefined);
    expect(there(CRONTABS, 'b')).toBeDefined();
    changeHome(CRONTABS, 'a', {
      metadata: {
        ...world.home.storage.get(CRONTABS, 'shop/a')?.metadata,
        annotations: { 'tributary.dev/reflect': 'true' },
      },
    });
    await world.until('a opts in', () => there(CRONTABS, 'a') !== undefined);
    setRules();
    await world.until(
      'all have gone',
      () => there(CRONTABS, 'a') === undefined && there(CRONTABS, 'b') === undefined,
    );
    await world.until('the rule is forgotten', () => !JSON.stringify(recorded()).includes('crontabs'));
    expect(asked(/\/pods\?/u)).toHaveLength(podLists);
  });

  const recorded = (): unknown =>
    world.home.storage.get('virtualnodes.tributary.dev', 'rome')?.status?.['namespaces'];

  test('a rule that is taken away while no agent runs: what was there by it goes', async () => {
    setRules(ALL);
    addCronTab('a');
    const agent = await world.start();
    await world.until('it is there', () => there(CRONTABS, 'a') !== undefined);
    await agent.stop();
    setRules();
    await world.start();
    await world.until('it is gone', () => there(CRONTABS, 'a') === undefined);
    await world.until('the rule is forgotten', () => !JSON.stringify(recorded()).includes('crontabs'));
  });

  test('the whole namespace taken out', async () => {
    setRules(ALL);
    addCronTab('a');
    await world.start();
    await world.until('it is there', () => there(CRONTABS, 'a') !== undefined);
    setNode(() => ({ namespaces: [] }));
    await world.until('it is gone', () => there(CRONTABS, 'a') === undefined);
    await world.until('the namespace is forgotten', () => (recorded() as unknown[]).length === 0);
  });

  test('changed or deleted over there: put back, and somebody else of that name is left alone', async () => {
    setRules(ALL);
    world.foreign.seed(crontabs, {
      metadata: { namespace: 'tenant', name: 'taken' },
      spec: { theirs: true },
    });
    for (const name of ['a', 'taken']) addCronTab(name);
    await world.start();
    await world.until('it is there', () => there(CRONTABS, 'a') !== undefined);
    const copy = there(CRONTABS, 'a');
    if (copy === undefined) throw new Error('no copy');
    world.foreign.storage.update(CRONTABS, { ...copy, spec: { image: 'evil' } });
    await world.until('put back', () => there(CRONTABS, 'a')?.spec?.['image'] === 'x');
    world.foreign.storage.remove(CRONTABS, 'tenant/a');
    await world.until('made again', () => there(CRONTABS, 'a') !== undefined);
    await world.until('it is said', () => told('NameTaken').length > 0);
    world.home.storage.remove(CRONTABS, 'shop/taken');
    world.home.storage.remove(CRONTABS, 'shop/a');
    await world.until('ours is gone', () => there(CRONTABS, 'a') === undefined);
    expect(there(CRONTABS, 'taken')?.spec).toEqual({ theirs: true });
    expect(told('NameTaken')).toHaveLength(1);
  });

  describe('a field that cannot be changed over there', () => {
    const IMMUTABLE = 'CronTab "a" is invalid: spec.image: field is immutable';
    const isCronTab = ({ path }: { path: string }): boolean => path.includes('crontabs');
    const isPut = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'PUT' && isCronTab({ path });
    const isChanged = ({ body }: { body: unknown }): boolean =>
      (body as AnyObject).spec?.['image'] !== there(CRONTABS, 'a')?.spec?.['image'];
    const image = (): unknown => there(CRONTABS, 'a')?.spec?.['image'];
    const puts = (): number => asked(/^PUT .*crontabs/u).length;

    beforeEach(async () => {
      setRules(ALL);
      addCronTab('a');
      await world.start();
      await world.until('it is there', () => image() === 'x');
      world.foreign.fault({
        match: (request) => isPut(request) && isChanged(request),
        times: Infinity,
        status: 422,
        message: IMMUTABLE,
      });
    });

    test('is said once and not tried again, until the object at home or the copy changes', async () => {
      changeHome(CRONTABS, 'a', { spec: { image: 'z' } });
      await world.until('it is said', () => told('CopyNotChanged').length > 0);
      expect(told('CopyNotChanged')).toEqual([expect.stringContaining(IMMUTABLE)]);
      await world.clock.advance(300_000);
      expect([puts(), told('CopyNotChanged').length, image()]).toEqual([1, 1, 'x']);
      const copy = there(CRONTABS, 'a');
      if (copy === undefined) throw new Error('no copy');
      world.foreign.storage.update(CRONTABS, { ...copy, spec: { ...copy.spec, theirs: 1 } });
      await world.until('their change makes it try', () => puts() === 2);
      changeHome(CRONTABS, 'a', { spec: { image: 'x' } });
      await world.until(
        'it is as it was',
        () => puts() === 3 && there(CRONTABS, 'a')?.spec?.['theirs'] === undefined,
      );
      expect(told('CopyNotChanged')).toHaveLength(1);
    });

    test('is tried again after long: the definition over there may be another one by then', async () => {
      changeHome(CRONTABS, 'a', { spec: { image: 'z' } });
      await world.until('it is said', () => told('CopyNotChanged').length > 0);
      await world.clock.advance(600_000);
      await world.until('it is tried again', () => puts() > 1);
      expect(told('CopyNotChanged')).toHaveLength(1);
    });

    test('and whose object says so: the copy is made anew, also when it says so later', async () => {
      const uid = there(CRONTABS, 'a')?.metadata.uid;
      changeHome(CRONTABS, 'a', { spec: { image: 'z' } });
      await world.until('it is said', () => told('CopyNotChanged').length > 0);
      const { metadata } = world.home.storage.get(CRONTABS, 'shop/a') as AnyObject;
      const annotations = { 'tributary.dev/when-immutable': 'Replace' };
      changeHome(CRONTABS, 'a', { metadata: { ...metadata, annotations } });
      await world.until('it is made anew', () => image() === 'z');
      expect(there(CRONTABS, 'a')?.metadata.uid).not.toBe(uid);
      expect(there(CRONTABS, 'a')?.metadata.annotations).not.toHaveProperty('tributary.dev/when-immutable');
      changeHome(CRONTABS, 'a', { spec: { image: 'other' } });
      await world.until('and again', () => image() === 'other');
    });

    test('what could not be made like that either is never deleted for it', async () => {
      const { uid } = there(CRONTABS, 'a')?.metadata ?? {};
      const message = 'CronTab "a" is invalid: spec.image: no such image';
      const isTrial = ({ method, path }: { method: string; path: string }): boolean =>
        method === 'POST' && isCronTab({ path });
      world.foreign.fault({ match: isTrial, times: Infinity, status: 422, message });
      const { metadata } = world.home.storage.get(CRONTABS, 'shop/a') as AnyObject;
      const annotations = { 'tributary.dev/when-immutable': 'Replace' };
      changeHome(CRONTABS, 'a', { metadata: { ...metadata, annotations }, spec: { image: 'z' } });
      await world.until('it is said', () => told('Invalid').length > 0);
      await world.clock.advance(300_000);
      expect([puts(), told('Invalid').length]).toEqual([1, 1]);
      expect(there(CRONTABS, 'a')?.metadata.uid).toBe(uid);
    });
  });

  test.each([
    ['home', 404, 'KindNotServed', 'this cluster does not know crontabs.stable.example.com (v1)'],
    ['foreign', 404, 'KindNotServed', 'the foreign cluster does not know crontabs.stable.example.com (v1)'],
    ['home', 403, 'KindForbidden', 'aggregate-to-agents'],
    ['foreign', 403, 'KindForbidden', 'reflectableKinds'],
  ] as const)(
    '%s answers %d: said once, the others go on, and it works as soon as it can',
    async (side, status, reason, message) => {
      const heal = world[side].fault({
        match: ({ path }) => path.includes('crontabs'),
        times: Infinity,
        status,
      });
      world.network = new FakeNetwork();
      setRules(ALL);
      addCronTab('a');
      world.home.seed(services, {
        metadata: { namespace: 'shop', name: 'web' },
        spec: { ports: [{ port: 80 }] },
      });
      world.addPod('p');
      await world.start();
      await world.until('the pod runs', () => world.status('p')?.['phase'] === 'Running');
      await world.until('Services are there', () => there('services', 'web') !== undefined);
      await world.until('it is said', () => told(reason).length === 2);
      await world.until('it is tried again', () => asked(/crontabs/u).length > 4);
      expect(told(reason)).toHaveLength(2);
      expect(told(reason)[0]).toContain(message);
      expect(told(reason)[1]).toContain('namespace shop: ');
      expect(there(CRONTABS, 'a')).toBeUndefined();
      heal();
      await world.until('it is there', () => there(CRONTABS, 'a') !== undefined);
    },
    2 * TIMEOUT_MS,
  );

  test('a kind that the provider never lets in keeps no namespace from being taken out', async () => {
    world.foreign.fault({ match: ({ path }) => path.includes('crontabs'), times: Infinity, status: 403 });
    setRules(ALL);
    addCronTab('a');
    await world.start();
    await world.until('it is said', () => told('KindForbidden').length > 0);
    setNode(() => ({ namespaces: [] }));
    await world.until('the namespace is forgotten', () => (recorded() as unknown[]).length === 0);
  });

  test('a rule that can have no effect is said', async () => {
    setRules({ resource: 'pods', policy: 'All' }, { ...ALL, drop: ['spec..x'] });
    addCronTab('a');
    await world.start();
    await world.until('both are said', () => told('InvalidReflectionRule').length === 4);
    expect(told('InvalidReflectionRule')[0]).toContain('none of it travels');
    await world.settled();
    expect(there(CRONTABS, 'a')).toBeUndefined();
  });
});

describe('Ingresses', () => {
  const addIngress = (name: string, ingressClassName?: string): AnyObject =>
    world.home.seed(ingresses, {
      metadata: { namespace: 'shop', name },
      spec: {
        ...(ingressClassName !== undefined && { ingressClassName }),
        tls: [{ secretName: 'cert' }],
        rules: [{ host: 'x.example.com' }],
      },
    });

  test('follow the map of classes as it changes, with their certificates, without a network', async () => {
    world.home.seed(secrets, {
      metadata: { namespace: 'shop', name: 'cert' },
      type: 'kubernetes.io/tls',
      data: {},
    });
    world.home.seed(secrets, { metadata: { namespace: 'shop', name: 'other' }, data: {} });
    addIngress('web', 'nginx');
    await world.start();
    await world.until('it is said', () => told('IngressClassNotMapped').length === 1);
    await world.settled();
    expect(there('secrets', 'cert')).toBeUndefined();
    setNode(() => ({ ingressClasses: { nginx: 'haproxy' } }));
    await world.until('it is there', () => there(INGRESSES, 'web')?.spec?.['ingressClassName'] === 'haproxy');
    await world.until('its certificate', () => there('secrets', 'cert') !== undefined);
    setNode(() => ({ ingressClasses: { nginx: 'traefik' } }));
    await world.until(
      'the new class',
      () => there(INGRESSES, 'web')?.spec?.['ingressClassName'] === 'traefik',
    );
    setNode(() => ({ ingressClasses: {} }));
    await world.until('it is home', () => there(INGRESSES, 'web') === undefined);
    await world.until('so is its certificate', () => there('secrets', 'cert') === undefined);
    expect(there('secrets', 'other')).toBeUndefined();
  });

  test('one that says so stays home with its certificate, whatever its class', async () => {
    world.home.seed(secrets, { metadata: { namespace: 'shop', name: 'cert' }, data: {} });
    setNode(() => ({ ingressClasses: { nginx: 'nginx' } }));
    const { metadata } = addIngress('web', 'nginx');
    await world.start();
    const both = (): boolean[] =>
      [there(INGRESSES, 'web'), there('secrets', 'cert')].map((copy) => copy !== undefined);
    await world.until('both are there', () => both().every(Boolean));
    const annotations = { 'tributary.dev/reflect': 'false' };
    changeHome(INGRESSES, 'web', { metadata: { ...metadata, annotations } });
    await world.until('both are home', () => !both().some(Boolean));
  });

  test('a provider that does not let them in is told of only where there are some', async () => {
    world.foreign.fault({ match: ({ path }) => path.includes('ingresses'), times: Infinity, status: 403 });
    world.addPod('p');
    await world.start();
    await world.settled();
    await world.until('it is tried', () => asked(/tenant\/ingresses/u).length > 2);
    expect(told('KindForbidden')).toEqual([]);
    addIngress('web', 'nginx');
    await world.until('it is said', () => told('KindForbidden').length > 0);
  });
});

const SLICES = 'endpointslices.discovery.k8s.io';
const addSlice = (name: string, service: string): AnyObject =>
  world.home.seed(endpointSlices, {
    metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [],
    endpoints: [{ addresses: ['10.1.0.1'], conditions: { ready: true } }],
  });

test('Services by opt-in: slices of others stay home, and follow when theirs opts in', async () => {
  world.network = new FakeNetwork();
  setRules({ resource: 'services', policy: 'OptIn' });
  for (const name of ['web', 'db']) {
    world.home.seed(services, {
      metadata: {
        namespace: 'shop',
        name,
        ...(name === 'web' && { annotations: { 'tributary.dev/reflect': 'true' } }),
      },
      spec: { type: 'ClusterIP', ports: [{ port: 80 }] },
    });
  }
  await world.start();
  await world.until('web is there', () => there('services', 'web') !== undefined);
  addSlice('web-1', 'web');
  addSlice('db-1', 'db');
  await world.until('its slice', () => there(SLICES, 'tributary-web-1') !== undefined);
  expect(there('services', 'db')).toBeUndefined();
  expect(there(SLICES, 'tributary-db-1')).toBeUndefined();
  setRules({ resource: 'services', policy: 'None' });
  await world.until(
    'none',
    () => there('services', 'web') === undefined && there(SLICES, 'tributary-web-1') === undefined,
  );
});
