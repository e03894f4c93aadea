import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { flowSchemas, namespaces, resourceQuotas, roleBindings } from '../../../../src/api/resources.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { checkOffer } from '../../../../src/peering/offer/check.ts';
import type { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { FakeClock } from '../../../support/fake-clock.ts';
import type { LendingWorld } from '../../../support/peering/lending-world.ts';
import { startLending, stopLending } from '../../../support/peering/simulated-lending.ts';

let clock: FakeClock;
let api: FakeApi;
let client: KubeClient;
let world: LendingWorld;

beforeEach(async () => {
  ({ clock, api, client, world } = await startLending());
});

afterEach(async () => stopLending({ clock, api, client, world }));

describe('from a request to a contract in force', () => {
  test('inside a policy that is automatic: offered, accepted, set up, granted', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.ask();
    await rome.offered();
    const { offer } = rome.told;
    if (offer === undefined) throw new Error('no offer');
    const checked = checkOffer(offer, {
      provider: world.identity,
      consumer: rome.id,
      lastGeneration: undefined,
      nowMs: clock.now(),
    });
    expect(checked).toMatchObject({
      resources: { cpu: '4', memory: '8Gi', pods: '50' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: rome.tenant() }],
    });
    expect(rome.told.grant).toMatchObject({ state: 'Pending' });
    expect(await world.exists(rome.tenant())).toBe(false);
    const acceptance = rome.acceptance();
    await rome.accept(acceptance);
    await rome.granted('Active');
    expect(rome.told.grant).toMatchObject({
      contract: { text: acceptance.text },
      policy: 'everybody',
      api: { server: 'https://provider.example:6443' },
    });
    expect(await rome.hasAccount()).toBe(true);
    const quota = await client.get(resourceQuotas, { namespace: rome.tenant(), name: 'tributary' });
    expect(quota.spec?.hard).toMatchObject({ 'requests.cpu': '4', 'requests.memory': '8Gi', pods: '50' });
    const binding = await client.get(roleBindings, { namespace: rome.tenant(), name: 'tributary-peer' });
    expect(binding.roleRef).toMatchObject({ kind: 'ClusterRole', name: 'tributary-tenant' });
    const request = await rome.object();
    expect(request.status).toMatchObject({
      phase: 'Established',
      policy: 'everybody',
      promised: { cpu: '4' },
      contract: { consumerSignature: acceptance.signature },
    });
    expect(world.lending.report(rome.id)).toMatchObject({ phase: 'Established' });
  });

  test('without any policy nothing is lent, and the peer hears why', async () => {
    const rome = world.peer();
    await rome.ask();
    await rome.granted('Denied');
    expect(rome.told).toMatchObject({ grant: { reason: 'NoPolicyMatches' } });
    expect(rome.told.offer).toBeUndefined();
    await world.policy();
    await rome.offered();
  });

  test('a person approves, and may deny later', async () => {
    await world.policy({ approval: 'Manual' });
    const rome = world.peer();
    await rome.ask();
    await clock.until('waits', () => rome.told.grant?.reason === 'WaitingForApproval');
    expect(rome.told).toMatchObject({ grant: { state: 'Pending' } });
    expect(rome.told.offer).toBeUndefined();
    const say = async (approval: string): Promise<unknown> =>
      client.patch(peeringRequests, { name: rome.id }, { type: 'merge', body: { spec: { approval } } });
    await say('Approved');
    await rome.offered();
    await rome.accept();
    await rome.granted('Active');
    await rome.ask({ namespaces: ['shop', 'web'] });
    await clock.until('the new namespace is offered', () => rome.told.offer?.offer.namespaces.length === 2);
    expect((await rome.object()).spec.approval).toBe('Approved');
    await say('Denied');
    await rome.granted('Denied');
    expect(await rome.hasAccount()).toBe(false);
    expect(await world.exists(rome.tenant())).toBe(false);
  });

  test('who is denied stays denied when it takes its request back and asks again', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    const body = { spec: { approval: 'Denied' } };
    await client.patch(peeringRequests, { name: rome.id }, { type: 'merge', body });
    await rome.granted('Denied');
    await rome.ask(null);
    await clock.advance(60_000);
    expect((await rome.object()).spec.approval).toBe('Denied');
    await rome.ask();
    await clock.advance(60_000);
    await rome.granted('Denied');
    expect(await rome.hasAccount()).toBe(false);
  });

  test('a join token opens the door once, for one cluster; it stays in without it', async () => {
    await world.policy({ approval: 'Token' });
    const { text } = await world.lending.tokens.create({ name: 'one' });
    const [rome, paris] = [world.peer(), world.peer()];
    await rome.ask();
    await clock.until('a token is asked for', () => rome.told.grant?.reason === 'TokenRequired');
    expect(rome.told.grant).toMatchObject({ state: 'Pending' });
    await rome.ask({ joinToken: text });
    await rome.offered();
    expect((await rome.object()).status).toMatchObject({ token: 'one' });
    expect(JSON.stringify(await rome.object())).not.toContain(text.split('.')[2]);
    await paris.ask({ joinToken: text });
    await paris.granted('Denied');
    expect(paris.told.grant).toMatchObject({ reason: 'TokenUsed' });
    await rome.ask();
    await rome.accept();
    await rome.granted('Active');
  });
});

