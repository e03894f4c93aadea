import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ownNetworkData } from '../../../../src/api/own-network.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { configMaps, namespaces, networkPolicies } from '../../../../src/api/resources.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld, type Peer } from '../../../support/peering/lending-world.ts';

/** The NetworkPolicies of a tenant follow what the network says, and stand whoever touches them. */

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;
let rome: Peer;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [peeringRequests, sharingPolicies] });
  client = api.client();
  world = new LendingWorld(client, { clock, quotaPatienceMs: 0 });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

const tenant = async (): Promise<string> => {
  const found = (await client.list(namespaces)).items.find(
    ({ metadata }) => metadata.labels?.['tributary.dev/tenancy'] === 'contract',
  );
  return found?.metadata.name ?? '';
};
/** Those of all tenants, as text; empty without any. */
const policies = async (): Promise<string> => {
  const { items } = await client.list(networkPolicies);
  return items.map(({ spec }) => JSON.stringify(spec)).join('');
};
const says = async (...parts: string[]): Promise<boolean> => {
  const text = await policies();
  return parts.every((part) => text.includes(part));
};

test('it follows the network, drift is repaired, and None takes ours and leaves those of people', async () => {
  await world.policy();
  rome = world.peer();
  await rome.peered();
  const namespace = await tenant();
  await clock.until('without a network, every private range is closed', async () => says('"10.0.0.0/8"'));
  expect(await says(`"tributary.dev/peer":"${rome.id}"`)).toBe(true);

  const data = ownNetworkData({
    pods: ['10.1.0.0/16'],
    external: '10.9.0.0/16',
    gatewayAddress: '10.9.0.1',
    pools: [],
    nodes: [{ name: 'n', address: '192.168.7.4', external: '10.9.0.2', pods: [] }],
    vxlan: { vni: 1, port: 1 },
  });
  await client.create(configMaps, {
    metadata: { namespace: 'tributary-system', name: 'tributary-network' },
    data,
  });
  await clock.until('only ours are', async () => says('"10.1.0.0/16"', '"192.168.7.4/32"'));
  expect(await says('"10.0.0.0/8"')).toBe(false);

  const annotations = { 'tributary.dev/peer-prefixes': '100.99.0.0/16' };
  const body = { metadata: { annotations } };
  await client.patch(namespaces, { name: namespace }, { type: 'merge', body });
  await clock.until('the home is let in', async () => says('"100.99.0.0/16"'));

  const ref = { namespace, name: 'tributary-egress' };
  const wide = { spec: { ingress: [{}], egress: [{}] } };
  await client.patch(networkPolicies, ref, { type: 'merge', body: wide });
  await clock.until('drift is repaired', async () => says('"100.99.0.0/16"', '"10.1.0.0/16"'));
  await client.delete(networkPolicies, ref);
  await clock.until('it is made again', async () => says('"100.99.0.0/16"', '"10.1.0.0/16"'));

  await client.create(networkPolicies, {
    metadata: { namespace, name: 'of-people' },
    spec: { podSelector: {} },
  });
  await world.changePolicy({ isolation: 'None' });
  await clock.until('ours is gone', async () => !(await says('100.99.0.0/16')));
  expect((await client.list(networkPolicies)).items.map(({ metadata }) => metadata.name)).toEqual([
    'of-people',
  ]);
});
