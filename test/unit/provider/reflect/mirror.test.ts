import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { endpointSlices, services } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import type { Endpoint, EndpointSlice, Pod, Service } from '../../../../src/api/wire.ts';
import { DOWN, FakeNetwork } from '../support/network.ts';
import { World } from '../support/world.ts';

const TIMEOUT_MS = 30_000;

let world: World;
let network: FakeNetwork;
beforeEach(async () => {
  world = await new World().up();
  world.network = network = new FakeNetwork();
});
afterEach(async () => {
  await world.down();
});

const endpoint = (address: string, ready = true): Endpoint => ({
  addresses: [address],
  conditions: { ready, serving: ready, terminating: false },
  nodeName: 'node-1',
});

function addService(name: string, spec: Service['spec'] = {}): void {
  world.home.seed(services, {
    metadata: { namespace: 'shop', name },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', selector: { app: name }, ...spec },
  });
}

function addSlice(name: string, endpoints: Endpoint[], service = 'web'): void {
  world.home.seed(endpointSlices, {
    metadata: {
      namespace: 'shop',
      name,
      labels: {
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: '', port: 80, protocol: 'TCP' }],
    endpoints,
  });
}

type Side = 'home' | 'foreign';
const stored = (side: Side, plural: string, key: string): unknown => world[side].storage.get(plural, key);
function change<T extends object>(side: Side, plural: string, key: string, parts: Partial<T>): void {
  const { storage } = world[side];
  const object = storage.get(plural, key);
  if (object === undefined) throw new Error(`no ${plural} ${key}`);
  storage.update(plural, { ...object, ...parts });
}
const changeSlice = (name: string, endpoints: Endpoint[]): void =>
  change<EndpointSlice>('home', 'endpointslices.discovery.k8s.io', `shop/${name}`, { endpoints });

const service = (name = 'web'): Service | undefined =>
  stored('foreign', 'services', `tenant/${name}`) as Service | undefined;
const slice = (name = 'web-1'): EndpointSlice | undefined =>
  stored('foreign', 'endpointslices.discovery.k8s.io', `tenant/tributary-${name}`) as
    EndpointSlice | undefined;
/** `address`, with a `!` where it is not ready. */
const shown = (name = 'web-1'): string[] | undefined =>
  slice(name)?.endpoints?.map(
    ({ addresses, conditions }) => `${addresses[0]}${conditions?.ready === false ? '!' : ''}`,
  );
const shows = async (wanted: string[] | undefined, name = 'web-1'): Promise<void> =>
  world.until(
    `slice ${name} shows ${wanted?.join()}`,
    () => JSON.stringify(shown(name)) === JSON.stringify(wanted),
  );

/** Writes of Services and slices over there. */
function mirrorWrites(): () => string[] {
  const writes = world.recordWrites();
  return () => writes().filter((line) => /services|endpointslices/u.test(line));
}

const quiet = async (writes: () => string[]): Promise<void> => {
  let last = -1;
  await world.until('nothing is written any more', async () => {
    const now = writes().length;
    const isQuiet = now === last;
    last = now;
    // Longer than any retry on the world's clock.
    await world.clock.advance(2_000);
    return isQuiet;
  });
};