describe('what is refused', () => {
  test.each([
    [
      'more than was offered',
      { resources: { cpu: '5', memory: '8Gi', pods: '50', 'ephemeral-storage': '50Gi' } },
      'but 4 was offered',
    ],
    [
      'other namespaces',
      { namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'kube-system' }] },
      'are not as offered',
    ],
    ['another consumer', { consumer: 'a'.repeat(26) }, 'consumer'],
    ['an offer of the future', { generation: Number.MAX_SAFE_INTEGER }, 'was never made'],
  ])('an acceptance of %s', async (_what, change, reason) => {
    await world.policy();
    const rome = world.peer();
    await rome.ask();
    await rome.offered();
    await expect(rome.accept(rome.acceptance(change))).rejects.toThrow(reason);
    expect((await rome.object()).status).toMatchObject({ phase: 'Offered' });
    expect(await rome.hasAccount()).toBe(false);
  });

  test('a forged signature, and the contract of another', async () => {
    await world.policy();
    const [rome, paris] = [world.peer(), world.peer()];
    for (const peer of [rome, paris]) {
      await peer.ask();
      await peer.offered();
    }
    await expect(rome.accept(rome.acceptance({}, paris.identity))).rejects.toThrow('signature');
    await expect(paris.accept(rome.acceptance())).rejects.toThrow('signature');
    await expect(paris.accept({ text: '{}', signature: '' })).rejects.toThrow('signature');
  });

  test('an old acceptance is harmless: it neither replaces the contract nor ends it', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.ask();
    await rome.offered();
    const old = rome.acceptance();
    await rome.accept(old);
    await rome.granted('Active');
    await world.changePolicy({ sharePercent: 20 });
    await clock.until('a smaller offer', () => rome.told.offer?.offer.resources['cpu'] === '1600m');
    await rome.accept(rome.acceptance());
    await clock.until('the new contract', () => rome.told.grant?.contract?.text !== old.text);
    const { text } = rome.told.grant?.contract ?? {};
    await rome.accept(old);
    await rome.ask({ clusterName: 'roma' });
    await clock.until('heard', async () => (await rome.object()).spec.clusterName === 'roma');
    expect(rome.told.grant).toMatchObject({ state: 'Active', contract: { text } });
  });

  test('credentials without a contract', async () => {
    await world.policy();
    const rome = world.peer();
    const { signal } = new AbortController();
    await expect(world.lending.credential(rome.identity, signal)).rejects.toThrow('no contract is in force');
    await rome.ask();
    await rome.offered();
    await expect(world.lending.credential(rome.identity, signal)).rejects.toThrow('no contract is in force');
  });

  test.each([
    ['too many namespaces', Array.from({ length: 65 }, (_, index) => `n${index}`), 'at most 64'],
    ['the namespaces of the cluster itself', ['kube-system'], 'can be offloaded'],
    ['what is no name', ['../..'], 'can be offloaded'],
  ])('a request for %s', async (_what, wanted, reason) => {
    await world.policy();
    const rome = world.peer();
    await expect(rome.ask({ namespaces: wanted })).rejects.toThrow(reason);
    expect(rome.told).toEqual({});
  });

  test('the 201st stranger, until one of them is let in', async () => {
    const strangers = Array.from({ length: 201 }, () => world.peer());
    const last = strangers.pop();
    for (const stranger of strangers) await stranger.ask();
    await expect(last?.ask()).rejects.toThrow('200 clusters wait');
    // One that is known already may speak on.
    await strangers[0]?.ask({ namespaces: ['other'] });
  });
});

