import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { corePath, podPath } from '../../support/e2e/api.ts';
import { aPod, environment, isReady, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

const NAMESPACE = 'references';

let world: World;

beforeAll(async () => {
  world = await World.open(NAMESPACE);
  await Promise.all([
    configMap('settings', { colour: 'red', size: 'large' }),
    secret('password', { word: 'open sesame' }),
    secret('bystander', { word: 'nobody asked' }),
  ]);
});

afterAll(async () => world.close());

const configMap = async (name: string, data: Record<string, string>): Promise<unknown> =>
  world.home.create(corePath(NAMESPACE, 'configmaps'), {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data,
  });

const secret = async (name: string, stringData: Record<string, string>): Promise<unknown> =>
  world.home.create(corePath(NAMESPACE, 'secrets'), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData,
  });

const inside = async (pod: string, script: string): Promise<string> =>
  world.ask(['exec', pod, '--', 'sh', '-c', script]);

test('volumes of ConfigMaps and Secrets, and what changes in them, arrive in the container', async () => {
  const volumes = [
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'password', secret: { secretName: 'password' } },
  ];
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  await world.runPod(aPod('reader', undefined, { spec: { volumes }, container: { volumeMounts } }));
  expect(await inside('reader', 'cat /settings/colour /settings/size /password/word')).toBe(
    'redlargeopen sesame',
  );
  await world.home.patch(corePath(NAMESPACE, 'configmaps', 'settings'), { data: { colour: 'blue' } });
  await world.home.patch(corePath(NAMESPACE, 'secrets', 'password'), { stringData: { word: 'changed' } });
  // The kubelet over there looks at them again every half minute.
  await until(
    'both changes inside the container',
    async () => (await inside('reader', 'cat /settings/colour /password/word')) === 'bluechanged',
    { seconds: 100 },
  );
});

test('a Secret that no pod names never leaves', async () => {
  const names = (await world.foreign.list(corePath(world.tenant, 'secrets'))).map(
    ({ metadata }) => metadata.name,
  );
  expect(names).toContain('password');
  expect(names).not.toContain('bystander');
});

test('environment from keys, whole objects, and the downward API', async () => {
  const field = (fieldPath: string): object => ({ fieldRef: { fieldPath } });
  const pod = aPod('environed', undefined, {
    labels: { tier: 'gold' },
    container: {
      env: environment({
        PLAIN: 'plain',
        COMBINED: '$(PLAIN) and simple',
        COLOUR: { configMapKeyRef: { name: 'settings', key: 'size' } },
        WORD: { secretKeyRef: { name: 'password', key: 'word' } },
        MAYBE: { configMapKeyRef: { name: 'no-such-thing', key: 'x', optional: true } },
        NAME: field('metadata.name'),
        WHERE: field('metadata.namespace'),
        UID_HERE: field('metadata.uid'),
        ON: field('spec.nodeName'),
        TIER: field("metadata.labels['tier']"),
        REQUEST: { resourceFieldRef: { resource: 'requests.memory' } },
      }),
      envFrom: [
        { prefix: 'S_', configMapRef: { name: 'settings' } },
        { secretRef: { name: 'nothing', optional: true } },
      ],
    },
  });
  const { metadata } = await world.runPod(pod);
  const lines = (await inside('environed', 'env')).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      'PLAIN=plain',
      'COMBINED=plain and simple',
      'COLOUR=large',
      'NAME=environed',
      `WHERE=${NAMESPACE}`,
      `UID_HERE=${metadata.uid}`,
      'ON=foreign',
      'TIER=gold',
      `REQUEST=${8 * 1024 * 1024}`,
      'S_size=large',
    ]),
  );
  expect(lines.some((line) => line.startsWith('MAYBE='))).toBe(false);
  expect(await inside('environed', 'hostname')).toBe('environed\n');
});

test('files of the downward API speak of the home pod', async () => {
  const items = ['name', 'namespace', 'uid'].map((path) => ({
    path,
    fieldRef: { fieldPath: `metadata.${path}` },
  }));
  const pod = await world.runPod(
    aPod('selfaware', undefined, {
      spec: { volumes: [{ name: 'self', downwardAPI: { items } }] },
      container: { volumeMounts: [{ name: 'self', mountPath: '/self' }] },
    }),
  );
  expect(await inside('selfaware', 'cat /self/name; echo; cat /self/namespace; echo; cat /self/uid')).toBe(
    `selfaware\n${NAMESPACE}\n${pod.metadata.uid}`,
  );
});

test('a pod waits for a mandatory object, says so, and starts when it comes', async () => {
  const env = environment({ LATE: { configMapKeyRef: { name: 'late', key: 'x' } } });
  await world.home.create(podPath(NAMESPACE), aPod('patient', undefined, { container: { env } }));
  const waiting = await world.untilPod(
    'patient',
    'says what it waits for',
    (pod) => statusOf(pod)?.state?.waiting?.reason === 'CreateContainerConfigError',
  );
  expect(statusOf(waiting)?.state?.waiting?.message).toBe('configmap "late" not found');
  await until('an event that names the object', async () =>
    (await world.events('patient')).some((line) => line === 'MissingReference: configmap "late" not found'),
  );
  await configMap('late', { x: 'here' });
  await world.untilPod('patient', 'Ready', isReady);
  expect(await inside('patient', 'echo $LATE')).toBe('here\n');
});

test('a key that is missing is told by the kubelet over there', async () => {
  const env = environment({ WRONG: { configMapKeyRef: { name: 'settings', key: 'no-such-key' } } });
  await world.home.create(podPath(NAMESPACE), aPod('keyless', undefined, { container: { env } }));
  const pod = await world.untilPod(
    'keyless',
    'has an error',
    (one) => statusOf(one)?.state?.waiting?.reason === 'CreateContainerConfigError',
  );
  expect(statusOf(pod)?.state?.waiting?.message).toContain("couldn't find key no-such-key in ConfigMap");
});
