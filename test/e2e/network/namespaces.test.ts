import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { ABROAD, container, deployment, labels, SERVE, spread, Stretched } from './support/namespaces.ts';
import { CITIES, PROVIDERS } from './support/network.ts';
import { APART, leaveZones, occupyZones } from './support/zones.ts';
import { until } from '../../support/e2e/until.ts';

const NS = 'stretch';
const NODES = ['milan', 'rome-1', 'turin'];
const TIMETABLES = '/apis/times.example.com/v1/namespaces';

let world: Stretched;

beforeAll(async () => {
  world = await Stretched.open();
  // Kubernetes counts objects of a new kind only some time after the kind was made.
  for (const city of CITIES) await world.applyFile(city, 'default', 'timetable-kind.yaml');
  await world.stretch(NS, {
    naming: 'Same',
    releaseAfterSeconds: 3,
    reflection: [
      {
        group: 'times.example.com',
        resource: 'timetables',
        version: 'v1',
        policy: 'All',
        drop: ['spec.keeper'],
      },
    ],
  });
  await world.untilReady(NS);
}, 500_000);

afterAll(async () => {
  await world?.ask(`kubectl delete namespace ${NS} afar taken --ignore-not-found --timeout=100s`, 110);
  await world?.ask('kubectl -n default delete pod outage --ignore-not-found --now');
  await world?.ask('kubectl --context turin delete namespace taken --ignore-not-found --timeout=100s', 110);
  await world?.ask(
    'kubectl --context turin -n default delete pod/vault service/vault --ignore-not-found --now',
  );
  await world?.close();
}, 300_000);

test('a peering that named no namespace has this one in both clusters, under its own name', async () => {
  for (const city of PROVIDERS) {
    expect(await world.cluster(NS, city)).toMatchObject({
      phase: 'Ready',
      remoteNamespace: NS,
      virtualNodes: [city],
      clusterName: city,
    });
    expect(await world.exists(city, `/api/v1/namespaces/${NS}`)).toBe(true);
  }
});

test('a Deployment spreads over home and two foreign clusters by plain constraints, behind one Service and its node port', async () => {
  await world.apply('rome', NS, [
    deployment('web', 3, {
      topologySpreadConstraints: spread(labels('web')),
      containers: [container(SERVE, { ports: [{ containerPort: 8080 }] })],
    }),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { type: 'NodePort', selector: labels('web'), ports: [{ port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'client', labels: { 'tributary.dev/offload': 'false' } },
      spec: { terminationGracePeriodSeconds: 1, containers: [container('sleep 3600')] },
    },
  ]);
  await world.ask(`kubectl -n ${NS} rollout status deployment/web --timeout=80s`);
  expect(await world.places(NS, 'app=web')).toEqual(NODES);
  await world.untilPod(NS, 'client', 'runs at home', ({ status }) => status?.phase === 'Running');
  const names = (await world.pods(NS, 'app=web')).map(({ metadata }) => metadata.name);
  await world.untilAllAnswer(NS, 'client', 'web', names);
  const port = await world.ask(`kubectl -n ${NS} get service web -o jsonpath='{.spec.ports[0].nodePort}'`);
  for (const city of PROVIDERS) {
    const address = await world.ask(
      `kubectl get node ${city} -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}'`,
    );
    await world.untilAllAnswer(NS, 'client', `${address}:${port}`, names);
  }
});

test('a Service without a selector, whose slices somebody writes, is all three from each of them', async () => {
  const pods = await world.pods(NS, 'app=web');
  const slices = pods.map(({ metadata, status }) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `byhand-${metadata.name}`, labels: { 'kubernetes.io/service-name': 'byhand' } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: [status?.podIP ?? ''] }],
  }));
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'byhand' } };
  await world.apply('rome', NS, [{ ...service, spec: { ports: [{ port: 80 }] } }, ...slices]);
  const names = pods.map(({ metadata }) => metadata.name);
  for (const from of ['client', ...names]) await world.untilAllAnswer(NS, from, 'byhand', names);
});