describe('a Service and its endpoints', () => {
  test('come, change with one write each, and go', async () => {
    addService('web', { type: 'NodePort' });
    addSlice('web-1', [endpoint('10.1.0.1'), endpoint('100.64.0.9')]);
    addSlice('web-2', [endpoint('100.64.0.8')]);
    await world.start();
    await shows(['100.99.0.1']);
    expect(service()?.spec).toEqual({ type: 'ClusterIP', selector: { app: 'web' } });
    expect(slice('web-2')).toBeUndefined();

    const writes = mirrorWrites();
    changeSlice('web-1', [endpoint('10.1.0.1', false), endpoint('10.1.0.2')]);
    await shows(['100.99.0.1!', '100.99.0.2']);
    change<Service>('home', 'services', 'shop/web', {
      spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', selector: { app: 'other' } },
    });
    await world.until('the selector', () => service()?.spec?.selector?.['app'] === 'other');
    await quiet(writes);
    expect(writes()).toEqual([
      expect.stringMatching(/^PUT .*\/endpointslices\/tributary-web-1/u),
      expect.stringMatching(/^PUT .*\/services\/web/u),
    ]);

    world.home.storage.remove('services', 'shop/web');
    await world.until('both are gone', () => service() === undefined && slice() === undefined);
  });

  test('nothing of the kind without a network, nor the API servers asked', async () => {
    network.set({ state: { kind: 'Off' } });
    addService('web');
    addSlice('web-1', [endpoint('10.1.0.1')]);
    world.addPod('p');
    await world.start();
    await world.settled();
    const asked = [...world.home.log, ...world.foreign.log].filter((line) =>
      /services|endpointslices/u.test(line),
    );
    expect(asked).toEqual([]);
    network.set({ state: { kind: 'Up' } });
    await shows(['100.99.0.1']);
    network.set({ state: { kind: 'Off' } });
    await world.until('both are gone', () => service() === undefined && slice() === undefined);
  });

  test('headless and back: made anew', async () => {
    addService('web');
    await world.start();
    await world.until('it is there', () => service() !== undefined);
    const first = service()?.metadata.uid;
    change<Service>('home', 'services', 'shop/web', { spec: { type: 'ClusterIP', clusterIP: 'None' } });
    await world.until('headless', () => service()?.spec?.clusterIP === 'None');
    expect(service()?.metadata.uid).not.toBe(first);
  });

  test('a field that cannot be changed: made anew, for a Service holds nothing of its own', async () => {
    addService('web');
    await world.start();
    await world.until('it is there', () => service() !== undefined);
    const first = service()?.metadata.uid;
    const match = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'PUT' && path.includes('services');
    world.foreign.fault({ match, times: Infinity, status: 422, message: 'field is immutable' });
    change<Service>('home', 'services', 'shop/web', { spec: { selector: { app: 'other' } } });
    await world.until('it follows', () => service()?.spec?.selector?.['app'] === 'other');
    expect(service()?.metadata.uid).not.toBe(first);
    expect(world.events.filter((line) => line.includes('immutable'))).toEqual([]);
  });

  test('deleted, and taken away by hand, while no agent runs', async () => {
    for (const name of ['web', 'db']) addService(name);
    addSlice('web-1', [endpoint('10.1.0.1')]);
    addSlice('db-1', [endpoint('10.1.0.2')], 'db');
    const agent = await world.start();
    await shows(['100.99.0.1']);
    await shows(['100.99.0.2'], 'db-1');
    await agent.stop();
    world.home.storage.remove('services', 'shop/web');
    world.home.storage.remove('endpointslices.discovery.k8s.io', 'shop/web-1');
    world.foreign.storage.remove('endpointslices.discovery.k8s.io', 'tenant/tributary-db-1');
    await world.start();
    await world.until('web is gone', () => service('web') === undefined && slice('web-1') === undefined);
    await shows(['100.99.0.2'], 'db-1');
  });

  test("somebody else's object of that name is left alone, and that is said once", async () => {
    world.foreign.seed(services, {
      metadata: { namespace: 'tenant', name: 'web' },
      spec: { type: 'NodePort' },
    });
    for (const name of ['web', 'db']) addService(name);
    addSlice('web-1', [endpoint('10.1.0.1')]);
    addSlice('db-1', [endpoint('10.1.0.1'), endpoint('192.0.2.1')], 'db');
    await world.start();
    await shows(['100.99.0.1'], 'db-1');
    const told = (): string[] => world.events.filter((line) => line.startsWith('NameTaken'));
    await world.until('it is said', () => told().length > 0);
    changeSlice('db-1', [endpoint('10.1.0.3'), endpoint('192.0.2.1')]);
    await shows(['100.99.0.3'], 'db-1');
    expect(service()?.spec).toEqual({ type: 'NodePort' });
    // Its endpoints would become those of the other one.
    expect(slice('web-1')).toBeUndefined();
    expect(told()).toEqual(['NameTaken: Service "web" exists in the tenant namespace and is not ours']);
    expect(world.events.filter((line) => line.startsWith('EndpointNotReflected'))).toHaveLength(1);
    world.foreign.storage.remove('services', 'tenant/web');
    await world.until('ours takes the name', () => service()?.spec?.type === 'ClusterIP');
    await shows(['100.99.0.1'], 'web-1');
  });

  test('a namespace that is taken out: they stay as long as its pods, then go', async () => {
    addService('web');
    addSlice('web-1', [endpoint('10.1.0.1')]);
    world.addPod('p');
    await world.start();
    await shows(['100.99.0.1']);
    await world.until('the pod runs', () => world.status('p')?.['phase'] === 'Running');
    const rome = world.home.storage.get('virtualnodes.tributary.dev', 'rome');
    if (rome === undefined) throw new Error('no VirtualNode');
    world.home.storage.update('virtualnodes.tributary.dev', {
      ...rome,
      spec: { ...rome.spec, namespaces: [] },
    });
    changeSlice('web-1', [endpoint('10.1.0.2')]);
    await shows(['100.99.0.2']);
    world.deletePod('p');
    await world.until('all is gone', () => service() === undefined && slice() === undefined);
    await world.until('the namespace is forgotten', () => {
      const { status } = world.home.storage.get('virtualnodes.tributary.dev', 'rome') as {
        status?: { namespaces?: [] };
      };
      return status?.namespaces?.length === 0;
    });
  });

  test('refused and in conflict: tried again', async () => {
    addService('web');
    addSlice('web-1', [endpoint('10.1.0.1')]);
    await world.start();
    await shows(['100.99.0.1']);
    const put = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'PUT' && path.includes('endpointslices');
    world.foreign.fault({ match: put, times: 2, status: 409 });
    world.foreign.fault({ match: put, status: 422 });
    changeSlice('web-1', [endpoint('10.1.0.2')]);
    await shows(['100.99.0.2']);
  });
});

