import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { endpointSlices, events, namespaced, pods, services } from '../../src/api/resources.ts';
import type { EndpointSlice } from '../../src/api/wire.ts';
import { eventually } from '../support/eventually.ts';
import { type AgentLab, NODE } from '../support/labs/agent-lab.ts';
import {
  endpoint,
  joinNetworks,
  orNone,
  ServicesLab,
  SLICE,
  theirSlice,
} from '../support/labs/services-lab.ts';

/**
 * Services without a selector, whose endpoints people or their controllers write: those that run over there are endpoints
 * there by their own addresses. Two real API servers, while the test plays the tunnel.
 */

const MADE = 'endpointslice.kubernetes.io/managed-by=native.tributary.dev';

let world: ServicesLab;
let lab: AgentLab;
/** The address of a pod over there, as home sees it, and its own. */
let there = '';
let native = '';

beforeAll(async () => {
  world = await ServicesLab.up();
  ({ lab } = world);
  await joinNetworks(lab);
  await lab.home.create(pods, {
    metadata: { namespace: 'shop', name: 'web-0' },
    spec: {
      nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
      tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
      containers: [{ name: 'main', image: 'web:1' }],
    },
  });
  await eventually('the pod has an address', async () => {
    const pod = await orNone(lab.home.get(pods, { namespace: 'shop', name: 'web-0' }));
    there = pod?.status?.podIP ?? '';
    return there.startsWith('101.');
  });
  native = there.replace(/^101/u, '10');
  for (const name of ['manual', 'legacy']) {
    const spec = { ports: [{ name: 'http', port: 80, targetPort: 8080 }] };
    await lab.home.create(services, { metadata: { namespace: 'shop', name }, spec });
  }
});
afterAll(async () => world?.down());

const shows = async (service: string, ...wanted: string[]): Promise<void> => {
  let found: string[] = [];
  try {
    await eventually(`${service} is right over there`, async () => {
      found = await world.addresses('foreign', service);
      return found.join() === wanted.toSorted().join();
    });
  } catch (error) {
    throw new Error(`${service} is ${found.join()}, not ${wanted.join()}`, { cause: error });
  }
};

test('a slice of a person: pods of both clusters are endpoints over there, and people hear of what is none', async () => {
  await lab.home.create(endpointSlices, {
    ...SLICE,
    metadata: { namespace: 'shop', name: 'manual-1', labels: { 'kubernetes.io/service-name': 'manual' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [endpoint(there, { hostname: 'm-0' }), endpoint('10.1.0.5'), endpoint('101.255.0.9')],
  });
  await shows('manual', native, '100.99.0.5');
  const { items } = await lab.foreign.list(endpointSlices, { namespace: 'tenant', labelSelector: MADE });
  expect(items[0]).toMatchObject({
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [native], hostname: 'm-0', targetRef: { kind: 'Pod', name: 'web-0' } }],
  });
  await eventually('people hear of the address without a pod', async () => {
    const { items: said } = await lab.home.list(events, { namespace: 'shop' });
    return said.some(
      ({ reason, message = '' }) => reason === 'EndpointNotReflected' && message.startsWith('101.255.0.9 '),
    );
  });
});

test('legacy Endpoints: what the controller makes of them at home comes, too', async () => {
  const addresses = [{ ip: there }, { ip: '10.1.0.6' }];
  const subsets = [{ addresses, ports: [{ name: 'http', port: 8080 }] }];
  const legacy = { metadata: { namespace: 'shop', name: 'legacy' }, subsets };
  const type = namespaced('/v1', 'Endpoints', 'endpoints');
  await lab.home.create(type, legacy);
  await shows('legacy', native, '100.99.0.6');
});

test('a hostile home gets nothing but its own pods by asking, and does not touch what was made for it', async () => {
  const wish = ['10.96.0.1', '10.0.0.1', '100.99.0.1'];
  const asking = theirSlice([]) as EndpointSlice;
  const made = await world.peer.create(endpointSlices, {
    ...asking,
    metadata: {
      ...asking.metadata,
      annotations: {
        'tributary.dev/native-endpoints': JSON.stringify(wish.map((address) => ({ address }))),
      },
      // Home has no such object: its agent would remove the slice at once, but not one under another name.
      labels: { ...asking.metadata.labels, 'tributary.dev/managed-by': 'somebody' },
    },
  });
  const { name } = made.metadata;
  await eventually('it is told of all of them', async () => {
    const { metadata } = await lab.foreign.get(endpointSlices, { namespace: 'tenant', name });
    return metadata.annotations?.['tributary.dev/no-pod-at'] === wish.join();
  });
  const { items } = await lab.foreign.list(endpointSlices, { namespace: 'tenant', labelSelector: MADE });
  const all = items.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses));
  expect(new Set(all)).toEqual(new Set([native]));
  const [ours] = items;
  if (ours === undefined) throw new Error('there is none');
  const ref = { namespace: 'tenant', name: ours.metadata.name };
  const stolen = {
    ...SLICE,
    ...ours,
    metadata: { ...ours.metadata, labels: asking.metadata.labels ?? {} },
  };
  // Two policies refuse it, and either may be the first.
  const refused = /denied request: .*not (?:theirs|for peers) to change/u;
  await expect(world.peer.replace(endpointSlices, stolen)).rejects.toThrow(refused);
  await expect(world.peer.delete(endpointSlices, ref)).rejects.toThrow(refused);
  const saying = { ...asking.metadata, annotations: { 'tributary.dev/no-pod-at': '10.0.0.7' } };
  expect(await world.tries({ ...asking, metadata: saying })).toContain('of the annotations of tributary.dev');
});

test('what is deleted at home, or ends over there, is no endpoint any more', async () => {
  await lab.home.delete(endpointSlices, { namespace: 'shop', name: 'manual-1' });
  await shows('manual');
  await shows('legacy', native, '100.99.0.6');
  await lab.home.delete(pods, { namespace: 'shop', name: 'web-0' });
  await shows('legacy', '100.99.0.6');
});
