import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { NamespaceOffloading } from '../../../src/api/namespace-offloading.ts';
import type { Node, Pod } from '../../../src/api/wire.ts';
import { corePath } from '../../support/e2e/api.ts';
import { isNodeReady, Peers } from '../../support/e2e/peers.ts';
import { aDeployment, conditionOf, isReady, SLEEP } from '../../support/e2e/pods.ts';
import { during, until } from '../../support/e2e/until.ts';
import { short } from '../../support/long.ts';

/**
 * A network that is cut between two clusters without a word: every packet is dropped, in both directions, also of connections that
 * are open. What runs over there must not notice.
 */
const NAMESPACE = 'divided';
const GRACE_SECONDS = 10;
const CUT_SECONDS = short('seconds for which two clusters do not reach each other', { short: 60, long: 600 });
const onMilan = {
  nodeSelector: { 'tributary.dev/virtual-node': 'milan' },
  tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
  terminationGracePeriodSeconds: 1,
};

interface Slice {
  metadata: { name: string };
  endpoints?: { conditions?: { ready?: boolean } }[];
}

let peers: Peers;
let tenant: string;

beforeAll(async () => {
  peers = await Peers.open();
  await peers.peer(NAMESPACE);
  tenant = await peers.tenant(NAMESPACE);
  // Kubernetes would move them after 300 s.
  await peers.rome.create(
    `/apis/tributary.dev/v1alpha1/namespaces/${NAMESPACE}/namespaceoffloadings`,
    offloading(),
  );
  const [node] = await peers.nodes();
  await peers.rome.patch(`/apis/tributary.dev/v1alpha1/virtualnodes/${node?.metadata.name}`, {
    spec: { awayAfterSeconds: GRACE_SECONDS },
  });
  await peers.rome.create(
    `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
    aDeployment('web', 2, SLEEP, { spec: onMilan }),
  );
  await peers.rome.create(corePath(NAMESPACE, 'services'), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  });
  await until('both are endpoints', async () => (await ready()) === 2, { seconds: 120, seen });
}, 500_000);

afterAll(async () => peers?.close(), 200_000);

const offloading = (): Omit<NamespaceOffloading, 'metadata'> & { metadata: object } => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'NamespaceOffloading',
  metadata: { name: 'offloading' },
  spec: { whenAway: { pods: 'Stay' } },
});

async function ready(): Promise<number> {
  const slices = await peers.rome.list<Slice>(
    `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices?labelSelector=kubernetes.io/service-name%3Dweb`,
  );
  return slices.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions?.ready)
    .length;
}

const node = async (): Promise<Node | undefined> => (await peers.nodes())[0];
const isNodeAway = async (): Promise<boolean> => {
  const found = await node();
  return found !== undefined && !isNodeReady(found);
};
const here = async (): Promise<Pod[]> => peers.rome.pods(NAMESPACE, 'app=web');
const seen = async (): Promise<unknown> => ({
  node: (await node())?.status?.conditions?.find(({ type }) => type === 'Ready'),
  here: (await here()).map(({ metadata, status }) => [metadata.name, metadata.deletionTimestamp, status]),
});

/** What would show that a container was touched. */
const containers = async (): Promise<string[]> =>
  (await peers.milan.pods(tenant, 'app=web'))
    .flatMap(({ metadata, status }) =>
      (status?.containerStatuses ?? []).map(
        ({ containerID, restartCount }) => `${metadata.uid} ${containerID} ${restartCount}`,
      ),
    )
    .toSorted();

/** What a write would change. */
const written = async (): Promise<unknown[]> => [
  (await node())?.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime,
  ...(await here()).map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).toSorted(),
];

test('a gap that is shorter than the time of grace changes nothing', async () => {
  const before = { written: await written(), containers: await containers() };
  await peers.setNetwork('cut');
  let wasAway = false;
  const look = async (): Promise<void> => void (wasAway ||= await isNodeAway());
  await during(GRACE_SECONDS / 2, look);
  expect(await peers.dropped()).toBeGreaterThan(0);
  await peers.setNetwork('open');
  await during(GRACE_SECONDS, look);
  expect(wasAway).toBe(false);
  expect(await written()).toEqual(before.written);
  expect(await containers()).toEqual(before.containers);
}, 120_000);

test(`a cut of ${CUT_SECONDS} s: told within 5 s after the time of grace, nothing restarts, and all is well again by itself`, async () => {
  const before = await containers();
  const uids = (await here()).map(({ metadata }) => metadata.uid).toSorted();
  await peers.setNetwork('cut');
  const began = performance.now();
  const secondsUntil = async (what: string, isSo: () => Promise<boolean>): Promise<number> => {
    await until(what, isSo, { seconds: 120, seen });
    return (performance.now() - began) / 1000;
  };
  const [nodeAway, noEndpoint] = await Promise.all([
    secondsUntil('the Node is not Ready', isNodeAway),
    secondsUntil('no endpoint is ready', async () => (await ready()) === 0),
  ]);
  console.log(
    `grace ${GRACE_SECONDS} s: Node not Ready after ${nodeAway.toFixed(1)} s, endpoints after ${noEndpoint.toFixed(1)} s`,
  );
  expect(Math.min(nodeAway, noEndpoint)).toBeGreaterThanOrEqual(GRACE_SECONDS);
  expect(Math.max(nodeAway, noEndpoint)).toBeLessThanOrEqual(GRACE_SECONDS + 5);
  await during(CUT_SECONDS - noEndpoint, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  });
  expect(await containers()).toEqual(before);
  await peers.setNetwork('open');
  const healed = performance.now();
  const back = async (what: string, isSo: () => Promise<boolean>): Promise<string> => {
    await until(what, isSo, { seconds: 120, seen });
    return `${what} ${((performance.now() - healed) / 1000).toFixed(1)} s`;
  };
  const times = await Promise.all([
    back('Node Ready', async () => !(await isNodeAway())),
    back('pods Ready', async () => (await here()).every((pod) => isReady(pod))),
    back('both endpoints', async () => (await ready()) === 2),
  ]);
  console.log(`after the network was back: ${times.join(', ')}`);
  expect(await containers()).toEqual(before);
  expect((await here()).map(({ metadata }) => metadata.uid).toSorted()).toEqual(uids);
  expect(
    (await here()).every((pod) => isReady(pod) && conditionOf(pod, 'DisruptionTarget') === undefined),
  ).toBe(true);
}, 900_000);
