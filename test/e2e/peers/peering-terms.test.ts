import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { SharingPolicy } from '../../../src/api/sharing-policy.ts';
import type { Node, Pod } from '../../../src/api/wire.ts';
import { parseQuantity } from '../../../src/lib/quantity.ts';
import { deploymentPath, podPath } from '../../support/e2e/api.ts';
import { containersOf, isNodeReady, isPending, Peers } from '../../support/e2e/peers.ts';
import { aDeployment, aPod, isReady } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';

const NAMESPACE = 'terms';
const GROUP = '/apis/tributary.dev/v1alpha1';
const SHARING = `${GROUP}/sharingpolicies/test`;
const ACCEPTANCE = `${GROUP}/acceptancepolicies/test`;
const GPU = 'example.org/gpu';
/** The test still looks at what is kept after the ten seconds for which a revoked token is remembered. */
const KEEP_SECONDS = 60;

/** Wherever there is room. */
const anywhere = { spec: { nodeSelector: {} } };
const onMilan = { spec: { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } } };
const onAnyVirtual = { spec: { nodeSelector: { 'tributary.dev/node-type': 'virtual-node' } } };

let peers: Peers;

beforeAll(async () => {
  peers = await Peers.open();
}, 400_000);

afterAll(async () => peers?.close(), 200_000);

const amount = (
  node: { status?: { allocatable?: Record<string, string> } } | undefined,
  resource: string,
): number => parseQuantity(node?.status?.allocatable?.[resource] ?? '0');

const readyOf = (node: Node | undefined): string =>
  node?.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';

async function removeDeployment(name: string): Promise<void> {
  await peers.rome.remove(`${deploymentPath(NAMESPACE, name)}?propagationPolicy=Foreground`);
  await until(
    `no pods of ${name}`,
    async () => (await peers.rome.pods(NAMESPACE, `app=${name}`)).length === 0,
    { seconds: 60 },
  );
}

async function removePods(...names: string[]): Promise<void> {
  for (const name of names) await peers.rome.remove(podPath(NAMESPACE, name));
  await until(
    `no ${names.join()}`,
    async () => {
      const pods = await peers.rome.pods(NAMESPACE);
      return !pods.some(({ metadata }) => names.includes(metadata.name));
    },
    { seconds: 60 },
  );
}

