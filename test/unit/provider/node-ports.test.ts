import { expect, test } from '@jest/globals';

import { services } from '../../../src/api/resources.ts';
import type { Service } from '../../../src/api/wire.ts';
import { MAX_NODE_PORTS, nodePortsOf } from '../../../src/provider/node-ports.ts';
import { FakeNetwork } from './support/network.ts';
import { World } from './support/world.ts';

type Spec = NonNullable<Service['spec']>;
const service = (spec: Spec, name = 'web', metadata: Partial<Service['metadata']> = {}): Service => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...metadata,
  },
  spec,
});
const HTTP = { port: 80, nodePort: 30080 };
const at = (more: object = {}): object => ({
  protocol: 'TCP',
  port: 30080,
  clusterIP: '10.96.0.7',
  servicePort: 80,
  service: 'shop/web',
  ...more,
});

test.each<[string, Spec, object[]]>([
  ['a node port', { type: 'NodePort', clusterIP: '10.96.0.7', ports: [HTTP] }, [at()]],
  ['that of a load balancer', { type: 'LoadBalancer', clusterIP: '10.96.0.7', ports: [HTTP] }, [at()]],
  [
    'several, each by its protocol',
    {
      type: 'NodePort',
      clusterIP: 'fd00::7',
      ports: [
        { ...HTTP, protocol: 'UDP' },
        { port: 81, nodePort: 30081, protocol: 'SCTP' },
        { port: 82, nodePort: 30079 },
      ],
    },
    [
      at({ clusterIP: 'fd00::7', port: 30079, servicePort: 82 }),
      at({ clusterIP: 'fd00::7', protocol: 'UDP' }),
    ],
  ],
  [
    'no load balancer that has none',
    { type: 'LoadBalancer', clusterIP: '10.96.0.7', ports: [{ port: 80 }] },
    [],
  ],
  ['nothing of a ClusterIP', { type: 'ClusterIP', clusterIP: '10.96.0.7', ports: [HTTP] }, []],
  ['nothing without an address', { type: 'NodePort', ports: [HTTP] }, []],
  [
    'nothing that keeps the address of its client',
    { type: 'NodePort', clusterIP: '10.96.0.7', externalTrafficPolicy: 'Local', ports: [HTTP] },
    [],
  ],
])('%s', (_, spec, expected) => {
  expect(nodePortsOf([service(spec)])).toEqual(expected);
});

test('a Service that is being deleted, and one without a spec, have none', () => {
  const spec: Spec = { type: 'NodePort', clusterIP: '10.96.0.7', ports: [HTTP] };
  expect(nodePortsOf([service(spec, 'web', { deletionTimestamp: new Date(0).toISOString() })])).toEqual([]);
  const { spec: _spec, ...bare } = service(spec);
  expect(nodePortsOf([bare])).toEqual([]);
});

test('their number is bounded, and which they are does not depend on the order', () => {
  const all = Array.from({ length: MAX_NODE_PORTS + 20 }, (_, i) =>
    service(
      { type: 'NodePort', clusterIP: '10.96.0.7', ports: [{ port: 80, nodePort: 30_000 + i }] },
      `s${String(i).padStart(4, '0')}`,
    ),
  );
  const ports = nodePortsOf(all);
  expect(ports).toHaveLength(MAX_NODE_PORTS);
  expect(nodePortsOf(all.toReversed())).toEqual(ports);
});

test('they are those of the namespaces that are offloaded now, and whoever asks is told of changes', async () => {
  const world = await new World().up();
  try {
    world.network = new FakeNetwork();
    const { provider } = await world.start();
    let told = 0;
    provider.nodePorts.onChange(() => told++);
    const spec: Spec = { type: 'NodePort', clusterIP: '10.96.0.7', ports: [HTTP] };
    world.home.seed(services, { metadata: { namespace: 'shop', name: 'web' }, spec });
    world.home.seed(services, { metadata: { namespace: 'other', name: 'web' }, spec });
    await world.until('told', () => told > 0);
    expect(provider.nodePorts.list()).toEqual([at()]);

    const before = told;
    const rome = world.home.storage.get('virtualnodes.tributary.dev', 'rome');
    if (rome === undefined) throw new Error('no VirtualNode');
    world.home.storage.update('virtualnodes.tributary.dev', {
      ...rome,
      spec: { ...rome.spec, namespaces: [] },
    });
    await world.until('told again', () => told > before && provider.nodePorts.list().length === 0);
  } finally {
    await world.down();
  }
});
