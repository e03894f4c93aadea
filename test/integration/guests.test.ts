import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  GUESTS_CONFIGURATION,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '../../src/api/admission.ts';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
} from '../../src/api/names.ts';
import { isFinished } from '../../src/api/pod.ts';
import { namespaces, persistentVolumeClaims, pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { errorMessage } from '../../src/lib/errors.ts';
import { RESULT_GATE } from '../../src/hosting/guardian/result.ts';
import { parseMilli } from '../../src/lib/quantity.ts';
import { refusalOf } from '../../src/provider/pods/refusal.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { CUNNING, CUNNING_LATER, guestPod, NOWHERE, LET_IN } from '../support/hostile/guest-pods.ts';
import { printed } from '../support/labs/rights-cluster.ts';
import { SYSTEM, WebhookLab } from '../support/labs/webhook-lab.ts';

/** A peer with its own credential, two tenant namespaces and four CPUs over both, before a real API server. */

const TENANTS = ['rome-a', 'rome-b'] as const;
const FULL = /exceeded quota of peer rome over all its namespaces: requested /u;
const RUNTIME = 'hardened';

let lab: WebhookLab;
let peer: KubeClient;

beforeAll(async () => {
  lab = await WebhookLab.up([]);
  const quota = [
    '--quota',
    'cpu=100,memory=100Gi,pods=200,requests.storage=100Gi',
    '--storage-class',
    'lent',
  ];
  for (const namespace of TENANTS) {
    await lab.cluster.apply(
      await printed(tenantCommand, ['--peer', 'rome', '--namespace', namespace, ...quota]),
    );
    // As if lending had made it.
    await patchNamespace(namespace, { labels: { 'tributary.dev/tenancy': 'contract' } });
  }
  for (const [name, cpu] of [
    [RUNTIME, '10m'],
    ['other', '20m'],
  ] as const) {
    const body = {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name },
      handler: name,
      overhead: { podFixed: { cpu } },
    };
    await lab.cluster.cluster.api.call('POST', '/apis/node.k8s.io/v1/runtimeclasses', body);
  }
  const { token } = await lab.cluster.tokenOf({ namespace: 'tributary-peers', name: 'rome' });
  const { server, pki } = lab.cluster.cluster;
  peer = createClient({
    server: new URL(server),
    ca: pki.authority.cert,
    token: async () => Promise.resolve(token),
  });
  lab.grants.set('rome', { cpu: '4', memory: '64Gi', pods: '100', storage: '10Gi' });
  await lab.start();
  await eventually('quotas are counted and the webhook is asked', async () => {
    const made = await Promise.all(
      TENANTS.flatMap((namespace) => [
        make(namespace, 'probe', '1', { dryRun: true }).then(
          () => '',
          (error: unknown) => errorMessage(error),
        ),
        make(namespace, 'probe', '5', { dryRun: true }).then(
          () => '',
          (error: unknown) => errorMessage(error),
        ),
      ]),
    );
    return made.every((text, index) => (index % 2 === 0 ? text === '' : FULL.test(text)));
  });
});

afterAll(async () => {
  await peer?.close();
  await lab?.down();
});

async function patchNamespace(name: string, metadata: object): Promise<void> {
  await lab.admin.patch(namespaces, { name }, { type: 'merge', body: { metadata } });
}

interface Making {
  dryRun?: boolean;
  spec?: object;
}

/** Asks until the webhook has given its verdict, which may be a refusal. */
async function make(namespace: string, name: string, cpu: string, making: Making = {}): Promise<Pod> {
  return awaited(`a verdict on ${name}`, async () => ask(namespace, name, cpu, making), {
    isLater: wasNotAsked,
  });
}

async function ask(
  namespace: string,
  name: string,
  cpu: string,
  { dryRun = false, spec = {} }: Making = {},
): Promise<Pod> {
  const body = guestPod(namespace, name, cpu, spec);
  if (!dryRun) return peer.create(pods, body);
  const { token } = await lab.cluster.tokenOf({ namespace: 'tributary-peers', name: 'rome' });
  const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
  const answer = await lab.cluster.with(token)('POST', path, body);
  if (answer.status !== 201) throw new Error(answer.body);
  return JSON.parse(answer.body) as Pod;
}

