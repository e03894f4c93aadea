import { afterEach, expect, test } from '@jest/globals';
import { ANNOTATION_CLOSED, ANNOTATION_NODE_NAME } from '../../../../src/api/names.ts';
import { canonicalText } from '../../../../src/lib/canonical-json.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { policy, World } from './support/world.ts';

let world: World;
afterEach(async () => world.down());

const established = async (): Promise<Awaited<ReturnType<World['start']>>> => {
  world = await new World().up();
  const running = await world.start();
  await world.established();
  return running;
};

const cpu = (): unknown => world.virtualNode('milan')?.spec.resources['cpu'];
const generation = (): number | undefined => world.advertisement?.spec.offer.generation;
const closed = (): boolean =>
  world.virtualNode('milan')?.spec.taints?.some(({ key }) => key === 'tributary.dev/closed') ?? false;

test('a smaller share reaches the virtual node, and no pod, token or agent is touched', async () => {
  const { borrowing } = await established();
  world.addPod('web', 'milan');
  const phases = new Set<string>();
  borrowing.onChange((id) => phases.add(borrowing.report(id).phase));
  const from = world.home.log.length;
  const { ensured } = world.agents;
  world.provider.resources = { cpu: '2', memory: '16Gi', pods: '100' };
  world.provider.renew();
  world.say();
  await world.until('cpu 2', () => cpu() === '2');
  await world.until('agreed', () => world.advertisement?.status?.contract?.providerSignature !== undefined);
  const writes = world.home.log.slice(from).filter((line) => !line.startsWith('GET'));
  expect(writes.filter((line) => /pods|secrets/u.test(line))).toEqual([]);
  expect(world.agents.ensured).toBe(ensured);
  expect([...phases].filter((phase) => phase !== 'Established')).toEqual([]);
});

test('what is asked, and how large single nodes are, reaches the virtual node once both have agreed, and goes with the offer', async () => {
  world = await new World().up();
  world.provider.more = { prices: { cpu: { amount: '0.04', currency: 'EUR' } } };
  await world.start();
  await world.established();
  const told = (): unknown => {
    const { prices, nodeSizes } = world.virtualNode('milan')?.spec ?? {};
    return [prices?.['cpu']?.amount, nodeSizes?.map((size) => size['cpu'])];
  };
  expect(told()).toEqual(['0.04', ['8']]);
  const tell = async (what: string, more: typeof world.provider.more): Promise<void> => {
    world.provider.more = more;
    world.provider.renew();
    world.say();
    await world.until(
      what,
      () => world.advertisement?.spec.offer.generation === world.provider.offer?.generation,
    );
    await world.until(
      `${what}: agreed`,
      () => world.advertisement?.status?.contract?.text === world.provider.contract?.text,
    );
  };
  const resources = (cpuOfOne: string): object => ({ cpu: cpuOfOne, memory: '8Gi', pods: '50' });
  const shape = {
    count: 2,
    resources: resources('4') as never,
    architecture: 'arm64',
    operatingSystem: 'linux',
  };
  await tell('dearer', { prices: { cpu: { amount: '0.05', currency: 'EUR' } }, shapes: [shape] });
  await world.until('told', () => JSON.stringify(told()) === '["0.05",["4"]]');
  await tell('for nothing', {});
  await world.until('told', () => JSON.stringify(told()) === '[null,["8"]]');
});

test('an offer renewed as it was needs no new contract and changes no virtual node', async () => {
  await established();
  const { contract } = world.provider;
  const version = world.virtualNode('milan')?.metadata.resourceVersion;
  const before = generation() ?? 0;
  world.provider.renew();
  world.say();
  await world.until('kept', () => (generation() ?? 0) > before);
  await world.until('quiet', () => world.advertisement?.status?.observedGeneration === 2);
  expect(world.advertisement?.status?.contract).toEqual(contract);
  expect(world.virtualNode('milan')?.metadata.resourceVersion).toBe(version);
});

test('a contract that the provider has lost is signed anew', async () => {
  await established();
  const { text } = world.provider.contract ?? {};
  world.provider.contract = undefined;
  world.provider.renew();
  world.say();
  await world.until('signed anew', () => {
    const now = world.advertisement?.status?.contract;
    return now?.text !== text && now?.providerSignature !== undefined;
  });
});

