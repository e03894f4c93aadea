import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { CONDITION_OFFLOADED, STORAGE_PROVISIONER } from '../../../src/api/names.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { podPath } from '../../support/e2e/api.ts';
import { Peers } from '../../support/e2e/peers.ts';
import { aDeployment, aPod, BUSYBOX, conditionOf, isReady, SERVE, SLEEP } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { HOSTILE_HOME_PODS } from '../../support/hostile/objects.ts';
import { longOnly } from '../../support/long.ts';

const NAMESPACE = 'guests';
const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const CLASS = 'abroad';
const onMilan = { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } };
const PATIENCE = 120;

let peers: Peers;
let tenant: string;

beforeAll(async () => {
  peers = await Peers.open();
  await peers.rome.remove(`${CLASSES}/${CLASS}`);
  await peers.rome.create(CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: CLASS },
    provisioner: STORAGE_PROVISIONER,
    volumeBindingMode: 'WaitForFirstConsumer',
    parameters: { foreignClass: 'shared' },
  });
  const sharing = {
    sharePercent: 100,
    runtimeClassName: 'hardened',
    storageClasses: ['shared'],
    limits: { storage: '1Gi' },
  };
  await peers.peer(NAMESPACE, { sharing });
  tenant = await peers.tenant(NAMESPACE);
}, 500_000);

afterAll(async () => {
  await peers?.close();
  await peers?.rome.remove(`${CLASSES}/${CLASS}`);
}, 200_000);

const remote = async (name: string): Promise<Pod | undefined> => peers.milan.pod(tenant, name);
const kubectl = async (command: string): Promise<string> =>
  peers.ask(`kubectl -n ${NAMESPACE} ${command}`, { timeoutMs: PATIENCE * 1000 });

test('pods that would harm their host get nowhere, and at home they say why in the words of the provider', async () => {
  const stage = { tenant, forced: tenant, other: 'default', bare: tenant };
  const rows = new Map(
    HOSTILE_HOME_PODS.map((row, index) => {
      const { spec, metadata } = (row.send.object?.(stage) ?? {}) as Partial<Pod>;
      return [`hostile-${index}`, { ...row, spec, metadata }] as const;
    })
      // What this provider forces is not refused, and home has no such class; other tests cover amounts.
      // Tolerations that nobody opens are taken off, and the pod runs without them.
      .filter(
        ([, { spec, reason, name }]) =>
          spec?.runtimeClassName === undefined && !reason.includes('quota') && !name.startsWith('tolerat'),
      ),
  );
  for (const [name, { spec, metadata }] of rows) {
    // The pod is bound to the node by hand, to test also what the home scheduler would not place.
    const pod = { metadata: { ...metadata, name }, spec: { ...spec, nodeName: 'milan' } };
    // If the home API server refuses it, the provider need not refuse it.
    await peers.rome
      .create(podPath(NAMESPACE), { apiVersion: 'v1', kind: 'Pod', ...pod })
      .catch(() => rows.delete(name));
  }
  expect(rows.size).toBeGreaterThan(15);
  // On a busy machine, the first answer may be that a webhook was late.
  for (const [name, { reason }] of rows) {
    await peers.untilPod(NAMESPACE, name, (home) => {
      const { status, message = '' } = conditionOf(home, CONDITION_OFFLOADED) ?? {};
      return status === 'False' && message.includes(reason);
    });
  }
  expect(await peers.milan.pods(tenant)).toEqual([]);
  await kubectl('delete pods --all --wait=false');
  await until('no hostile pod is left', async () => (await peers.rome.pods(NAMESPACE)).length === 0, {
    seconds: 60,
  });
});

test('every pod of a guest runs under the runtime class of the policy', async () => {
  await peers.runPod(NAMESPACE, aPod('plain', SLEEP, { spec: onMilan }), isReady);
  expect((await remote('plain'))?.spec?.runtimeClassName).toBe('hardened');
  expect(await kubectl('exec plain -- env')).toContain('LAB_RUNTIME=hardened');
  await kubectl('delete pod plain --wait=false');
});

