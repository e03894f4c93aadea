import { peeringRequests } from '../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { FakeApi } from '../fake-api/fake-api.ts';
import { FakeClock } from '../fake-clock.ts';
import { LendingWorld } from './lending-world.ts';

/** A cluster of one node that lends, on a simulated API server, in simulated time. */
export interface SimulatedLending {
  clock: FakeClock;
  api: FakeApi;
  client: KubeClient;
  world: LendingWorld;
}

export async function startLending(): Promise<SimulatedLending> {
  const clock = new FakeClock();
  const api = new FakeApi({ clock, types: [peeringRequests, sharingPolicies] });
  const client = api.client();
  // The simulator has no controller that would count for quotas.
  const world = new LendingWorld(client, { clock, quotaPatienceMs: 0 });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
  return { clock, api, client, world };
}

export async function stopLending({ world, client, api }: SimulatedLending): Promise<void> {
  await world.stop();
  await client.close();
  await api.stop();
}