test('what is no offer to us is refused with its cause, told once, and the old one stays', async () => {
  const { borrowing } = await established();
  const { provider } = world;
  const peer = { clusterID: world.id, publicKey: provider.identity.publicKey };
  const offer = provider.offer;
  if (offer === undefined) throw new Error('no offer');
  const sign = (
    one: unknown,
    by: Identity = provider.identity,
  ): { offer: typeof offer; signature: string } => ({
    offer: one as typeof offer,
    signature: by.sign('offer', canonicalText(one)),
  });
  const next = { ...offer, generation: offer.generation + 1 };
  const bad: [RegExp, ReturnType<typeof sign>][] = [
    [/replay/u, sign({ ...offer, generation: offer.generation - 1 })],
    [/signature/u, sign(next, Identity.generate())],
    [/consumer/u, sign({ ...next, consumer: world.id })],
    [/resources/u, sign({ ...next, resources: { cpu: '-1', memory: '1Gi', pods: '1' } })],
    [/expires/u, sign({ ...next, expires: offer.issued })],
  ];
  for (const [why, document] of bad) {
    await expect(borrowing.received(peer, { offer: document })).rejects.toThrow(why);
    await expect(borrowing.received(peer, { offer: document })).rejects.toMatchObject({ code: 'Invalid' });
  }
  expect(world.events.filter((text) => text.startsWith('OfferInvalid'))).toHaveLength(bad.length);
  expect(generation()).toBe(offer.generation);
  await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
});

test('a contract that another has signed is none', async () => {
  world = await new World().up();
  world.provider.assessment = 'Pending';
  const { borrowing } = await world.start();
  await world.until('asked', () => world.provider.request !== undefined);
  const text = '{}';
  const forged = Identity.generate().sign('contract', text);
  const peer = { clusterID: world.id, publicKey: world.provider.identity.publicKey };
  const grant = { state: 'Active' as const, contract: { text, signature: forged }, api: world.provider.api };
  await expect(borrowing.received(peer, { grant })).rejects.toThrow('not that of the provider');
});

test('what is wrong with a grant is no reason to miss an offer, nor the other way round', async () => {
  const { borrowing } = await established();
  const { provider } = world;
  const peer = { clusterID: world.id, publicKey: provider.identity.publicKey };
  provider.more = { labels: { disk: 'fast' } };
  provider.renew();
  const { offer, grant } = provider.documents();
  const contract = { text: '{}', signature: Identity.generate().sign('contract', '{}') };
  const asked = borrowing.received(peer, {
    ...(offer && { offer }),
    ...(grant && { grant: { ...grant, contract } }),
  });
  await expect(asked).rejects.toThrow('signature of the contract');
  await world.until(
    'the label of the new offer',
    () => world.virtualNode('milan')?.spec.labels?.['disk'] === 'fast',
  );
  expect(borrowing.report(world.id).phase).toBe('Established');
});

test('an offer that is taken back, or no longer fits, lets nothing new in until it does again', async () => {
  const { borrowing } = await established();
  world.provider.withdrawn = true;
  world.say();
  await world.until('closed', closed);
  await world.until('said so', () => world.advertisement?.status?.reason === 'Withdrawn');
  expect(world.advertisement?.status?.decision).toBe('Expired');
  const because = (): string | undefined =>
    world.virtualNode('milan')?.metadata.annotations?.[ANNOTATION_CLOSED];
  expect(because()).toBe('the provider has withdrawn its offer');
  await world.until('in use', () => borrowing.report(world.id).reason === 'Withdrawn');
  expect(borrowing.report(world.id)).toMatchObject({
    phase: 'Established',
    message: 'no new pods are sent there: the provider has withdrawn its offer',
  });
  world.provider.withdrawn = false;
  world.say();
  await world.until('open again', () => !closed());
  expect(because()).toBeUndefined();
  world.want({ policy: policy({ minimum: { cpu: '100' } }) });
  await world.until('closed again', closed);
  await world.until('said so', () => world.advertisement?.status?.reason === 'BelowMinimum');
  expect(world.advertisement?.status?.decision).toBe('Refused');
  expect(because()).toMatch(/^AcceptancePolicy \S+ refuses the offer: cpu: .* offered, at least 100 wanted$/);
  expect(borrowing.report(world.id)).toMatchObject({ phase: 'Established', reason: 'OfferRefused' });
  world.want({ policy: policy() });
  await world.until('open once more', () => !closed());
  await world.until('said so', () => borrowing.report(world.id).reason === 'AsExpected');
});