describe('change', () => {
  test('a smaller share shrinks the quota at once, before the peer has signed, and leaves everything else alone', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered({ namespaces: ['shop', 'web'] });
    const before = api.log.length;
    await world.changePolicy({ sharePercent: 20 });
    await clock.until('the quota shrinks', async () => {
      const quota = await client.get(resourceQuotas, { namespace: rome.tenant('web'), name: 'tributary' });
      return quota.spec?.hard?.['requests.cpu'] === '1600m';
    });
    await clock.until('told', () => rome.told.offer?.offer.resources['cpu'] === '1600m');
    const writes = api.log.slice(before).filter((line) => !/^GET|peeringrequests|sharingpolicies/.test(line));
    expect(writes.map((line) => line.split('?')[0] ?? '').toSorted((a, b) => a.localeCompare(b))).toEqual([
      `PATCH /api/v1/namespaces/${rome.tenant()}/resourcequotas/tributary`,
      `PATCH /api/v1/namespaces/${rome.tenant('web')}/resourcequotas/tributary`,
    ]);
    expect(rome.told.grant).toMatchObject({ state: 'Active' });
  });

  test('a namespace more, and one less', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    await rome.ask({ namespaces: ['web'] });
    await clock.until('offered', () => rome.told.offer?.offer.namespaces[0]?.homeNamespace === 'web');
    await rome.accept();
    await clock.until('made', async () => world.exists(rome.tenant('web')));
    await clock.until('gone', async () => !(await world.exists(rome.tenant())));
    await rome.granted('Active');
  });

  test("a name that somebody else's namespace bears is passed over, and that one is not touched", async () => {
    await world.policy();
    const rome = world.peer();
    const theirs = await client.create(namespaces, { metadata: { name: rome.tenant() } });
    await clock.until('known', async () => (await client.list(namespaces)).items.length === 1);
    await rome.peered();
    const [made] = (await rome.object()).status?.tenantNamespaces ?? [];
    expect(made?.tenantNamespace).toBe(`shop-${rome.id.slice(0, 13)}`);
    await rome.ask(null);
    await clock.until('ended', () => rome.told.grant === undefined);
    const after = await client.get(namespaces, { name: rome.tenant() });
    expect(after.metadata.resourceVersion).toBe(theirs.metadata.resourceVersion);
  });

  test('a peer that holds a network key stays in while its link is away, and goes when it no longer proves it', async () => {
    await world.policy({ peers: { networkKeySecretRef: { name: 'home' } } });
    const rome = world.peer();
    world.networkKeys.set(rome.id, ['home']);
    await rome.peered();
    world.linked.delete(rome.id);
    world.networkKeys.delete(rome.id);
    world.intent(rome.id, 'Auto');
    await world.changePolicy({ sharePercent: 20 });
    await clock.until('looked at', () => rome.told.offer?.offer.resources['cpu'] === '1600m');
    expect(rome.told.grant).toMatchObject({ state: 'Active' });
    world.linked.add(rome.id);
    world.intent(rome.id, 'Auto');
    await rome.granted('Denied');
  });
});

