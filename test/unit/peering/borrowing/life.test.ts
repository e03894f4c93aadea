import { afterEach, expect, test } from '@jest/globals';
import { namespaces } from '../../../../src/api/resources.ts';
import { policy, World } from './support/world.ts';

let world: World;
afterEach(async () => world.down());

const up = async (): Promise<World> => {
  world = await new World().up();
  return world;
};

test('from an offer to a virtual node, and back to nothing', async () => {
  await up();
  const { borrowing } = await world.start();
  await world.established();
  const { spec, status, metadata } = world.advertisement ?? { metadata: undefined };
  expect(metadata?.finalizers).toEqual(['tributary.dev/peering']);
  expect(spec).toMatchObject({
    clusterID: world.id,
    clusterName: 'Milan',
    offer: { resources: { cpu: '8' } },
  });
  expect(status).toMatchObject({
    decision: 'Accepted',
    policy: 'all',
    access: 'Link',
    virtualNodes: ['milan'],
  });
  expect(status?.contract).toEqual(world.provider.contract);
  await world.until('in use', () => borrowing.report(world.id).phase === 'Established');
  expect(world.virtualNode('milan')?.spec).toMatchObject({
    kubeconfigSecretRef: { namespace: 'tributary-system', name: `tributary-kubeconfig-${world.id}` },
    resources: { cpu: '8', memory: '16Gi', pods: '100' },
    labels: {
      'kubernetes.io/arch': 'arm64',
      'topology.kubernetes.io/region': 'north',
      'tributary.dev/provider': world.id,
    },
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }],
  });
  expect(world.kubeconfig).toEqual({ server: 'https://127.0.0.1:4443', name: 'api.milan', token: 'token-1' });
  expect(world.agents.running.get(world.id)).toEqual({
    clusterID: world.id,
    virtualNodes: [{ name: 'milan', nodeName: 'milan' }],
    namespaces: ['shop'],
    kubeconfigSecret: { namespace: 'tributary-system', name: `tributary-kubeconfig-${world.id}` },
  });
  world.addPod('web', 'milan');
  world.want({ wanted: false });
  await world.gone();
  await world.until('at rest', () => borrowing.report(world.id).phase === 'None');
  expect(world.reach).toMatchObject({ opened: 1 });
  expect(world.events.map((text) => text.split(':')[0])).toEqual([
    'OfferAccepted',
    'PeeringEstablished',
    'PeeringEnding',
  ]);
});

test('a Manual policy waits for a person, and a person may say no', async () => {
  await up();
  world.intent = { ...world.intent, policy: policy({ approval: 'Manual' }) };
  const { borrowing } = await world.start();
  await world.until('offered', () => borrowing.report(world.id).reason === 'WaitingForApproval');
  expect(world.provider.acceptance).toBeUndefined();
  world.patchAdvertisement({ approval: 'Approved' });
  await world.established();
  world.patchAdvertisement({ approval: 'Denied' });
  await world.until('taken down', () => world.secret === undefined && world.agents.running.size === 0);
  await world.until('denied', () => borrowing.report(world.id).reason === 'DeniedHere');
  expect(world.advertisement?.status).toMatchObject({ decision: 'Refused', reason: 'DeniedHere' });
  await world.until('forgotten', () => world.advertisement?.status?.contract === undefined);
  await world.until('and taken back', () => world.provider.acceptance === undefined);
  // The request stands: the person has spoken about the offer only.
  expect(world.provider.request).toBeDefined();
});

test('a namespace that is not offloaded although somebody has named it is told', async () => {
  await up();
  world.intent = { ...world.intent, policy: policy({ namespaces: ['shop', 'kube-system', 'typo'] }) };
  const { borrowing } = await world.start();
  await world.established();
  const message = (): string | undefined => borrowing.report(world.id).message;
  await world.until('told', () => message()?.endsWith("the cluster's own: kube-system, typo") === true);
  world.home.seed(namespaces, { metadata: { name: 'typo' } });
  await world.until('one is there now', () => message()?.endsWith("the cluster's own: kube-system") === true);
  world.want({ policy: policy() });
  await world.until('nothing is missed', () => message() === '1 of 1 ready');
});

test('a namespace that is being deleted is given up when it is gone, so that its pods can be ended over there', async () => {
  await up();
  await world.start();
  await world.established();
  const { storage } = world.home;
  const shop = storage.get('namespaces', 'shop');
  if (shop === undefined) throw new Error('the world has no namespace shop');
  const going = { finalizers: ['test/pods'], deletionTimestamp: '2026-01-01T00:00:00Z' };
  storage.update('namespaces', { ...shop, metadata: { ...shop.metadata, ...going } });
  world.want({ namespaces: ['spare'] });
  await world.until('spare as well', () => world.provider.request?.namespaces.includes('spare') === true);
  expect(world.provider.request?.namespaces).toEqual(['shop', 'spare']);
  storage.remove('namespaces', 'shop');
  await world.until('shop is gone', () => world.provider.request?.namespaces.join() === 'spare');
});

test('what is said of a peering on its way never goes back', async () => {
  await up();
  world.connected = false;
  world.provider.signs = false;
  const { borrowing } = await world.start();
  const said: string[] = [];
  const look = (): void => {
    const { phase, message } = borrowing.report(world.id);
    const line = `${phase}: ${message}`;
    if (said.at(-1) !== line) said.push(line);
  };
  look();
  world.home.storage.subscribe(look);
  borrowing.onChange(look);
  world.link(true);
  const unsigned = 'Accepted: the provider has not signed the contract yet';
  await world.until('our signature is there', () => said.at(-1) === unsigned);
  world.provider.signs = true;
  const { request, acceptance } = world.provider;
  world.provider.received({ ...(request && { request }), ...(acceptance && { acceptance }) });
  world.say();
  await world.until('in use', () => said.at(-1)?.startsWith('Established') === true);
  const order = ['Pending', 'Offered', 'Accepted', 'Established'];
  const phases = said.map((line) => order.indexOf(line.split(':', 1)[0] ?? ''));
  expect(phases).toEqual(phases.toSorted((a, b) => a - b));
  expect(new Set(said).size).toBe(said.length);
  expect(said.slice(0, said.indexOf(unsigned)).join()).not.toContain('agreed');
});
