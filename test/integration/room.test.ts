import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { addTo, amountOf, parseAmounts } from '../../src/api/amounts.ts';
import { podRequests } from '../../src/api/pod-requests.ts';
import { limitRanges, nodes, resourceQuotas, runtimeClasses } from '../../src/api/resources.ts';
import type { SharingPolicySpec } from '../../src/api/sharing-policy.ts';
import type { Pod, PodSpec, ResourceList } from '../../src/api/wire.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { virtualNodePlans } from '../../src/peering/offer/virtual-node-plans.ts';
import { forgePod } from '../../src/provider/forge/pod.ts';
import { eventually } from '../support/eventually.ts';
import { printed, type Caller, RightsCluster } from '../support/labs/rights-cluster.ts';
import { LendingWorld, type Peer } from '../support/peering/lending-world.ts';

/**
 * Room is the same on both sides: the ResourceQuota, LimitRanger and RuntimeClass of a real API server admit what the scheduler
 * of a home places on the virtual node of an offer.
 */

const LENDS = { 'example.com/lends': 'yes' };

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
let world: LendingWorld;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  admin = await lab.admin();
  client = await lab.clientOf({ namespace: 'tributary-system', name: 'tributary-cluster' });
});

afterAll(async () => {
  await client?.close();
  await admin?.close();
  await lab?.down();
});

beforeEach(async () => {
  world = new LendingWorld(client, {}, admin);
  if ((await admin.list(nodes)).items.every(({ metadata }) => metadata.name !== 'real')) {
    await world.node('real', { cpu: '6400m', memory: '32Gi', pods: '220', 'ephemeral-storage': '100Gi' });
  }
  await world.start();
});

afterEach(async () => world.stop());

interface Lent {
  /** What the virtual node shows. */
  shown: ResourceList;
  tenant: string;
  /** Makes the remote pod of a home pod. */
  admit: (home: Pod) => Promise<void>;
}

/** A contract under that policy, and its quota in force. */
async function lend(name: string, spec: Partial<SharingPolicySpec>): Promise<Lent> {
  // By name: the peers of other tests keep theirs.
  const rome = world.peer();
  await world.policy(
    { peers: { clusterIDs: [rome.id] }, nodeSelector: LENDS, imagePullPolicy: 'AsAsked', ...spec },
    name,
  );
  await rome.peered();
  const offer = rome.told.offer?.offer;
  if (offer === undefined) throw new Error('there is no offer');
  const [plan] = virtualNodePlans(offer, offer.resources);
  const tenant = rome.tenant();
  const call = await callerOf(rome);
  const context = {
    virtualNode: 'milan',
    nodeName: 'milan',
    nodeAddress: '192.0.2.1',
    tenantNamespace: tenant,
    network: 'Off' as const,
    homeViewOf: (address: string) => address,
  };
  const post = async (home: Pod, query = ''): ReturnType<Caller> => {
    const pod = forgePod(home, context);
    // As the webhook of the provider puts it in.
    const forced = { nodeSelector: LENDS, ...(spec.runtimeClassName && runtimeClass(spec.runtimeClassName)) };
    return call('POST', `/api/v1/namespaces/${tenant}/pods${query}`, {
      ...pod,
      spec: { ...pod.spec, ...forced, terminationGracePeriodSeconds: 1 },
    });
  };
  await eventually('the quota is in force', async () => {
    const { status, body } = await post(homePod('huge', requesting({ cpu: '1000' })), '?dryRun=All');
    return status === 403 && body.includes('exceeded quota: tributary');
  });
  return {
    shown: plan?.resources ?? {},
    tenant,
    admit: async (home) => {
      const { status, body } = await post(home);
      if (status !== 201) throw new Error(`pod ${home.metadata.name}: ${body}`);
    },
  };
}

const runtimeClass = (runtimeClassName: string): Partial<PodSpec> => ({ runtimeClassName });

async function callerOf(peer: Peer): Promise<Caller> {
  const { token } = await world.lending.credential(peer.identity, new AbortController().signal);
  return lab.with(token);
}