const live = async (): Promise<Pod[]> => {
  const lists = await Promise.all(TENANTS.map(async (namespace) => lab.admin.list(pods, { namespace })));
  return lists.flatMap(({ items }) => items).filter((pod) => !isFinished(pod));
};
const milliOf = ({ spec }: Pod): bigint =>
  parseMilli(spec?.containers[0]?.resources?.requests?.['cpu'] ?? '0');
const usedMilli = async (): Promise<bigint> => (await live()).reduce((sum, pod) => sum + milliOf(pod), 0n);

const clear = async (): Promise<void> => {
  for (const namespace of TENANTS) {
    const path = `/api/v1/namespaces/${namespace}/pods?gracePeriodSeconds=0`;
    await lab.cluster.cluster.api.call('DELETE', path);
  }
  await eventually('no pods', async () => (await live()).length === 0);
};

/** The informer needs a moment to see what others did. */
const untilMade = async (namespace: string, name: string, cpu: string): Promise<void> =>
  eventually(`${name} is let in`, async () =>
    make(namespace, name, cpu).then(
      () => true,
      () => false,
    ),
  );

/** The API server waits three seconds for a webhook, and then refuses without its verdict. */
const wasNotAsked = (error: unknown): boolean => errorMessage(error).includes('failed calling webhook');

test('fifty at once over both namespaces never get more than the peer was granted', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, async (_, index) =>
      make(TENANTS[index % 2] ?? '', `storm-${index}`, index % 3 === 0 ? '700m' : '300m'),
    ),
  );
  const refused = results.flatMap((it) => (it.status === 'rejected' ? [refusalOf(it.reason)] : []));
  const used = await usedMilli();
  expect(used).toBeLessThanOrEqual(4000n);
  // Not one more would fit.
  expect(used).toBeGreaterThan(3700n);
  expect(refused.length).toBeGreaterThan(30);
  for (const refusal of refused) {
    expect(refusal).toMatchObject({ reason: 'ExceededQuota', message: expect.stringMatching(FULL) });
  }
  const kinds = new Set((await live()).map(({ metadata }) => metadata.namespace));
  expect(kinds).toEqual(new Set(TENANTS));
  await clear();
});

test('a finished pod makes room at once, a dry run takes none, a resize counts by its difference', async () => {
  await untilMade('rome-a', 'job', '4');
  await expect(make('rome-b', 'next', '1')).rejects.toThrow(FULL);
  await lab.admin.patch(
    pods,
    { namespace: 'rome-a', name: 'job' },
    { type: 'merge', body: { status: { phase: 'Succeeded' } } },
    { subresource: 'status' },
  );
  await untilMade('rome-b', 'next', '1');
  for (let index = 0; index < 5; index++) await make('rome-a', `dry-${index}`, '3', { dryRun: true });
  await expect(make('rome-a', 'dry', '4', { dryRun: true })).rejects.toThrow(FULL);
  const resized = async (cpu: string): Promise<unknown> =>
    peer.patch(
      pods,
      { namespace: 'rome-b', name: 'next' },
      {
        type: 'strategic',
        body: { spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }] } },
      },
      { subresource: 'resize' },
    );
  await expect(resized('5')).rejects.toThrow(/requested cpu=4, used cpu=1, granted cpu=4/u);
  await resized('3');
  await expect(make('rome-a', 'more', '2')).rejects.toThrow(/requested cpu=2, used cpu=3, granted cpu=4/u);
  await make('rome-a', 'last', '1');
  expect(await usedMilli()).toBe(4000n);
  await clear();
});

const claims = async (count: number, size: string): Promise<string[]> => {
  const made = await Promise.allSettled(
    Array.from({ length: count }, async (_, index) =>
      awaited(
        `a verdict on data-${index}`,
        async () =>
          peer.create(persistentVolumeClaims, {
            metadata: {
              namespace: TENANTS[index % 2] ?? '',
              name: `data-${index}`,
              labels: { [LABEL_MANAGED_BY]: 'milan' },
            },
            spec: {
              accessModes: ['ReadWriteOnce'],
              storageClassName: 'lent',
              resources: { requests: { storage: size } },
            },
          }),
        { isLater: wasNotAsked },
      ),
    ),
  );
  return made.flatMap((it) => (it.status === 'rejected' ? [errorMessage(it.reason)] : []));
};