test('Job, CronJob, DaemonSet, bare pod and StatefulSet do as anywhere', async () => {
  const work = (script: string): object => ({
    template: {
      metadata: { labels: labels('job') },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 1,
        topologySpreadConstraints: spread(labels('job')),
        containers: [container(script)],
      },
    },
  });
  const crew = { ...labels('crew') };
  await world.apply('rome', NS, [
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'sum' },
      spec: {
        completions: 3,
        parallelism: 3,
        completionMode: 'Indexed',
        ...work('echo part $JOB_COMPLETION_INDEX'),
      },
    },
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'tick' },
      spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: work('date') } },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'watchman' },
      spec: {
        selector: { matchLabels: labels('watchman') },
        template: {
          metadata: { labels: labels('watchman') },
          spec: { terminationGracePeriodSeconds: 1, containers: [container('sleep 3600')] },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bare' },
      spec: { terminationGracePeriodSeconds: 1, affinity: ABROAD, containers: [container('sleep 3600')] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'crew' },
      spec: { clusterIP: 'None', selector: crew, ports: [{ port: 8080 }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'crew' },
      spec: {
        serviceName: 'crew',
        replicas: 3,
        podManagementPolicy: 'Parallel',
        selector: { matchLabels: crew },
        template: {
          metadata: { labels: crew },
          spec: {
            terminationGracePeriodSeconds: 1,
            topologySpreadConstraints: spread(crew),
            containers: [container(SERVE)],
          },
        },
      },
    },
  ]);
  await world.ask(`kubectl -n ${NS} wait --for=condition=Complete job/sum --timeout=80s`);
  const logs = await world.ask(`kubectl -n ${NS} logs -l app=job --tail=5`);
  expect(logs.trim().split('\n').toSorted()).toEqual(['part 0', 'part 1', 'part 2']);
  await world.ask(`kubectl -n ${NS} create job tock --from=cronjob/tick`);
  await world.ask(`kubectl -n ${NS} wait --for=condition=Complete job/tock --timeout=80s`);
  await world.ask(`kubectl -n ${NS} rollout status daemonset/watchman --timeout=60s`);
  expect(await world.places(NS, 'app=watchman')).toEqual(['rome-1']);
  const bare = await world.untilPod(NS, 'bare', 'runs', ({ status }) => status?.phase === 'Running');
  expect(PROVIDERS).toContain(bare.spec?.nodeName);
  await world.ask(`kubectl -n ${NS} rollout status statefulset/crew --timeout=80s`);
  expect(await world.places(NS, 'app=crew')).toEqual(NODES);
  for (const number of [0, 1, 2]) {
    await until(`crew-${number} answers by its own name`, async () => {
      const heard = await world.ask(
        `kubectl -n ${NS} exec client -- timeout 3 wget -qO- http://crew-${number}.crew:8080/`,
      );
      return heard.trim() === `crew-${number}`;
    });
  }
});

test('a pod that the foreign cluster cannot place is released and runs at home', async () => {
  await occupyZones(world, NS);
  await world.apply('rome', NS, [deployment('apart', 1, APART)]);
  await until(
    'the owned pod runs at home',
    async () => (await world.places(NS, 'app=apart')).join() === 'rome-1',
    { seconds: 90, seen: async () => (await world.offloading(NS))?.status },
  );
  await world.apply('rome', NS, [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'lone' }, spec: APART }]);
  await until(
    'an event tells that the bare pod is released',
    async () =>
      (await world.ask(`kubectl -n ${NS} get events --field-selector reason=Released`)).includes('pod/lone'),
    { seconds: 90, seen: async () => (await world.offloading(NS))?.status },
  );
  await world.untilPod(
    NS,
    'lone',
    'runs at home',
    ({ spec, status }) => spec?.nodeName === 'rome-1' && status?.phase === 'Running',
  );
  expect((await world.offloading(NS))?.status?.heldOff).toEqual(
    expect.arrayContaining([expect.objectContaining({ owner: 'Pod/lone' })]),
  );
  await leaveZones(world, NS);
});

test('a referenced ConfigMap changes inside the remote container; a Secret that nobody names stays home', async () => {
  const words = (text: string): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'words' },
    data: { text },
  });
  await world.apply('rome', NS, [
    words('before'),
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'ledger' }, stringData: { total: '42' } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'reader' },
      spec: {
        terminationGracePeriodSeconds: 1,
        nodeSelector: { 'tributary.dev/virtual-node': 'milan' },
        containers: [container('sleep 3600', { volumeMounts: [{ name: 'words', mountPath: '/words' }] })],
        volumes: [{ name: 'words', configMap: { name: 'words' } }],
      },
    },
  ]);
  await world.untilPod(NS, 'reader', 'runs in milan', ({ status }) => status?.phase === 'Running');
  const read = async (): Promise<string> => world.ask(`kubectl -n ${NS} exec reader -- cat /words/text`);
  expect(await read()).toBe('before');
  await world.apply('rome', NS, [words('after')]);
  await until('the container sees it', async () => (await read()) === 'after', { seconds: 120 });
  for (const city of PROVIDERS) {
    expect(await world.exists(city, `/api/v1/namespaces/${NS}/secrets/ledger`)).toBe(false);
  }
});

test('a custom resource travels by configuration alone, without the field that is dropped', async () => {
  await world.applyFile('rome', NS, 'timetable.yaml');
  for (const city of PROVIDERS) {
    const found = await until(
      `the object in ${city}`,
      async () => world.network.api(city).get<{ spec: unknown }>(`${TIMETABLES}/${NS}/timetables/week`),
      { seconds: 90 },
    );
    expect(found.spec).toEqual({ opens: '08:30', notice: 'closed on Sundays' });
  }
});