describe('the end', () => {
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

  test.each([
    [
      'the peer no longer asks',
      async (_: LendingWorld, peer: ReturnType<LendingWorld['peer']>) => peer.ask(null),
    ],
    [
      'the peer no longer accepts',
      async (_: LendingWorld, peer: ReturnType<LendingWorld['peer']>) => peer.accept(null),
    ],
    [
      'incoming is disabled',
      async (w: LendingWorld, peer: ReturnType<LendingWorld['peer']>) => w.intent(peer.id, 'Disabled'),
    ],
    [
      'the policy is gone',
      async (w: LendingWorld) => w.client.delete(sharingPolicies, { name: 'everybody' }),
    ],
    [
      'a person deletes the PeeringRequest',
      async (w: LendingWorld, peer: ReturnType<LendingWorld['peer']>) =>
        w.client.delete(peeringRequests, { name: peer.id }),
    ],
  ])('%s: the account goes first, then rights, then namespaces', async (_what, end) => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    const before = api.log.length;
    await end(world, rome);
    await clock.until('nothing is left', async () => (await nothingLeft()).length === 0);
    const deletions = api.log.slice(before).filter((line) => /^DELETE (?!.*tributary.dev)/.test(line));
    expect(deletions.map((line) => line.split('?')[0]).slice(0, 5)).toEqual([
      `DELETE /api/v1/namespaces/tributary-peers/serviceaccounts/${rome.id}`,
      `DELETE /apis/rbac.authorization.k8s.io/v1/namespaces/${rome.tenant()}/rolebindings/tributary-peer`,
      `DELETE /apis/rbac.authorization.k8s.io/v1/namespaces/${rome.tenant()}/rolebindings/tributary-tenant-logs`,
      `DELETE /api/v1/namespaces/${rome.tenant()}`,
      `DELETE /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/tributary-peer-${rome.id}`,
    ]);
    expect(rome.told.grant?.state).not.toBe('Active');
  });

  test('incoming is disabled: the request stays while the peer is there to ask, and no longer', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    world.intent(rome.id, 'Disabled');
    await rome.granted('Denied');
    await clock.until('nothing is left', async () => (await nothingLeft()).length === 0);
    expect((await client.list(peeringRequests)).items).toHaveLength(1);
    world.linked.delete(rome.id);
    world.intent(rome.id, 'Disabled');
    await clock.until('forgotten', async () => (await client.list(peeringRequests)).items.length === 0);
  });

  test('a peer that is asked for again is let in again, under a higher number', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    const first = rome.told.offer?.offer.generation ?? 0;
    await rome.ask(null);
    await clock.until('ended', () => rome.told.grant === undefined);
    await rome.peered();
    expect(rome.told.offer?.offer.generation).toBeGreaterThan(first);
  });

  test('a restart in the middle finishes what was begun, without the peer saying a word', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    await world.stop();
    await client.delete(peeringRequests, { name: rome.id });
    await client.patch(
      peeringRequests,
      { name: rome.id },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    );
    await world.start();
    await clock.until('nothing is left', async () => (await nothingLeft()).length === 0);
  });

  test('a restart keeps a contract that the peer has not repeated yet', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    const { text } = rome.told.grant?.contract ?? {};
    await clock.advance(60_000);
    await world.stop();
    const before = api.log.length;
    await world.start();
    await rome.granted('Active');
    await rome.ask();
    await clock.until('looked at', () => world.lending.report(rome.id).phase === 'Established');
    expect(rome.told.grant?.contract?.text).toBe(text);
    const writes = api.log.slice(before).filter((line) => !line.startsWith('GET'));
    expect(writes).toEqual([]);
  });
});