test('ceilings of the policy are what is taken, also when they change', async () => {
  await established();
  world.want({ policy: policy({ ceilings: { cpu: '3' } }) });
  await world.until('cpu 3', () => cpu() === '3');
});

test('pods are kept for as long as the provider offers, and the policy here permits', async () => {
  await established();
  const kept = (): unknown => {
    const { text = '{}' } = world.advertisement?.status?.contract ?? {};
    return (JSON.parse(text) as { keepForSeconds?: number }).keepForSeconds;
  };
  const shown = (): string | undefined =>
    world.advertisement?.status?.conditions?.find(({ type }) => type === 'ContractSigned')?.message;
  expect(kept()).toBe(3600);
  world.want({ policy: policy({ maxKeepForSeconds: 60 }) });
  await world.until(
    'said',
    () => shown() === 'signed by both; without contact, pods and nodes are kept for 60 s',
  );
  expect(kept()).toBe(60);
  world.want({ policy: policy({ maxKeepForSeconds: 86_400 }) });
  await world.until('as offered', () => kept() === 3600);
});

test('without a policy the word of the person who asked is enough, and may be taken back', async () => {
  world = await new World().up();
  world.intent = { wanted: true, namespaces: ['shop'] };
  await world.start();
  await world.established();
  world.patchAdvertisement({ approval: 'Denied' });
  await world.until('refused', () => world.advertisement?.status?.decision !== 'Accepted');
});

test('namespaces that nobody here has named do not leave the cluster', async () => {
  world = await new World().up();
  world.intent = { ...world.intent, namespaces: ['spare', 'kube-system', 'tributary-system', 'absent'] };
  world.provider.extraNamespaces = [
    { homeNamespace: 'kube-system', tenantNamespace: 'loot' },
    { homeNamespace: 'default', tenantNamespace: 'loot-2' },
  ];
  await world.start();
  await world.established();
  expect(world.provider.request?.namespaces).toEqual(['shop', 'spare']);
  const mapped = world.virtualNode('milan')?.spec.namespaces?.map(({ homeNamespace }) => homeNamespace);
  expect(mapped).toEqual(['shop', 'spare']);
  const watched = (): unknown => world.agents.running.get(world.id)?.namespaces;
  expect(watched()).toEqual(['shop', 'spare']);
  world.want({ namespaces: [] });
  await world.until('taken out', () => world.virtualNode('milan')?.spec.namespaces?.length === 1);
  await world.until('and given up by the agent', () => JSON.stringify(watched()) === '["shop"]');
});

test('another tenant namespace is put in only after the old one was taken out', async () => {
  await established();
  const seen: string[] = [];
  world.home.storage.subscribe(({ resource, current }) => {
    if (resource === 'virtualnodes.tributary.dev') seen.push(JSON.stringify(current?.spec?.['namespaces']));
  });
  world.provider.more = { namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'shop-new' }] };
  world.provider.renew();
  world.say();
  const last = JSON.stringify([{ homeNamespace: 'shop', tenantNamespace: 'shop-new' }]);
  await world.until('moved', () => seen.at(-1) === last);
  expect([...new Set(seen)]).toEqual(
    [JSON.stringify([{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }]), '[]', last].filter((text) =>
      seen.includes(text),
    ),
  );
  expect(seen).toContain('[]');
});

test('the join token is said until the provider has decided, and then no more', async () => {
  world = await new World().up();
  world.intent = { ...world.intent, joinToken: 'a-token' };
  world.provider.assessment = 'Pending';
  await world.start();
  await world.until('asked', () => world.provider.request?.joinToken === 'a-token');
  world.provider.assessment = 'Automatic';
  const { request } = world.provider;
  world.provider.received({ ...(request && { request }) });
  world.say();
  await world.established();
  expect(world.provider.request).not.toHaveProperty('joinToken');
});

