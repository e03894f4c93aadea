import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { flowSchemas, namespaces, resourceQuotas, roleBindings } from '../../../../src/api/resources.ts';
import { type PeeringRequest, peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { LendingWorld } from '../../../support/peering/lending-world.ts';

const GRACE_MS = 300_000;

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [peeringRequests, sharingPolicies] });
  client = api.client();
  // The simulator has no controller that would count for quotas.
  world = new LendingWorld(client, { clock, quotaPatienceMs: 0, endGraceMs: GRACE_MS });
  await world.node('node-1', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.start();
  await world.policy();
});

afterEach(async () => {
  await world.stop();
  await client.close();
  await api.stop();
});

const nothingLeft = async (): Promise<string[]> => {
  const lists = [namespaces, resourceQuotas, roleBindings, flowSchemas].map((type) =>
    client.list(type as never),
  );
  // The simulator has no namespace controller, so what was in a namespace stays.
  return (await Promise.all(lists)).flatMap(({ items }) =>
    (items as { kind?: string; metadata: { name: string; namespace?: string } }[])
      .filter(({ kind }) => kind !== 'ResourceQuota')
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`),
  );
};

describe('a policy is deleted, or no longer selects a peer', () => {
  const stored = async (peer: { id: string }): Promise<PeeringRequest> =>
    client.get(peeringRequests, { name: peer.id });
  const ends = async (peer: { id: string }): Promise<string | undefined> => (await stored(peer)).status?.ends;
  const remove = async (): Promise<unknown> => client.delete(sharingPolicies, { name: 'everybody' });
  const said = (reason: string): boolean => world.events.some((event) => event.reason === reason);

  test('its tenant stays for a grace time, the peer is told until when, and a person, too', async () => {
    const rome = world.peer();
    await rome.peered();
    const from = clock.now();
    await remove();
    await clock.until('the peer is told', () => rome.told.grant?.ends !== undefined);
    expect(rome.told.grant).toMatchObject({ state: 'Active', reason: 'EndsSoon' });
    const { status } = await stored(rome);
    expect(status?.phase).toBe('Established');
    expect(Date.parse(status?.ends ?? '') - from).toBeGreaterThan(GRACE_MS - 5000);
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'EndsSoon', status: 'True', reason: 'NoPolicyMatches' }),
    );
    expect(status?.message).toContain(
      `kubectl annotate peeringrequest ${rome.id} tributary.dev/end-now=true`,
    );
    expect(world.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'EndsSoon' }));
    expect(await rome.hasAccount()).toBe(true);
    // Also over a restart, which does not begin the time again.
    const until = await ends(rome);
    await world.stop();
    await clock.advance(GRACE_MS / 2);
    await world.start();
    await clock.advance(1000);
    expect(await ends(rome)).toBe(until);
    await clock.until('it is over', async () => (await nothingLeft()).length === 0, GRACE_MS);
    expect(clock.now() - from).toBeGreaterThanOrEqual(GRACE_MS - 1000);
    expect(rome.told.grant?.state).not.toBe('Active');
  });

  test('a policy that selects it takes that back', async () => {
    const rome = world.peer();
    await rome.peered();
    await remove();
    await clock.until('told', () => rome.told.grant?.ends !== undefined);
    await world.policy();
    await clock.until('taken back', () => rome.told.grant?.ends === undefined);
    expect(rome.told.grant).toMatchObject({ state: 'Active', reason: 'AsExpected' });
    expect((await stored(rome)).status?.conditions).not.toContainEqual(
      expect.objectContaining({ type: 'EndsSoon' }),
    );
  });

  test('a policy that is narrowed says whose pods end', async () => {
    const rome = world.peer();
    await rome.peered();
    await world.changePolicy({ peers: { anyone: null as never, clusterIDs: ['a'.repeat(26)] } });
    await clock.until('told', () => rome.told.grant?.ends !== undefined);
    await clock.until('the policy says so', async () => {
      const { status } = await client.get(sharingPolicies, { name: 'everybody' });
      return (
        status?.conditions?.some(({ type, status: is }) => type === 'PeersEndSoon' && is === 'True') === true
      );
    });
  });

  test('a peer whose pods have moved gives it back, and is not waited for', async () => {
    const rome = world.peer();
    await rome.peered();
    await remove();
    await clock.until('told', () => rome.told.grant?.ends !== undefined);
    const from = clock.now();
    await rome.accept(null);
    await clock.until('nothing is left', async () => (await nothingLeft()).length === 0);
    expect(clock.now() - from).toBeLessThan(GRACE_MS / 2);
  });

  test('for the hurried: an annotation ends it now', async () => {
    const rome = world.peer();
    await rome.peered();
    await remove();
    await clock.until('told', () => rome.told.grant?.ends !== undefined);
    const from = clock.now();
    const body = { metadata: { annotations: { 'tributary.dev/end-now': 'true' } } };
    await client.patch(peeringRequests, { name: rome.id }, { type: 'merge', body });
    await clock.until('nothing is left', async () => (await nothingLeft()).length === 0);
    expect(clock.now() - from).toBeLessThan(GRACE_MS / 2);
    expect(said('EndsSoon')).toBe(true);
  });

  test('a person who denies it by name means it', async () => {
    const rome = world.peer();
    await rome.peered();
    world.intent(rome.id, 'Disabled');
    await rome.granted('Denied');
  });
});