describe('one virtual node for all of milan', () => {
  beforeAll(async () => peers.peer(NAMESPACE), 120_000);

  const device = async (count: string | null): Promise<void> => {
    const patch = { status: { capacity: { [GPU]: count } } };
    await peers.milan.call('PATCH', '/api/v1/nodes/milan-1/status', patch, 'application/merge-patch+json');
  };

  test('a device over there is offered, shown and used by a pod', async () => {
    await device('4');
    await peers.untilNodes('show two of four devices', ([node]) => amount(node, GPU) === 2);
    const resources = { requests: { cpu: '5m', memory: '8Mi' }, limits: { [GPU]: '1' } };
    await peers.runPod(NAMESPACE, aPod('gpu', undefined, { ...onMilan, container: { resources } }), isReady);
    const tenant = await peers.tenant(NAMESPACE);
    const remote = await peers.milan.pod(tenant, 'gpu');
    expect(remote?.spec?.nodeName).toBe('milan-1');
    expect(remote?.spec?.containers[0]?.resources?.limits?.[GPU]).toBe('1');
    const more = { requests: { cpu: '5m', memory: '8Mi' }, limits: { [GPU]: '2' } };
    await peers.runPod(
      NAMESPACE,
      aPod('greedy', undefined, { ...onMilan, container: { resources: more } }),
      isPending,
    );
    await removePods('gpu', 'greedy');
    await device(null);
    await peers.untilNodes('show none', ([node]) => amount(node, GPU) === 0);
  });

  test('a share of 50 % that becomes 20 % is seen on the node, and no pod is touched', async () => {
    await peers.rome.create(deploymentPath(NAMESPACE), aDeployment('web', 2, undefined, onMilan));
    const pods = await until(
      'the Deployment is there',
      async () => {
        const pods = await peers.rome.pods(NAMESPACE, 'app=web');
        return pods.length === 2 && pods.every(isReady) && pods;
      },
      { seconds: 60 },
    );
    const [half] = await peers.nodes();
    const began = performance.now();
    await peers.milan.patch(SHARING, { spec: { sharePercent: 20 } });
    const [less] = await peers.untilNodes(
      'are smaller',
      ([node]) => amount(node, 'cpu') < amount(half, 'cpu'),
    );
    console.info(
      `share 50 % -> 20 % seen after ${((performance.now() - began) / 1000).toFixed(2)} s: ` +
        `cpu ${half?.status?.allocatable?.['cpu']} -> ${less?.status?.allocatable?.['cpu']}`,
    );
    expect(amount(less, 'cpu') / amount(half, 'cpu')).toBeCloseTo(0.4, 1);
    expect(isNodeReady(less)).toBe(true);
    const after = await peers.rome.pods(NAMESPACE, 'app=web');
    expect(containersOf(after)).toEqual(containersOf(pods));
    expect(containersOf(await peers.milan.pods(await peers.tenant(NAMESPACE), 'app=web'))).toEqual(
      containersOf(pods),
    );
    await removeDeployment('web');
  });

  test('a price that is too high lets no new pods in, and all say why until it is lower', async () => {
    const pod = await peers.runPod(NAMESPACE, aPod('stays', undefined, onMilan), isReady);
    await peers.rome.patch(ACCEPTANCE, { spec: { maxPrices: { cpu: { amount: '0.01', currency: 'EUR' } } } });
    await peers.milan.patch(SHARING, {
      spec: { prices: { cpu: { amount: '0.03', currency: 'eur' }, cpus: { amount: '1', currency: 'EUR' } } },
    });
    const why =
      'no new pods are sent there: AcceptancePolicy test refuses the offer: cpu: 0.03 EUR asked, at most 0.01 EUR wanted';
    const [closed] = await peers.untilNodes('say why they take no new pods', ([node]) =>
      readyOf(node).startsWith(why),
    );
    expect(isNodeReady(closed)).toBe(true);
    await until('the ForeignCluster says so', async () => {
      const { outgoing } = (await peers.cluster('rome'))?.status ?? {};
      return outgoing?.reason === 'OfferRefused' && outgoing.phase === 'Established';
    });
    expect(await peers.ask('tributary --context rome peerings')).toContain(`closed (${why})`);
    expect(await peers.ask('tributary --context rome doctor || true')).toContain(why);
    await peers.runPod(NAMESPACE, aPod('late', undefined, onMilan), isPending);
    await until('the SharingPolicy names the price of nothing', async () => {
      const policy = await peers.milan.get<SharingPolicy>(SHARING);
      return policy?.status?.conditions?.some(({ reason }) => reason === 'PricedNotLent') === true;
    });
    await peers.milan.patch(SHARING, { spec: { prices: { cpu: { amount: '0.01' }, cpus: null } } });
    await peers.untilPod(NAMESPACE, 'late', isReady);
    expect(readyOf((await peers.nodes())[0])).toBe('the foreign cluster takes pods');
    expect(containersOf([(await peers.rome.pod(NAMESPACE, 'stays')) ?? pod])).toEqual(containersOf([pod]));
    await removePods('stays', 'late');
  });

  test('PerNode: what fits no node over there is not attracted; a node that goes is left when it is empty', async () => {
    await peers.rome.patch(ACCEPTANCE, { spec: { shape: 'PerNode' } });
    const two = await peers.untilNodes(
      'are two, one for each over there',
      (nodes) => nodes.length === 2 && nodes.every(isNodeReady),
    );
    await peers.milan.patch(SHARING, { spec: { sharePercent: 50 } });
    const nodes = await peers.untilNodes(
      'have grown',
      (all) =>
        all.length === 2 && all.every((node) => amount(node, 'memory') > 1.5 * amount(two[0], 'memory')),
    );
    const [largest] = nodes.map((node) => amount(node, 'memory')).toSorted((a, b) => b - a);
    const total = nodes.reduce((sum, node) => sum + amount(node, 'memory'), 0);
    const between = Math.round(((largest ?? 0) + total) / 2);
    const large = { resources: { requests: { cpu: '5m', memory: String(between) } } };
    await peers.runPod(NAMESPACE, aPod('large', undefined, { ...onAnyVirtual, container: large }), isPending);
    expect(await peers.milan.pods(await peers.tenant(NAMESPACE))).toEqual([]);
    await removePods('large');

    const [first = '', second = ''] = nodes.map(({ metadata }) => metadata.name).toSorted();
    const pinned = { spec: { nodeSelector: { 'tributary.dev/virtual-node': second } } };
    const pod = await peers.runPod(NAMESPACE, aPod('stays', undefined, pinned), isReady);
    await peers.ask('kubectl --context milan cordon milan-2');
    await peers.untilNodes('are closed where one is too many', (all) =>
      all.some(
        ({ metadata, spec }) =>
          metadata.name === second &&
          spec?.taints?.some(({ key }) => key === 'tributary.dev/closed') === true,
      ),
    );
    await peers.runPod(NAMESPACE, aPod('late', undefined, pinned), isPending);
    await peers.runPod(NAMESPACE, aPod('other', undefined, onAnyVirtual), isReady);
    expect((await peers.rome.pod(NAMESPACE, 'other'))?.spec?.nodeName).toBe(first);
    expect(containersOf([(await peers.rome.pod(NAMESPACE, 'stays')) ?? pod])).toEqual(containersOf([pod]));
    await removePods('stays', 'other', 'late');
    await peers.untilNodes('are one', (all) => all.length === 1 && all[0]?.metadata.name === first);

    await peers.ask('kubectl --context milan uncordon milan-2');
    await peers.rome.patch(ACCEPTANCE, { spec: { shape: 'Aggregate' } });
    const [sum] = await peers.untilNodes(
      'are one with the total',
      (all) => all.length === 1 && isNodeReady(all[0]) && amount(all[0], 'memory') > 0.9 * total,
    );
    expect(sum?.metadata.name).toBe('milan');
  });
});