test('a name that another has is left to it', async () => {
  world = await new World().up();
  const { nodes } = await import('../../../../src/api/resources.ts');
  const { virtualNodes } = await import('../../../../src/api/virtual-node.ts');
  const theirs = world.home.seed(nodes, { metadata: { name: 'milan' } });
  const short = `milan-${world.id.slice(0, 5)}`;
  const byHand = world.home.seed(virtualNodes, { metadata: { name: short }, spec: { resources: {} } });
  await world.start();
  await world.established();
  expect(world.virtualNode(`peer-${world.id}`)).toBeDefined();
  world.want({ wanted: false });
  await world.until('gone', () => world.advertisement === undefined);
  expect(world.home.storage.get('nodes', 'milan')).toEqual(theirs);
  expect(world.virtualNode(short)).toEqual(byHand);
});

test('the name once chosen stays, whatever the cluster calls itself', async () => {
  await established();
  world.clusterName = 'Turin';
  world.provider.resources = { cpu: '1', memory: '1Gi', pods: '10' };
  world.provider.renew();
  world.say();
  await world.until('known by the new name', () => world.advertisement?.spec.clusterName === 'Turin');
  await world.until('cpu 1', () => cpu() === '1');
  expect(world.advertisement?.metadata.annotations?.[ANNOTATION_NODE_NAME]).toBe('milan');
  expect(world.virtualNode('turin')).toBeUndefined();
});

test('what people add to a virtual node stays; what is ours is taken back', async () => {
  await established();
  const { storage } = world.home;
  const object = storage.get('virtualnodes.tributary.dev', 'milan');
  if (object === undefined) throw new Error('no VirtualNode');
  const taint = { key: 'team', value: 'a', effect: 'NoSchedule' };
  storage.update('virtualnodes.tributary.dev', {
    ...object,
    spec: {
      ...object.spec,
      resources: { cpu: '1000', memory: '1', pods: '1' },
      labels: { ...(object.spec?.['labels'] as object), disk: 'fast' },
      taints: [taint],
    },
  });
  await world.until('cpu 8 again', () => cpu() === '8');
  world.provider.more = { labels: {} };
  world.provider.renew();
  world.say();
  // A label alone is no matter of the contract.
  const labels = (): Record<string, string> => world.virtualNode('milan')?.spec.labels ?? {};
  await world.until('our label is off', () => !('topology.kubernetes.io/region' in labels()));
  expect(labels()).toMatchObject({ disk: 'fast', 'kubernetes.io/arch': 'arm64' });
  expect(world.virtualNode('milan')?.spec.taints).toEqual([taint]);
});

test('PerNode: one for each node over there; one too many takes nothing new, and goes when it is empty', async () => {
  world = await new World().up();
  world.intent = { ...world.intent, policy: policy({ shape: 'PerNode' }) };
  const each = { cpu: '4', memory: '8Gi', pods: '50' };
  const shape = { architecture: 'amd64', operatingSystem: 'linux', resources: each };
  world.provider.more = { shapes: [{ ...shape, count: 2 }] };
  await world.start();
  await world.established();
  const names = (): string[] => world.advertisement?.status?.virtualNodes ?? [];
  expect(names()).toHaveLength(2);
  const [first = '', second = ''] = names();
  expect(world.virtualNode(first)?.spec.resources).toEqual(each);
  world.addPod('web-0', first);
  world.addPod('web-1', second);
  world.provider.resources = each;
  world.provider.more = { shapes: [{ ...shape, count: 1 }] };
  world.provider.renew();
  world.say();
  const isClosed = (): boolean =>
    world.virtualNode(second)?.spec.taints?.some(({ key }) => key === 'tributary.dev/closed') ?? false;
  await world.until('the second is closed', isClosed);
  expect(world.virtualNode(second)?.metadata.annotations?.[ANNOTATION_CLOSED]).toMatch(
    /lends this node no more/,
  );
  expect(world.virtualNode(first)?.spec.taints ?? []).toEqual([]);
  // Far longer than pods are given where a peering ends.
  await world.clock.advance(120_000);
  expect(world.home.storage.get('pods', 'shop/web-1')?.metadata).not.toHaveProperty('deletionTimestamp');
  expect(names()).toEqual([first, second]);
  world.home.storage.remove('pods', 'shop/web-1');
  await world.until('one left', () => names().length === 1 && world.virtualNode(second) === undefined);
  expect(names()).toEqual([first]);
  expect(world.home.storage.list('pods').map(({ metadata }) => metadata.name)).toEqual(['web-0']);
  expect(world.home.storage.list('nodes').map(({ metadata }) => metadata.name)).toEqual([first]);
});