test('storage is one sum over all namespaces, too, and what is deleted makes room', async () => {
  const refused = await claims(20, '3Gi');
  expect(refused).toHaveLength(17);
  for (const message of refused) {
    expect(message).toMatch(
      /exceeded quota of peer rome over all its namespaces: requested storage=3Gi, used/u,
    );
  }
  for (const namespace of TENANTS) {
    const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    await lab.cluster.cluster.api.call('DELETE', path);
  }
  await eventually('there is room', async () => (await claims(1, '10Gi')).length === 0);
});

test('a pod that would fill the store is refused, when it is made and when a container is put into it', async () => {
  const env = Array.from({ length: 30 }, (_, index) => ({ name: `V${index}`, value: 'x'.repeat(10_000) }));
  const container = { name: 'main', image: 'example/none:1', env, resources: { requests: { cpu: '1m' } } };
  await expect(make('rome-a', 'large', '1m', { spec: { containers: [container] } })).rejects.toThrow(
    /pods of peers are of 65536 bytes at most, this one is of 3/u,
  );
  await untilMade('rome-a', 'small', '1m');
  const debugged = async (name: string, more: object): Promise<unknown> =>
    peer.patch(
      pods,
      { namespace: 'rome-a', name: 'small' },
      {
        type: 'strategic',
        body: { spec: { ephemeralContainers: [{ name, image: 'example/none:1', ...more }] } },
      },
      { subresource: 'ephemeralcontainers' },
    );
  await debugged('look', {});
  await expect(debugged('fill', { env })).rejects.toThrow(/pods of peers are of 65536 bytes at most/u);
  await clear();
});

test('what the guardian makes anew counts as well; what bears a result does not', async () => {
  await untilMade('rome-a', 'all', '4');
  const { token } = await lab.cluster.tokenOf({ namespace: SYSTEM, name: 'tributary-cluster' });
  const made = async (name: string, annotations: object, spec: object): Promise<string> => {
    const containers = [{ name: 'main', image: 'example/none:1', resources: { requests: { cpu: '1' } } }];
    const { body } = await lab.cluster.with(token)('POST', '/api/v1/namespaces/rome-b/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { [LABEL_HOME_UID]: 'uid' }, annotations },
      spec: { containers, ...NOWHERE, ...spec },
    });
    return (JSON.parse(body) as { message?: string }).message ?? '';
  };
  expect(await made('anew', { [ANNOTATION_RECREATED]: '{"count":1}' }, {})).toMatch(FULL);
  const gates = { schedulingGates: [{ name: RESULT_GATE }] };
  expect(await made('result', { [ANNOTATION_RESULT]: 'true' }, gates)).toBe('');
  await clear();
});

test('whatever a pod says, it gets the runtime class, nodes and tolerations of the provider', async () => {
  const toleration = { key: 'guests', operator: 'Exists', effect: 'NoSchedule' };
  await patchNamespace('rome-a', {
    annotations: {
      'tributary.dev/runtime-class': RUNTIME,
      'tributary.dev/node-selector': 'pool=guests',
      'tributary.dev/tolerations': JSON.stringify([toleration]),
    },
  });
  const wishes = [
    {},
    { runtimeClassName: 'other', nodeSelector: { pool: 'own', disk: 'ssd' } },
    { runtimeClassName: RUNTIME, tolerations: [toleration] },
  ];
  await eventually('it is forced', async () =>
    make('rome-a', 'probe', '1', { dryRun: true }).then(
      ({ spec }) => spec?.runtimeClassName === RUNTIME,
      () => false,
    ),
  );
  for (const spec of wishes) {
    const made = await make('rome-a', 'forced', '1', { dryRun: true, spec });
    expect(made.spec).toMatchObject({
      runtimeClassName: RUNTIME,
      overhead: { cpu: '10m' },
      nodeSelector: { pool: 'guests' },
    });
    expect(made.spec?.tolerations?.filter(({ key }) => key === 'guests')).toEqual([toleration]);
  }
  await patchNamespace('rome-a', { annotations: { 'tributary.dev/tolerations': '[{' } });
  await eventually('what cannot be read is refused', async () =>
    make('rome-a', 'probe', '1', { dryRun: true }).then(
      () => false,
      (error: unknown) =>
        /tributary.dev\/tolerations of the tenant namespace is not a JSON list/u.test(errorMessage(error)),
    ),
  );
  await patchNamespace('rome-a', { annotations: { 'tributary.dev/tolerations': null } });
});

