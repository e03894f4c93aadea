import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OFF_AFTER_MS } from '../../src/network/tunnel-view.ts';
import { LABEL_PROVIDER, LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { endpointSlices, nodes, pods, services } from '../../src/api/resources.ts';
import { tunnels } from '../../src/api/tunnel.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { EndpointSlice, Service } from '../../src/api/wire.ts';
import { NODE, type AgentLab } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';
import {
  endpoint,
  HOME_ID,
  joinNetworks,
  orNone,
  PROVIDER_ID,
  ServicesLab,
  setTunnel,
  SLICE,
  theirService,
  theirSlice,
} from '../support/labs/services-lab.ts';

/**
 * Services and their endpoints between two real API servers, while the test plays the tunnel: what appears in the
 * foreign cluster, what a hostile home cannot write there, and what happens when packets do not get through.
 */

let world: ServicesLab;
let lab: AgentLab;
beforeAll(async () => {
  world = await ServicesLab.up();
  ({ lab } = world);
});
afterAll(async () => world?.down());

const FOREIGN_ADDRESS = '100.99.0.1';

test('without a tunnel nothing is reflected, and no endpoint may be written', async () => {
  const spec = { ports: [{ name: 'http', port: 80, targetPort: 8080 }] };
  await lab.home.create(services, { metadata: { namespace: 'shop', name: 'web' }, spec });
  await lab.home.create(endpointSlices, {
    ...SLICE,
    metadata: {
      namespace: 'shop',
      name: 'web-1',
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'a-person',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [endpoint('10.1.0.1', { hostname: 'web-0' }), endpoint('192.0.2.1')],
  });
  await eventually('the policy is in force', async () =>
    (await world.tries(theirSlice([endpoint(FOREIGN_ADDRESS)]))).includes('none without a tunnel'),
  );
  expect(await world.service('web')).toBeUndefined();
});

test('with one they appear over there, by the addresses that are seen there', async () => {
  await joinNetworks(lab);
  await world.shows('web-1', FOREIGN_ADDRESS);
  expect((await world.slice('web-1'))?.endpoints?.[0]).toMatchObject({ hostname: 'web-0' });
  const made = await world.service('web');
  expect(made?.spec).toMatchObject({
    type: 'ClusterIP',
    ports: [{ name: 'http', port: 80, targetPort: 8080 }],
  });
  expect(made?.spec?.clusterIP).toMatch(/\./u);
});

test('headless, session affinity and names of other kinds; changes follow, and deletions', async () => {
  const add = async (name: string, spec: NonNullable<Service['spec']>): Promise<unknown> =>
    lab.home.create(services, { metadata: { namespace: 'shop', name }, spec });
  await add('headless', { clusterIP: 'None', selector: { app: 'none' }, ports: [{ port: 80 }] });
  await add('away', { type: 'ExternalName', externalName: 'db.example.com' });
  await add('balanced', {
    type: 'LoadBalancer',
    sessionAffinity: 'ClientIP',
    selector: { app: 'none' },
    ports: [{ port: 80 }],
  });
  await eventually(
    'all are there',
    async () =>
      (await world.service('headless'))?.spec?.clusterIP === 'None' &&
      (await world.service('away'))?.spec?.externalName === 'db.example.com' &&
      (await world.service('balanced'))?.spec?.sessionAffinity === 'ClientIP',
  );
  expect((await world.service('balanced'))?.spec).toMatchObject({ type: 'ClusterIP' });
  const patch = async (name: string, spec: object): Promise<unknown> =>
    lab.home.patch(services, { namespace: 'shop', name }, { type: 'merge', body: { spec } });
  await patch('away', { type: 'ClusterIP', externalName: null, ports: [{ port: 81 }] });
  await patch('balanced', { sessionAffinity: 'None', ports: [{ name: 'x', port: 82 }] });
  await lab.home.delete(services, { namespace: 'shop', name: 'headless' });
  await eventually(
    'all have followed',
    async () =>
      (await world.service('headless')) === undefined &&
      (await world.service('away'))?.spec?.type === 'ClusterIP' &&
      (await world.service('balanced'))?.spec?.ports?.[0]?.port === 82,
  );
});

test('an offloaded pod: at home by the address that home sees, over there in the endpoints of its own cluster', async () => {
  const selector = { app: 'mixed' };
  await lab.home.create(services, {
    metadata: { namespace: 'shop', name: 'mixed' },
    spec: { selector, ports: [{ port: 80 }] },
  });
  await lab.home.create(pods, {
    metadata: { namespace: 'shop', name: 'mixed-0', labels: selector },
    spec: {
      nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
      tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
      containers: [{ name: 'main', image: 'web:1' }],
    },
  });
  const address = async (): Promise<string> =>
    (await orNone(lab.home.get(pods, { namespace: 'shop', name: 'mixed-0' })))?.status?.podIP ?? '';
  await eventually('the pod has an address', async () => (await address()).startsWith('101.'));
  const seen = await address();
  await eventually('at home', async () => (await world.addresses('home', 'mixed')).join() === seen);
  await eventually(
    'over there',
    async () => (await world.addresses('foreign', 'mixed')).join() === seen.replace(/^101/u, '10'),
  );
});

test('a virtual node that leaves takes nothing from another one of its provider', async () => {
  const second = { name: 'second' };
  const { spec, ...kind } = await lab.home.get(virtualNodes, { name: NODE });
  const metadata = { ...second, labels: { [LABEL_PROVIDER]: PROVIDER_ID } };
  const made = await lab.home.create(virtualNodes, { ...kind, metadata, spec, status: {} });
  await lab.kill();
  await lab.start({ others: [made.metadata.name] });
  const has = async (count: number): Promise<boolean> =>
    (await lab.home.get(virtualNodes, second)).status?.namespaces?.length === count;
  await eventually('it has the namespace', async () => has(1));
  const before = [await world.service('web'), await world.service('mixed')];
  expect(before).not.toContain(undefined);
  const writes = (await world.slice('web-1'))?.metadata.resourceVersion;
  await lab.home.patch(virtualNodes, second, { type: 'merge', body: { spec: { namespaces: [] } } });
  await eventually('it has left', async () => !(await has(1)));
  await lab.home.patch(virtualNodes, second, {
    type: 'merge',
    body: { spec: { namespaces: spec.namespaces ?? [] } },
  });
  await eventually('it is back', async () => has(1));
  await lab.home.delete(virtualNodes, second);
  await eventually(
    'its Node has gone',
    async () => (await orNone(lab.home.get(nodes, second))) === undefined,
  );
  await lab.ready();
  expect([await world.service('web'), await world.service('mixed')]).toEqual(before);
  expect((await world.slice('web-1'))?.metadata.resourceVersion).toBe(writes);
});

describe('a hostile home', () => {
  test.each<[string, () => object]>([
    ['a plain ClusterIP', () => theirService({ selector: { app: 'x' } })],
    ['a headless one', () => theirService({ clusterIP: 'None' })],
    ['an ExternalName', () => theirService({ type: 'ExternalName', externalName: 'a.example.com' })],
    ['endpoints of its own', () => theirSlice([endpoint('100.99.255.255')])],
    [
      'many endpoints',
      () => theirSlice(Array.from({ length: 1000 }, (_, at) => endpoint(`100.99.${at >> 8}.${at & 255}`))),
    ],
  ])('may write: %s', async (_what, object) => {
    expect(await world.tries(object())).toBe('made');
  });

  test.each<[string, () => object, string]>([
    ['a load balancer', () => theirService({ type: 'LoadBalancer' }), 'of type ClusterIP or ExternalName'],
    ['a node port', () => theirService({ type: 'NodePort' }), 'of type ClusterIP or ExternalName'],
    [
      'external IPs (CVE-2020-8554)',
      () => theirService({ externalIPs: ['8.8.8.8'] }),
      'may not claim external IPs',
    ],
    [
      'a Service without a mark',
      () => theirService({}, { labels: {} }),
      'bear the label tributary.dev/managed-by',
    ],
    [
      'a DNS name of the provider',
      () =>
        theirService({}, { annotations: { 'external-dns.alpha.kubernetes.io/hostname': 'bank.example' } }),
      // Two policies refuse it, each with its own message.
      'steer',
    ],
    ['our pods (CVE-2021-25740)', () => theirSlice([endpoint('10.0.0.7')]), 'addresses of the peer only'],
    [
      'one of ours among theirs',
      () => theirSlice([endpoint('100.99.0.1'), endpoint('10.0.0.7')]),
      'of the peer only',
    ],
    ['our API server', () => theirSlice([endpoint('10.96.0.1')]), 'addresses of the peer only'],
    ['next to its prefix', () => theirSlice([endpoint('100.100.0.0')]), 'addresses of the peer only'],
    ['the Internet', () => theirSlice([endpoint('203.0.113.7')]), 'addresses of the peer only'],
    [
      'another family',
      () => theirSlice([endpoint('fd00::7')], { addressType: 'IPv6' }),
      'addresses of the peer only',
    ],
    [
      'names of hosts',
      () => theirSlice([endpoint('kubernetes.default')], { addressType: 'FQDN' }),
      'name addresses, not names',
    ],
    [
      'one of our pods by name',
      () =>
        theirSlice([
          endpoint('100.99.0.1', { targetRef: { kind: 'Pod', name: 'x', namespace: 'kube-system' } }),
        ]),
      'are no pods and on no nodes',
    ],
    [
      'one of our nodes by name',
      () => theirSlice([endpoint('100.99.0.1', { nodeName: 'foreign-1' })]),
      'are no pods and on no nodes',
    ],
    [
      "our controller's own",
      () => ({
        ...theirSlice([endpoint('100.99.0.1')]),
        metadata: {
          namespace: 'tenant',
          generateName: 'try-',
          labels: {
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
          },
        },
      }),
      // Two policies refuse it, and either may answer.
      'bear the label',
    ],
  ])('may not write: %s', async (_what, object, reason) => {
    expect(await world.tries(object())).toContain(reason);
  });

  test.each([
    ['loopback (CVE-2021-25737)', '127.0.0.1'],
    ['link-local (CVE-2021-25737)', '169.254.169.254'],
  ])('may not write: %s', async (_what, address) => {
    expect(await world.tries(theirSlice([endpoint(address)]))).not.toBe('made');
  });

  test('may not take over or delete what our controller makes', async () => {
    const labelSelector = 'endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io';
    const { items } = await lab.foreign.list(endpointSlices, { namespace: 'tenant', labelSelector });
    const [native] = items;
    if (native === undefined) throw new Error('there is none');
    const { name } = native.metadata;
    const labels = (theirSlice([]) as EndpointSlice).metadata.labels ?? {};
    const stolen = {
      ...SLICE,
      ...native,
      metadata: { ...native.metadata, labels },
      endpoints: [endpoint('100.99.0.1')],
    };
    await expect(world.peer.replace(endpointSlices, stolen)).rejects.toThrow('are not theirs to change');
    await expect(world.peer.delete(endpointSlices, { namespace: 'tenant', name })).rejects.toThrow(
      'not theirs',
    );
    await expect(world.peer.get(endpointSlices, { namespace: 'kube-system', name })).rejects.toThrow(
      'forbidden',
    );
  });
});

describe('when packets do not get through', () => {
  const unavailable = async (): Promise<string | undefined> =>
    (await lab.home.get(nodes, { name: NODE })).status?.conditions?.find(
      ({ type }) => type === 'NetworkUnavailable',
    )?.status;
  const isReady = async (): Promise<boolean> =>
    (await lab.home.get(pods, { namespace: 'shop', name: 'mixed-0' })).status?.conditions?.some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    ) ?? false;

  test('and home knows: endpoints over there, pods and node here say so, and say when it is over', async () => {
    expect(await unavailable()).toBe('False');
    await setTunnel(lab.home, PROVIDER_ID, { status: 'False' });
    await world.shows('web-1', `${FOREIGN_ADDRESS}!`);
    await eventually('the node', async () => (await unavailable()) === 'True');
    await eventually('the pod', async () => !(await isReady()));
    await setTunnel(lab.home, PROVIDER_ID, { status: 'True' });
    await world.shows('web-1', FOREIGN_ADDRESS);
    await eventually('the node', async () => (await unavailable()) === 'False');
    await eventually('the pod', isReady);
  });

  test('and only the provider knows: it withholds, lets go, and home repairs', async () => {
    await lab.kill();
    await setTunnel(lab.foreign, HOME_ID, { status: 'False' });
    await world.shows('web-1', `${FOREIGN_ADDRESS}!`);
    expect((await world.slice('web-1'))?.metadata.annotations).toMatchObject({
      'tributary.dev/withheld': 'TunnelDown',
    });
    await lab.start();
    await lab.ready();
    const { endpoints } = (await lab.home.get(endpointSlices, { namespace: 'shop', name: 'web-1' })) ?? {};
    await lab.home.patch(
      endpointSlices,
      { namespace: 'shop', name: 'web-1' },
      { type: 'merge', body: { endpoints: [...(endpoints ?? []), endpoint('10.1.0.2')] } },
    );
    await world.shows('web-1', '100.99.0.1! 100.99.0.2!');
    await setTunnel(lab.foreign, HOME_ID, { status: 'True' });
    await world.shows('web-1', '100.99.0.1 100.99.0.2');
    expect((await world.slice('web-1'))?.metadata.annotations).not.toHaveProperty('tributary.dev/withheld');
  });

  test('no tunnel any more: nothing is left over there', async () => {
    await lab.home.delete(tunnels, { name: PROVIDER_ID });
    await eventually(
      'all are gone',
      async () => (await world.slice('web-1')) === undefined && (await world.service('web')) === undefined,
      60_000 + OFF_AFTER_MS,
    );
    await lab.foreign.delete(tunnels, { name: HOME_ID });
    await eventually('no endpoint may be written', async () =>
      (await world.tries(theirSlice([endpoint(FOREIGN_ADDRESS)]))).includes('none without a tunnel'),
    );
  });
});