describe('when packets do not get through', () => {
  const ready = (name: string): string | undefined =>
    ((stored('home', 'pods', `shop/${name}`) as Pod | undefined)?.status?.conditions ?? []).find(
      ({ type }) => type === 'Ready',
    )?.reason;
  const isReady = (name: string): boolean =>
    ((stored('home', 'pods', `shop/${name}`) as Pod | undefined)?.status?.conditions ?? []).some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    );

  test('endpoints over there and pods at home are not ready, and come back', async () => {
    network.set({ views: [{ use: 'Pods', prefix: '10.0.0.0/8', as: '100.0.0.0/8' }] });
    addService('web');
    addSlice('web-1', [endpoint('10.1.0.1')]);
    world.addPod('p');
    const { provider } = await world.start();
    await shows(['100.99.0.1']);
    await world.until('the pod is ready', () => isReady('p'));
    const address = (): string | undefined =>
      (stored('home', 'pods', 'shop/p') as Pod | undefined)?.status?.podIP;
    expect(address()).toMatch(/^100\./u);
    network.set({ state: DOWN });
    await shows(['100.99.0.1!']);
    await world.until('the pod is not ready', () => ready('p') === 'TunnelDown');
    // What `kubectl get pods` shows as STATUS; the phase stays, so that nobody ends or replaces the pod.
    const status = (): Pod['status'] => (stored('home', 'pods', 'shop/p') as Pod | undefined)?.status;
    expect(status()).toMatchObject({ phase: 'Running', reason: 'TunnelDown' });
    const condition = (): string | undefined =>
      (
        world.home.storage.get('nodes', provider.nodeName)?.status as {
          conditions?: { type: string; status: string; reason: string }[];
        }
      )?.conditions
        ?.filter(({ type }) => type === 'NetworkUnavailable')
        .map(({ status, reason }) => `${status} ${reason}`)
        .join();
    await world.until('the node says so', () => condition() === 'True NoAnswer');
    expect(address()).toMatch(/^100\./u);
    network.set({ state: { kind: 'Up' } });
    await shows(['100.99.0.1']);
    await world.until('the pod is ready again', () => isReady('p'));
    expect(status()).not.toHaveProperty('reason');
    await world.until('the node says so', () => condition() === 'False TunnelReady');
    network.set({ state: { kind: 'Off' } });
    await world.until('the node says nothing', () => condition() === '');
  });

  test('a pod without a view shows no address and is not ready', async () => {
    network.set({ views: [] });
    world.addPod('p');
    await world.start();
    await world.until('it is said', () => ready('p') === 'NoViewOfAddress');
    expect((stored('home', 'pods', 'shop/p') as Pod | undefined)?.status).not.toHaveProperty('podIP');
    network.set({ views: [{ use: 'Pods', prefix: '10.0.0.0/8', as: '100.0.0.0/8' }] });
    await world.until('the pod is ready', () => isReady('p'));
  });

  test('a pod of a provider without a network is ready; its address is shown only where home has none either', async () => {
    network.set({ state: { kind: 'Off' } });
    world.addPod('p');
    await world.start();
    const status = (): Pod['status'] => (stored('home', 'pods', 'shop/p') as Pod | undefined)?.status;
    await world.until('the address of over there', () => isReady('p') && status()?.podIP !== undefined);
    network.set({ hides: true });
    await world.until('no address', () => status()?.podIP === undefined);
    expect(status()).not.toHaveProperty('podIPs');
    expect(isReady('p')).toBe(true);
  });

  test('not even the other API server: pods at home are not ready all the same', async () => {
    network.set({ views: [{ use: 'Pods', prefix: '10.0.0.0/8', as: '100.0.0.0/8' }] });
    world.addPod('p');
    const { provider } = await world.start();
    await world.until('the pod is ready', () => isReady('p'));
    await world.foreign.stop();
    await world.until('contact is lost', () => !provider.contact.state.ok);
    await world.until('the pod is not ready', () => ready('p') === 'ForeignClusterAway');
    expect((stored('home', 'pods', 'shop/p') as Pod | undefined)?.status?.reason).toBe('ForeignClusterAway');
    network.set({ state: DOWN });
    await world.foreign.start();
    await world.until('the tunnel is what is left', () => ready('p') === 'TunnelDown');
    network.set({ state: { kind: 'Up' } });
    await world.until('all is well', () => isReady('p'));
  });

  test('withheld by the provider: no more than that, and repaired once it lets go', async () => {
    addService('web');
    addSlice('web-1', [endpoint('10.1.0.1')]);
    await world.start();
    await shows(['100.99.0.1']);
    const key = 'tenant/tributary-web-1';
    const hold = (annotations: Record<string, string>): void => {
      const held = slice();
      if (held === undefined) throw new Error('no slice');
      change<EndpointSlice>('foreign', 'endpointslices.discovery.k8s.io', key, {
        metadata: { ...held.metadata, annotations: { ...held.metadata.annotations, ...annotations } },
        endpoints: (held.endpoints ?? []).map((one) => ({
          ...one,
          conditions: { ...one.conditions, ready: false, serving: false },
        })),
      });
    };
    const writes = mirrorWrites();
    hold({ 'tributary.dev/withheld': 'TunnelDown' });
    await quiet(writes);
    expect(writes()).toEqual([]);
    changeSlice('web-1', [endpoint('10.1.0.1'), endpoint('10.1.0.2')]);
    await shows(['100.99.0.1!', '100.99.0.2!']);
    const { 'tributary.dev/withheld': mark, ...rest } = slice()?.metadata.annotations ?? {};
    expect(mark).toBe('TunnelDown');
    const held = slice();
    if (held === undefined) throw new Error('no slice');
    change<EndpointSlice>('foreign', 'endpointslices.discovery.k8s.io', key, {
      metadata: { ...held.metadata, annotations: rest },
    });
    await shows(['100.99.0.1', '100.99.0.2']);
    await quiet(writes);
    expect(writes()).toHaveLength(2);
  });
});