const requesting = (...lists: ResourceList[]): PodSpec['containers'] =>
  lists.map((requests, index) => ({ name: `c${index}`, image: 'example/none:1', resources: { requests } }));

/** `init`: how many init containers it has, without requests. */
const homePod = (name: string, containers: PodSpec['containers'], init = 0): Pod => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-of-${name}`,
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {
    nodeName: 'milan',
    containers,
    initContainers: Array.from({ length: init }, (_, index) => ({
      name: `init${index}`,
      image: 'example/none:1',
    })),
  },
});

/** As the scheduler counts what is free on the virtual node. */
function homeNode(shown: ResourceList): (pod: Pod) => boolean {
  const free = parseAmounts(shown);
  return (pod) => {
    const cost = podRequests(pod);
    const fits = [...cost].every(([resource, milli]) => milli <= amountOf(free, resource));
    if (fits) addTo(free, cost, -1n);
    return fits;
  };
}

test('the 33 pods without requests of a Deployment run on 3.2 CPUs, and leave all of them for pods that request any', async () => {
  const { shown, tenant, admit } = await lend('small', {
    sharePercent: 100,
    limits: { cpu: '3200m', memory: '8Gi', pods: '110', 'ephemeral-storage': '10Gi' },
  });
  expect(shown).toMatchObject({ cpu: '3200m', pods: '110' });
  const fits = homeNode(shown);
  for (let n = 0; n < 33; n++) {
    const pod = homePod(`web-${n}`, requesting({}, {}), 1);
    expect(fits(pod)).toBe(true);
    await admit(pod);
  }
  const large = homePod('large', requesting({ cpu: '3200m', memory: '1Gi' }));
  expect(fits(large)).toBe(true);
  await admit(large);
  const more = homePod('more', requesting({ cpu: '1m' }));
  expect(fits(more)).toBe(false);
  await expect(admit(more)).rejects.toThrow('exceeded quota: tributary, requested: requests.cpu=1m');
  await eventually('as many are counted', async () => {
    const { status } = await admin.get(resourceQuotas, { namespace: tenant, name: 'tributary' });
    return status?.used?.['pods'] === '34' && status.used['requests.cpu'] === '3200m';
  });
});

test('default requests and the overhead of a forced runtime class are set aside, and a change of the policy reaches tenants', async () => {
  await admin.create(runtimeClasses, {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '20m', memory: '100Mi' } },
  });
  const defaultRequests = { cpu: '30m', memory: '28Mi', 'ephemeral-storage': '64Mi' };
  const { shown, tenant, admit } = await lend('kata', {
    sharePercent: 100,
    limits: { cpu: '2560m', memory: '8Gi', pods: '80', 'ephemeral-storage': '10Gi' },
    runtimeClassName: 'kata',
    defaultRequests,
  });
  // 2560m of CPU: 50m for each of 25 pods are set aside.
  expect(shown).toMatchObject({ cpu: '1310m', pods: '25' });
  const fits = homeNode(shown);
  const kinds = [
    requesting({}, {}),
    requesting({ cpu: '40m' }, { memory: '64Mi' }),
    requesting({ cpu: '100m', memory: '100Mi' }),
    requesting({ 'ephemeral-storage': '1Gi' }),
  ];
  let placed = 0;
  for (let n = 0; n < 40; n++) {
    const pod = homePod(`mixed-${n}`, kinds[n % kinds.length] ?? [], 1);
    if (!fits(pod)) continue;
    await admit(pod);
    placed++;
  }
  expect(placed).toBe(25);
  const defaults = async (): Promise<object | undefined> =>
    (await admin.get(limitRanges, { namespace: tenant, name: 'tributary' })).spec?.limits[0]?.defaultRequest;
  expect(await defaults()).toEqual(defaultRequests);
  await world.changePolicy({ defaultRequests: { cpu: '5m', memory: null } as never }, 'kata');
  await eventually('the defaults follow', async () => {
    const { cpu, memory } = ((await defaults()) ?? {}) as ResourceList;
    return cpu === '5m' && memory === '0';
  });
});