test('while nobody answers, peers are refused, unforced pods as well, and others are not held up', async () => {
  await lab.stop();
  const refused = await ask('rome-b', 'unseen', '1').catch((error: unknown) => error);
  expect(errorMessage(refused)).toMatch(/failed calling webhook .{1,2}quota\.guests\.tributary\.dev/u);
  // It ends by itself, but may take long: home says so, and asks again.
  expect(refusalOf(refused)).toMatchObject({ reason: 'Forbidden' });
  await expect(ask('rome-a', 'unforced', '1')).rejects.toThrow(/runtime class of the provider/u);
  await lab.admin.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'rome-b', name: 'own', labels: { [LABEL_HOME_UID]: 'uid' } },
    spec: {
      containers: [{ name: 'main', image: 'example/none:1', resources: { requests: { cpu: '3' } } }],
    },
  });
  await lab.start();
  await untilMade('rome-b', 'seen', '1');
  // What came meanwhile counts.
  await expect(make('rome-b', 'more', '100m')).rejects.toThrow(FULL);
  await clear();
});

test('a pod runs no image that others have pulled, and tolerates what the provider opens', async () => {
  const said = { 'tributary.dev/image-pull-policy': 'Always', 'tributary.dev/own-tolerations': 'theirs' };
  const unsaid = { 'tributary.dev/runtime-class': null, 'tributary.dev/node-selector': null };
  await patchNamespace('rome-a', { annotations: { ...said, ...unsaid } });
  await eventually('it is forced', async () =>
    make('rome-a', 'probe', '1m', { dryRun: true, spec: CUNNING }).then(
      (made) => made.spec?.containers[0]?.imagePullPolicy === 'Always',
      () => false,
    ),
  );
  const made = await make('rome-a', 'pulls', '1m', { spec: { ...CUNNING, ...NOWHERE } });
  expect(made.spec).toMatchObject(LET_IN);
  const tolerations = made.spec?.tolerations ?? [];
  const keys = tolerations.map(({ key = '' }) => key).filter((key) => !key.includes('kubernetes.io'));
  expect(keys).toEqual(['theirs']);
  const ref = { namespace: 'rome-a', name: 'pulls' };
  const spec = { tolerations: [...tolerations, { key: 'other' }], activeDeadlineSeconds: 3600 };
  // The rest of such a change goes through.
  const changed = await peer.patch(pods, ref, { type: 'merge', body: { spec } });
  expect(changed.spec).toMatchObject({ tolerations, activeDeadlineSeconds: 3600 });
  const debugged = await peer.patch(
    pods,
    ref,
    { type: 'strategic', body: { spec: { ephemeralContainers: [CUNNING_LATER] } } },
    { subresource: 'ephemeralcontainers' },
  );
  expect(debugged.spec?.ephemeralContainers).toMatchObject([{ imagePullPolicy: 'Always' }]);
  await clear();
});

test('without tenants nothing is asked; who changes or deletes the configurations finds them as they were', async () => {
  const ref = { name: GUESTS_CONFIGURATION };
  const hooks = async (): Promise<number[]> =>
    Promise.all(
      [mutatingWebhookConfigurations, validatingWebhookConfigurations].map(
        async (type) => (await lab.admin.get(type, ref).catch(() => undefined))?.webhooks?.length ?? 0,
      ),
    );
  expect(await hooks()).toEqual([2, 5]);
  await lab.admin.delete(validatingWebhookConfigurations, ref);
  await lab.admin.patch(mutatingWebhookConfigurations, ref, { type: 'merge', body: { webhooks: [] } });
  await eventually('both are back', async () => (await hooks()).join() === '2,5');
  const made = await lab.admin.get(validatingWebhookConfigurations, ref);
  expect(made.metadata.ownerReferences).toMatchObject([{ kind: 'Namespace', name: 'tributary-system' }]);
  for (const namespace of TENANTS)
    await patchNamespace(namespace, { labels: { 'tributary.dev/peer': null } });
  await eventually('nothing is asked', async () => (await hooks()).join() === '0,0');
});
