import { expect, test } from '@jest/globals';

import { NETWORK_CONFIG_MAP, ownNetworkData } from '../../../../src/api/own-network.ts';
import { configMaps, namespaces, pods, type ResourceType } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Gateway } from '../../../../src/network/gateway/gateway.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { RecordingHost } from '../../../support/network/recording-host.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

const NAMESPACE = 'tributary-system';

test('the host is left as it is until it is known where all pods are; then single addresses have routes', async () => {
  const clock = new FakeClock();
  const server = new FakeApi({ clock, types: [tunnels, virtualNodes] as ResourceType<KubeObject>[] });
  const client = server.client();
  const host = new RecordingHost();
  for (const name of [NAMESPACE, 'shop']) await client.create(namespaces, { metadata: { name } });
  const metadata = { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP };
  await client.create(configMaps, { metadata, data: ownNetworkData(NETWORK) });
  server.seed(tunnels, tunnelOf('p'));
  server.seed(pods, {
    metadata: { namespace: 'shop', name: 'stray', uid: 'stray', resourceVersion: '1' },
    spec: { nodeName: 'n2' },
    status: { phase: 'Running', podIPs: [{ ip: '10.1.0.77' }] },
  });
  const heal = server.fault({
    match: ({ query }) => query.get('fieldSelector')?.startsWith('spec.nodeName!=') === true,
    status: 500,
    times: Infinity,
  });
  const silent = (): (() => void) => () => undefined;
  const gateway = new Gateway({
    client,
    caches: new Caches({ client, clock, log: silentLogger }),
    host,
    prober: {
      setTargets: () => undefined,
      results: () => new Map(),
      onChange: silent,
      onMiss: silent,
      isCalm: true,
    },
    responder: { setAddress: () => undefined },
    nodes: { knock: async () => Promise.resolve(true), show: () => undefined },
    lookUp: async () => Promise.resolve([]),
    clock,
    log: silentLogger,
    events: { event: () => undefined },
    metrics: { show: () => undefined },
    namespace: NAMESPACE,
    nodeName: 'n1',
    link: 'tributary',
    vxlanLink: 'tributary-vx',
    mtu: 1420,
    port: 51820,
    probeSeconds: 1,
    leading: () => true,
  });
  const components = [...gateway.caches(), ...gateway.components()];
  const lifecycle = new Lifecycle(components, { clock, log: silentLogger, stopDeadlineMs: 5000 });
  await lifecycle.start(new AbortController().signal);
  await clock.advance(10_000);
  expect(host.sets).toEqual([]);
  heal();
  await clock.until('the host is set', () => host.last !== undefined);
  expect(host.last?.routes).toContainEqual({
    destination: '10.1.0.77/32',
    table: 7480,
    metric: 100,
    to: { link: 'tributary-vx', gateway: '10.70.0.3' },
  });
  expect(host.sets.filter(({ routes }) => routes.length !== host.last?.routes.length)).toEqual([]);
  await lifecycle.stop();
  await client.close();
  await server.stop();
});