test('a rule that goes before the watch shows what was made for it: that goes, too', async () => {
  const match = ({ path, query }: { path: string; query: URLSearchParams }): boolean =>
    query.get('watch') === 'true' && path.endsWith('/services');
  world.foreign.fault({ match, times: Infinity, stall: true });
  await world.start();
  addService('web');
  await world.until('it is made', () => service() !== undefined);
  const reflection = [{ group: '', resource: 'services', policy: 'None' }];
  const { spec } = stored('home', 'virtualnodes.tributary.dev', 'rome') as VirtualNode;
  const namespaces = (spec.namespaces ?? []).map((mapping) => ({ ...mapping, reflection }));
  change('home', 'virtualnodes.tributary.dev', 'rome', { spec: { ...spec, namespaces } });
  await world.until('it is gone', () => service() === undefined);
});

test(
  '10,000 endpoints: a write for each slice, and one for one that flaps',
  async () => {
    addService('web');
    const of = (index: number, ready = true): Endpoint[] =>
      Array.from({ length: 100 }, (_, at) => endpoint(`10.1.${index}.${at + 1}`, at > 0 || ready));
    for (let index = 0; index < 100; index++) addSlice(`web-${index}`, of(index));
    const writes = mirrorWrites();
    const began = performance.now();
    await world.start();
    await world.until('all are there', () => slice('web-99') !== undefined && writes().length >= 101);
    const took = performance.now() - began;
    await quiet(writes);
    expect(writes()).toHaveLength(101);
    changeSlice('web-50', of(50, false));
    await world.until('it is not ready', () => shown('web-50')?.[0] === '100.99.50.1!');
    await quiet(writes);
    expect(writes()).toHaveLength(102);
    console.info(`10,000 endpoints in 100 slices: ${Math.round(took)} ms with the start of the agent`);
  },
  2 * TIMEOUT_MS,
);

describe.each(['before', 'after'] as const)('killed %s', (when) => {
  /** More than a run without faults needs. */
  const WRITES = 9;
  let crashes = 0;

  test.each(Array.from({ length: WRITES }, (_, index) => index + 1))(
    'write %i',
    async (k) => {
      for (const name of ['web', 'db']) {
        addService(name);
        addSlice(`${name}-1`, [endpoint('10.1.0.1')], name);
      }
      const { crashed, crash } = world.crashAt(k, when);
      const agent = await world.start();
      const supervision = crash.then(async () => {
        crashes++;
        await world.replace(agent);
      });
      await shows(['100.99.0.1']);
      changeSlice('web-1', [endpoint('10.1.0.2')]);
      world.home.storage.remove('services', 'shop/db');
      await shows(['100.99.0.2']);
      await world.until('db is gone', () => service('db') === undefined && slice('db-1') === undefined);
      if (crashed()) await supervision;
      await shows(['100.99.0.2']);
    },
    TIMEOUT_MS,
  );

  afterAll(() => {
    expect(crashes).toBeGreaterThan(5);
  });
});