test('a guest reaches its like and DNS, but no pod, node or API server of the cluster that lends', async () => {
  const here = { nodeSelector: {}, tolerations: [] };
  await peers.milan.create(podPath('default'), aPod('ours', SERVE, { spec: here }));
  try {
    const addressOf = async (namespace: string, name: string): Promise<string> =>
      until(`${name} has an address`, async () => (await peers.milan.pod(namespace, name))?.status?.podIP);
    const ours = await addressOf('default', 'ours');
    // Most engines let a pod reach the node that it is on: not the one of the API server.
    await peers.milan.patch('/api/v1/nodes/milan-1', { spec: { unschedulable: true } });
    for (const name of ['served', 'asks']) {
      await peers.runPod(NAMESPACE, aPod(name, SERVE, { spec: onMilan }), isReady);
    }
    const served = await addressOf(tenant, 'served');
    const wget = (address: string): string => `timeout 3 wget -qO- http://${address}:8080/`;
    const answers = async (command: string): Promise<boolean> => {
      const { stdout } = await peers.run(command);
      return stdout.includes('served');
    };
    const asked = (address: string): string => `kubectl -n ${NAMESPACE} exec asks -- ${wget(address)}`;
    const ask = (address: string): string =>
      `kubectl --context milan -n default exec ours -- ${wget(address)}`;
    // This proves that it answers at all; later tests say that it does not.
    await until('our own pod answers itself', async () => answers(ask(ours)));
    await until('its like answers a guest', async () => answers(asked(served)));
    await until('a guest answers us', async () => answers(ask(served)));
    await until('a guest is told names', async () =>
      (await kubectl('exec asks -- nslookup kubernetes.default.svc.cluster.local')).includes('Address'),
    );
    await until('our own pod does not answer a guest', async () => !(await answers(asked(ours))));
    await until('our own pod still answers itself', async () => answers(ask(ours)));
    const [first] = peers.lab.cluster('milan').nodes;
    const { hostname, port } = new URL(peers.lab.cluster('milan').server);
    for (const [what, place] of [
      ['a kubelet', `${first?.address} 10250`],
      ['the API server', `${hostname} ${port}`],
    ] as const) {
      const isOpen = async (who: string): Promise<boolean> => {
        const { code } = await peers.run(`kubectl ${who} -- timeout 5 nc -w 3 ${place} -e true`);
        return code === 0;
      };
      await until(`${what} answers our own pod`, async () => isOpen('--context milan -n default exec ours'));
      await until(
        `${what} does not answer a guest`,
        async () => !(await isOpen(`-n ${NAMESPACE} exec asks`)),
      );
    }
  } finally {
    await peers.milan.patch('/api/v1/nodes/milan-1', { spec: { unschedulable: null } });
    await peers.milan.remove(podPath('default', 'ours'), { gracePeriodSeconds: 0 });
    await kubectl('delete pod served asks --wait=false --ignore-not-found');
  }
});

test('a StatefulSet with a volume changes its node over there, and finds its data', async () => {
  await peers.rome.create(`${APPS}/statefulsets`, statefulSet('ledger'));
  const first = await peers.untilPod(NAMESPACE, 'ledger-0', isReady, PATIENCE);
  const node = (await remote('ledger-0'))?.spec?.nodeName ?? '';
  expect(node).toMatch(/^milan-/);
  const claim = await peers.rome.get(`/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims/data-ledger-0`);
  expect(claim?.status).toMatchObject({ phase: 'Bound', capacity: { storage: '10Mi' } });
  await peers.milan.patch(`/api/v1/nodes/${node}`, { spec: { unschedulable: true } });
  try {
    await kubectl('delete pod ledger-0');
    const second = await until(
      'ledger-0 runs again',
      async () => {
        const pod = await peers.rome.pod(NAMESPACE, 'ledger-0');
        return pod !== undefined && pod.metadata.uid !== first.metadata.uid && isReady(pod) && pod;
      },
      { seconds: PATIENCE, seen: async () => (await peers.rome.pod(NAMESPACE, 'ledger-0'))?.status },
    );
    expect(second.spec?.nodeName).toBe('milan');
    expect((await remote('ledger-0'))?.spec?.nodeName).not.toBe(node);
    const ledger = async (): Promise<string> => kubectl('exec ledger-0 -- cat /data/ledger');
    await until('the second life has written', async () => (await ledger()).split('\n').length > 2, {
      seen: ledger,
    });
    expect(await ledger()).toBe('started\nstarted\n');
  } finally {
    await peers.milan.patch(`/api/v1/nodes/${node}`, { spec: { unschedulable: null } });
  }
  await kubectl('delete statefulset ledger');
  await kubectl('delete pvc data-ledger-0');
  await until(
    'the claim over there is gone, too',
    async () => {
      const claims = await peers.milan.list(`/api/v1/namespaces/${tenant}/persistentvolumeclaims`);
      return claims.length === 0;
    },
    { seconds: 60 },
  );
});