describe.each(['Delete', 'Keep'] as const)('revoked where the policy says %s', (onEnd) => {
  test('access ends at once, pods over there follow the policy, pods at home are replaced', async () => {
    await peers.unpeer();
    await peers.peer(NAMESPACE, { sharing: { onEnd, keepForSeconds: KEEP_SECONDS } });
    await peers.ask('kubectl cordon rome-1');
    await peers.rome.create(deploymentPath(NAMESPACE), aDeployment('shop', 2, undefined, anywhere));
    const home = async (): Promise<Pod[]> => peers.rome.pods(NAMESPACE, 'app=shop');
    const pods = await until(
      'both run in milan',
      async () => {
        const pods = await home();
        return (
          pods.length === 2 && pods.every((pod) => isReady(pod) && pod.spec?.nodeName === 'milan') && pods
        );
      },
      { seconds: 60, seen: home },
    );
    await peers.ask('kubectl uncordon rome-1');
    const tenant = await peers.tenant(NAMESPACE);
    const remote = async (): Promise<Pod[]> => peers.milan.pods(tenant);
    const containers = containersOf(await remote());
    const file = await peers.kubeconfig('revoked.kubeconfig');
    const list = ['get', 'pods', '-n', tenant, '-o', 'name'];
    expect(await peers.asAgent(file, ...list)).toContain('pod/shop-');

    if (onEnd === 'Delete') await peers.ask('tributary deny --context milan peeringrequest rome');
    else await peers.milan.patch(`${GROUP}/foreignclusters/rome`, { spec: { incoming: 'Disabled' } });
    const began = performance.now();
    const refusal = async (pattern: RegExp): Promise<string | false> =>
      peers.asAgent(file, ...list).then(
        () => false,
        (error: Error) => pattern.test(error.message) && error.message,
      );
    await until('the credential is good for nothing', async () =>
      refusal(/Forbidden|Unauthorized|logged in/),
    );
    const refused = performance.now() - began;
    // The API server remembers an authenticated token for ten seconds, but the account has no rights any more.
    await until('the credential is none', async () => refusal(/Unauthorized|logged in/), { seconds: 60 });
    console.info(
      `${onEnd}: refused after ${(refused / 1000).toFixed(2)} s, unknown after ${((performance.now() - began) / 1000).toFixed(2)} s`,
    );

    if (onEnd === 'Keep') {
      expect(containersOf(await remote())).toEqual(containers);
      const { metadata } = await peers.milan.call('GET', `/api/v1/namespaces/${tenant}`);
      expect(metadata.annotations).toHaveProperty(['tributary.dev/keep-until']);
    }
    await until(
      'others have taken their place at home',
      async () => {
        const now = await home();
        return now.length === 2 && now.every((pod) => isReady(pod) && pod.spec?.nodeName === 'rome-1') && now;
      },
      {
        seconds: 90,
        seen: async () => (await home()).map(({ spec, status }) => [spec?.nodeName, status?.phase]),
      },
    );
    expect((await home()).some((pod) => pods.some(({ metadata }) => metadata.uid === pod.metadata.uid))).toBe(
      false,
    );
    // Pods are removed first, then the node that they ran on.
    await peers.untilNodes('are gone', (nodes) => nodes.length === 0);
    await until(
      'the VirtualNodes are gone',
      async () => (await peers.rome.list(`${GROUP}/virtualnodes`)).length === 0,
    );
    await until('the Secret is gone', async () => (await peers.secret()) === undefined);
    for (const city of ['rome', 'milan']) {
      const list = async (): Promise<string> => peers.ask(`kubectl --context ${city} get foreignclusters`);
      await until(`${city} says Denied`, async () => (await list()).includes('Denied'), {
        seconds: 60 + KEEP_SECONDS,
        seen: list,
      });
    }
    await until('nothing runs in milan', async () => (await remote()).length === 0, {
      seconds: 60 + KEEP_SECONDS,
    });
    await until(
      'no tenant is left',
      async () => (await peers.milan.get(`/api/v1/namespaces/${tenant}`)) === undefined,
      { seconds: 90 },
    );
    await removeDeployment('shop');
  });
});
