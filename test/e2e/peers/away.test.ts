import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { HOME_LEASE } from '../../../src/api/names.ts';
import type { PeeringRequest } from '../../../src/api/peering-request.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { corePath, podPath } from '../../support/e2e/api.ts';
import { isNodeReady, Peers } from '../../support/e2e/peers.ts';
import { aDeployment, aPod, isReady, SLEEP, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';

/**
 * The home loses its power, all of it, and the node over there that runs its pods as well. The demonstration does the same for ten
 * minutes (lab/demo/away.ts).
 */
const NAMESPACE = 'stranded';
const JOB = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs/sum`;
const onMilan = {
  nodeSelector: { 'tributary.dev/virtual-node': 'milan' },
  tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
  terminationGracePeriodSeconds: 1,
};

let peers: Peers;
let tenant: string;
/** The node that is lost, and the one that stays, which runs the guardian. */
let lost: string;
let kept: string;

beforeAll(async () => {
  peers = await Peers.open();
  await peers.peer(NAMESPACE, { sharing: { sharePercent: 100 } });
  tenant = await peers.tenant(NAMESPACE);
  const [guardian] = await peers.milan.pods('tributary-system');
  kept = guardian?.spec?.nodeName ?? '';
  lost = kept === 'milan-1' ? 'milan-2' : 'milan-1';
}, 500_000);

afterAll(async () => {
  await peers?.close();
}, 200_000);

const remotes = async (): Promise<Pod[]> => peers.milan.pods(tenant);
const seen = async (): Promise<unknown> =>
  (await remotes()).map(({ metadata, spec, status }) => [
    metadata.name,
    metadata.uid,
    metadata.deletionTimestamp,
    spec?.nodeName,
    status?.phase,
    metadata.annotations?.['tributary.dev/recreated'],
  ]);
const schedulable = async (node: string, is: boolean): Promise<void> => {
  await peers.milan.patch(`/api/v1/nodes/${node}`, { spec: { unschedulable: is ? null : true } });
};

async function isHomeThere(): Promise<string | undefined> {
  const [request] = await peers.milan.list<PeeringRequest>('/apis/tributary.dev/v1alpha1/peeringrequests');
  return request?.status?.conditions?.find(({ type }) => type === 'HomePresent')?.status;
}

/** There is always exactly one remote pod for each home pod. */
async function expectOneEach(): Promise<void> {
  const uids = (await remotes()).map(({ metadata }) => metadata.labels?.['tributary.dev/home-uid']);
  expect(uids).toHaveLength(new Set(uids).size);
}

test('a stranded Deployment, and a Job that ends meanwhile, are adopted by a home that returns', async () => {
  await schedulable(kept, false);
  await peers.rome.create(
    `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
    aDeployment('web', 2, SLEEP, { spec: onMilan }),
  );
  await until(
    'both run',
    async () => (await peers.rome.pods(NAMESPACE, 'app=web')).filter(isReady).length === 2,
    {
      seconds: 90,
      seen,
    },
  );
  await schedulable(kept, true);
  await schedulable(lost, false);
  await peers.rome.create(`/apis/batch/v1/namespaces/${NAMESPACE}/jobs`, sum());
  await until('the Job runs', async () => (await peers.rome.pods(NAMESPACE, 'job-name=sum')).some(isReady), {
    seconds: 60,
    seen,
  });
  await schedulable(lost, true);
  const before = await peers.rome.pods(NAMESPACE);
  const lease = corePath(tenant, 'leases', HOME_LEASE).replace('/api/v1', '/apis/coordination.k8s.io/v1');
  await until(
    'the home has shown that it is there',
    async () => Boolean((await peers.milan.get(lease))?.spec?.['holderIdentity']),
    { seconds: 60, seen: async () => peers.milan.get(lease) },
  );

  await peers.lab.cluster('rome').stop();
  await peers.lab.cluster('milan').node(lost).kill();
  try {
    await until('milan says that the home is away', async () => (await isHomeThere()) === 'False', {
      seconds: 90,
    });
    await until('its node is NotReady', async () => (await readiness(lost)) !== 'True', { seconds: 90 });
    const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
    const { spec } = await peers.milan.call<{ spec: { taints?: object[] } }>('GET', `/api/v1/nodes/${lost}`);
    await peers.milan.patch(`/api/v1/nodes/${lost}`, { spec: { taints: [...(spec.taints ?? []), taint] } });
    await until(
      'the pods run on the other node',
      async () => {
        const web = (await remotes()).filter(({ metadata }) => metadata.labels?.['app'] === 'web');
        return web.length === 2 && web.every((pod) => isReady(pod) && pod.spec?.nodeName === kept);
      },
      { seconds: 120, seen },
    );
    await expectOneEach();
    await until(
      'the Job has ended over there',
      async () =>
        (await remotes()).some(
          ({ metadata, status }) => metadata.labels?.['job-name'] === 'sum' && status?.phase === 'Succeeded',
        ),
      { seconds: 120, seen },
    );
    // Somebody deletes finished pods: their results must not be lost, nor what they said.
    const ended = (await remotes()).find(({ metadata }) => metadata.labels?.['job-name'] === 'sum');
    await peers.milan.remove(podPath(tenant, ended?.metadata.name));
    await until(
      'its result is put back',
      async () =>
        (await remotes()).some(
          ({ metadata, status }) =>
            metadata.uid !== ended?.metadata.uid &&
            metadata.labels?.['job-name'] === 'sum' &&
            status?.phase === 'Succeeded',
        ),
      { seconds: 60, seen },
    );
  } finally {
    await peers.lab.cluster('rome').start();
  }

  await peers.untilNodes('are Ready again', (nodes) => nodes.length === 1 && nodes.every(isNodeReady), 150);
  // A whole cluster starts while others work: its kubelet, its agents, their link.
  await until('milan says that the home is back', async () => (await isHomeThere()) === 'True', {
    seconds: 180,
    seen: async () => ({
      lease: (await peers.milan.get(lease))?.spec,
      agents: (await peers.rome.pods('tributary-agents')).map(({ status }) => status),
      cluster: (await peers.rome.pods('tributary-system')).map(({ status }) => status?.containerStatuses),
    }),
  });
  await until('the Job is complete', async () => (await peers.rome.get(JOB))?.status?.['succeeded'] === 1, {
    seconds: 120,
    seen: async () => (await peers.rome.get(JOB))?.status,
  });
  const after = await until(
    'home sees both Ready',
    async () => {
      const pods = await peers.rome.pods(NAMESPACE);
      return (
        pods.filter(
          ({ metadata, ...pod }) => metadata.labels?.['app'] === 'web' && isReady({ metadata, ...pod }),
        ).length === 2 && pods
      );
    },
    { seconds: 90, seen },
  );
  const uids = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => metadata.uid).toSorted();
  expect(uids(after)).toEqual(uids(before));
  expect((await peers.rome.get(JOB))?.status).not.toHaveProperty('failed');
  const [job] = await peers.rome.pods(NAMESPACE, 'job-name=sum');
  expect(statusOf(job)?.state?.terminated).toMatchObject({ exitCode: 0, message: 'the sum is 820' });
  expect(await peers.ask(`kubectl --context rome -n ${NAMESPACE} logs job/sum --tail=2`)).toBe(
    'plus 39\nplus 40\n',
  );
  await expectOneEach();
  await until(
    'the journals are gone',
    async () => (await peers.milan.list('/api/v1/namespaces/tributary-peers/secrets')).length === 0,
    { seconds: 60 },
  );
  await peers.lab.cluster('milan').node(lost).start();
  const { spec } = await peers.milan.call<{ spec: { taints?: { key: string }[] } }>(
    'GET',
    `/api/v1/nodes/${lost}`,
  );
  const taints = (spec.taints ?? []).filter(({ key }) => key !== 'node.kubernetes.io/out-of-service');
  await peers.milan.patch(`/api/v1/nodes/${lost}`, { spec: { taints } });
  await until('the lost node is Ready again', async () => (await readiness(lost)) === 'True', {
    seconds: 90,
  });
  await expectOneEach();
}, 900_000);

async function readiness(node: string): Promise<string | undefined> {
  const found = await peers.milan.get<{ status?: { conditions?: { type: string; status: string }[] } }>(
    `/api/v1/nodes/${node}`,
  );
  return found?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

/** Takes a minute; what it has found goes with its status. */
const sum = (): object => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'sum' },
  spec: {
    backoffLimit: 0,
    template: {
      spec: {
        ...(
          aPod(
            'sum',
            'n=0; for i in $(seq 40); do n=$((n+i)); echo plus $i; sleep 1.5; done; echo -n "the sum is $n" > /dev/termination-log',
            {
              spec: onMilan,
            },
          ) as { spec: object }
        ).spec,
        restartPolicy: 'Never',
      },
    },
  },
});