test('a name that somebody else has over there: that cluster fails with the cause, the other is used', async () => {
  await world.ask('kubectl --context turin create namespace taken');
  await world.stretch('taken', { naming: 'Same' });
  await until(
    'turin is refused',
    async () => (await world.cluster('taken', 'turin'))?.reason === 'NameTaken',
    { seconds: 60, seen: async () => (await world.offloading('taken'))?.status },
  );
  await until('milan is used', async () => (await world.cluster('taken', 'milan'))?.phase === 'Ready', {
    seconds: 60,
  });
  await world.apply('rome', 'taken', [
    deployment('web', 2, { affinity: ABROAD, containers: [container('sleep 3600')] }),
  ]);
  await world.ask('kubectl -n taken rollout status deployment/web --timeout=80s');
  expect(await world.places('taken', 'app=web')).not.toContain('turin');
  await world.ask('kubectl delete namespace taken --timeout=100s', 110);
  await until(
    'milan has forgotten it',
    async () => !(await world.exists('milan', '/api/v1/namespaces/taken')),
    {
      seconds: 60,
    },
  );
  expect(await world.exists('turin', '/api/v1/namespaces/taken')).toBe(true);
});

test('a Service of turin is used in rome like one of its own', async () => {
  await world.apply('turin', 'default', [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'vault', labels: labels('vault') },
      spec: { terminationGracePeriodSeconds: 1, containers: [container(SERVE)] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'vault', labels: { lent: 'yes' } },
      spec: { selector: labels('vault'), ports: [{ port: 80, targetPort: 8080 }] },
    },
  ]);
  const accepted = {
    services: [{ namespace: 'default', name: 'vault', homeNamespace: NS, homeName: 'safe' }],
  };
  await world.ask(
    `kubectl patch acceptancepolicy test --type merge -p '${JSON.stringify({ spec: accepted })}'`,
  );
  const heard = async (from: string): Promise<string> =>
    world.ask(`kubectl -n ${NS} exec ${from} -- timeout 3 wget -qO- http://safe/`);
  await until('it answers at home', async () => (await heard('client')).trim() === 'vault', {
    seconds: 90,
    seen: async () => world.ask('kubectl get advertisements -o yaml'),
  });
});

test('while the webhook is away, only namespaces that want to be Remote wait', async () => {
  await world.stretch('afar', { podStrategy: 'Remote' });
  await world.untilReady('afar');
  const system = 'kubectl -n tributary-system';
  await world.ask(`${system} scale deployment tributary-cluster --replicas 0`);
  // kubectl wait fails when they are gone before it looks.
  await until('the webhook has no pod', async () => {
    const selector = 'app.kubernetes.io/instance=tributary-cluster';
    return (await world.pods('tributary-system', selector)).length === 0;
  });
  const run = (namespace: string): string =>
    `kubectl -n ${namespace} run outage --image lab.local/busybox:1 --restart=Never -- sleep 3600`;
  await world.ask(run('default'));
  await world.ask(run(NS));
  await expect(world.ask(run('afar'))).rejects.toThrow(/remote\.offloading\.tributary\.dev/);
  for (const namespace of ['default', NS]) {
    const pod = await world.untilPod(
      namespace,
      'outage',
      'runs',
      ({ status }) => status?.phase === 'Running',
    );
    expect(pod.spec?.nodeName).toBe('rome-1');
  }
  await world.ask(`${system} scale deployment tributary-cluster --replicas 1`);
  await world.ask(`${system} rollout status deployment/tributary-cluster --timeout=90s`, 100);
  await until(
    'pods are let in again',
    async () => {
      await world.ask(run('afar'));
      return true;
    },
    { seconds: 60 },
  );
  const pod = await world.untilPod('afar', 'outage', 'runs', ({ status }) => status?.phase === 'Running');
  expect(PROVIDERS).toContain(pod.spec?.nodeName);
  await world.ask('kubectl delete namespace afar --timeout=100s', 110);
});

test('taken back with pods running: they come home, and nothing is left over there', async () => {
  expect(PROVIDERS).toContain((await world.untilPod(NS, 'bare', 'is there', () => true)).spec?.nodeName);
  await world.ask(`kubectl -n ${NS} delete namespaceoffloading offloading --timeout=150s`, 160);
  await world.untilPod(
    NS,
    'bare',
    'runs at home',
    ({ spec, status }) => spec?.nodeName === 'rome-1' && status?.phase === 'Running',
  );
  await world.ask(`kubectl -n ${NS} rollout status statefulset/crew --timeout=80s`);
  await until('no pod is abroad', async () =>
    (await world.pods(NS)).every(({ spec }) => !PROVIDERS.some((city) => city === spec?.nodeName)),
  );
  for (const city of PROVIDERS) {
    await until(
      `${city} has forgotten the namespace`,
      async () => !(await world.exists(city, `/api/v1/namespaces/${NS}`)),
      { seconds: 60 },
    );
  }
});