/** test/e2e/kubelet/top.test.ts shows what an autoscaler reads, in each run. */
const testLong = longOnly('an autoscaler over two clusters', test);

testLong(
  'an autoscaler follows the load of pods over there, up and down',
  async () => {
    await peers.rome.create(`${APPS}/deployments`, busy());
    await peers.rome.create(
      `/apis/autoscaling/v2/namespaces/${NAMESPACE}/horizontalpodautoscalers`,
      autoscaler(),
    );
    const replicas = async (): Promise<number> => {
      const deployment = await peers.rome.get(`${APPS}/deployments/busy`);
      return Number(deployment?.status?.['readyReplicas'] ?? 0);
    };
    const seen = async (): Promise<string> => kubectl('describe hpa busy');
    await until('three pods share the load', async () => (await replicas()) === 3, { seconds: 180, seen });
    await until('kubectl top shows them', async () =>
      /^busy-\S+ +\d+m /m.test(await kubectl('top pods -l app=busy')),
    );
    // The load ends: each pod that is asked stops.
    const pods = await peers.rome.pods(NAMESPACE, 'app=busy');
    for (const { metadata } of pods) await kubectl(`exec ${metadata.name} -- touch /tmp/off`);
    await until('one pod is left', async () => (await replicas()) === 1, { seconds: 180, seen });
    await kubectl('delete hpa busy');
    await kubectl('delete deployment busy');
  },
  500_000,
);

const container = (script: string, more: object = {}): object => ({
  name: 'main',
  image: BUSYBOX,
  command: ['sh', '-c', script],
  resources: { requests: { cpu: '5m', memory: '8Mi' } },
  ...more,
});

const placement = {
  ...onMilan,
  tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
  terminationGracePeriodSeconds: 1,
};

const statefulSet = (name: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name },
  spec: {
    serviceName: name,
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        ...placement,
        containers: [
          container('echo started >> /data/ledger; exec sleep 3600', {
            volumeMounts: [{ name: 'data', mountPath: '/data' }],
          }),
        ],
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: {
          accessModes: ['ReadWriteMany'],
          storageClassName: CLASS,
          resources: { requests: { storage: '10Mi' } },
        },
      },
    ],
  },
});

/** Works until it is told to stop; each pod uses twice what the autoscaler is to keep. */
const busy = (): object =>
  aDeployment(
    'busy',
    1,
    'while [ ! -e /tmp/off ]; do for i in 1 2 3 4 5 6 7 8 9; do :; done; done; exec sleep 3600',
    {
      spec: placement,
      container: {
        resources: { requests: { cpu: '50m', memory: '8Mi' }, limits: { cpu: '100m', memory: '32Mi' } },
      },
    },
  );

const autoscaler = (): object => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'busy' },
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'busy' },
    minReplicas: 1,
    maxReplicas: 3,
    metrics: [
      {
        type: 'Resource',
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
      },
    ],
    behavior: {
      scaleUp: { stabilizationWindowSeconds: 0 },
      scaleDown: {
        stabilizationWindowSeconds: 0,
        policies: [{ type: 'Pods', value: 10, periodSeconds: 5 }],
      },
    },
  },
});
