import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type PeeringRequest, peeringRequests } from '../../../../src/api/peering-request.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { outlineOf } from '../../../../src/peering/lending/strangers.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { FakeClock } from '../../../support/fake-clock.ts';
import type { LendingWorld } from '../../../support/peering/lending-world.ts';
import { startLending, stopLending } from '../../../support/peering/simulated-lending.ts';

describe('the outline of a wish', () => {
  test('is the wish where that is small', () => {
    const wish = { namespaces: ['shop', 'web'], tether: true };
    expect(outlineOf(wish)).toEqual(wish);
  });

  test('names as many as fit, with the names that they must have, and counts the others', () => {
    const namespaces = Array.from({ length: 64 }, (_none, n) => `${'n'.repeat(55)}-${n}`).toSorted();
    const tenantNames = namespaces.map((homeNamespace) => ({
      homeNamespace,
      tenantNamespace: homeNamespace,
    }));
    const outline = outlineOf({ clusterName: 'rome', namespaces, tenantNames });
    expect(Buffer.byteLength(JSON.stringify(outline))).toBeLessThanOrEqual(1024);
    expect(outline.namespaces.length).toBeGreaterThan(3);
    expect(outline.namespaces.length + (outline.moreNamespaces ?? 0)).toBe(64);
    expect(outline.tenantNames).toHaveLength(outline.namespaces.length);
    expect(outline.clusterName).toBe('rome');
  });
});

describe('a stranger', () => {
  let clock: FakeClock;
  let api: FakeApi;
  let client: KubeClient;
  let world: LendingWorld;

  beforeEach(async () => {
    ({ clock, api, client, world } = await startLending());
  });

  afterEach(async () => stopLending({ clock, api, client, world }));

  const writes = (): number =>
    api.log.filter((line) => /^(POST|PUT|PATCH).*peeringrequests/.test(line)).length;

  test('that never stops is written further and further apart, and as it is in the end', async () => {
    await world.policy({ approval: 'Manual' });
    const rome = world.peer();
    for (let n = 0; n < 600; n++) {
      await rome.ask({ namespaces: [`shop-${n}`] });
      await clock.advance(1_000);
    }
    expect(writes()).toBeLessThan(35);
    await rome.ask({ namespaces: ['last'] });
    await clock.until(
      'the last wish is shown',
      async () => (await rome.object()).spec.namespaces[0] === 'last',
      600_000,
    );
    await clock.until(
      'its status is about it',
      async () => {
        const { metadata, status } = await rome.object();
        return status?.observedGeneration === metadata.generation;
      },
      600_000,
    );
  });

  test('comes in at once by a policy, a token or a person, however many others there are', async () => {
    await world.policy({ approval: 'Token' });
    const [one, other] = [world.peer(), world.peer()];
    for (let n = 0; n < 150; n++) await world.peer().ask();
    for (let n = 0; n < 30; n++) {
      await one.ask({ namespaces: [`shop-${n}`] });
      await clock.advance(100);
    }
    await clock.advance(60_000);
    const { text } = await world.lending.tokens.create({ name: 'one' });
    await one.ask({ namespaces: ['shop'], joinToken: text });
    const began = clock.monotonic();
    await one.offered();
    await world.policy({ peers: { clusterIDs: [other.id] }, precedence: 10 }, 'automatic');
    await other.ask({ namespaces: Array.from({ length: 64 }, (_none, n) => `${'n'.repeat(50)}-${n}`) });

    await other.offered();
    expect(clock.monotonic() - began).toBeLessThan(1_000);
    expect((await other.object()).spec.namespaces).toHaveLength(64);
  });

  test('whom a person lets in is lent what it wants then, though less is written', async () => {
    await world.policy({ approval: 'Manual' });
    const rome = world.peer();
    const namespaces = Array.from({ length: 64 }, (_none, n) => `${'n'.repeat(50)}-${n}`).toSorted();
    await rome.ask({ namespaces });
    const shown = async (): Promise<PeeringRequest> => rome.object();
    await clock.until('waits', () => rome.told.grant?.reason === 'WaitingForApproval');
    expect((await shown()).spec.moreNamespaces).toBeGreaterThan(30);
    const body = { spec: { approval: 'Approved' } };
    await client.patch(peeringRequests, { name: rome.id }, { type: 'merge', body });
    await rome.offered();
    expect(rome.told.offer?.offer.namespaces).toHaveLength(64);
    expect((await shown()).spec).toMatchObject({ namespaces, approval: 'Approved' });
    expect((await shown()).spec).not.toHaveProperty('moreNamespaces');
  });

  test('whom people refuse again after it was let in learns it at once', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    for (let n = 0; n < 20; n++) {
      await rome.ask({ namespaces: ['shop', `web-${n}`] });
      await clock.advance(100);
    }
    const began = clock.monotonic();
    world.intent(rome.id, 'Disabled');
    await rome.granted('Denied');
    expect(clock.monotonic() - began).toBeLessThan(1_000);
    expect(await rome.hasAccount()).toBe(false);
  });
});
