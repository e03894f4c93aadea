import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';

import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Condition, Node, Pod } from '../../../src/api/wire.ts';
import { aPod, isReady, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

const SECRET = '/api/v1/namespaces/tributary-system/secrets/foreign-kubeconfig';
const ACCOUNT = '/api/v1/namespaces/tributary-peers/serviceaccounts';
/** Scheduler and kubelets of a cluster whose API server was away wait up to a minute between their tries (client-go, Reflector). */
const FOREIGN_BACKOFF_S = 150;

let world: World;
let pod: Pod;

beforeAll(async () => {
  world = await World.open('outage');
  pod = await world.runPod(aPod('untouched'));
});

afterEach(async () => {
  await untilNode('True', /./);
});

afterAll(async () => world.close());

/** Waits for the Node's Ready condition; the VirtualNode gives the same cause. */
async function untilNode(status: string, message: RegExp, seconds = 90): Promise<void> {
  const ready = async (): Promise<unknown> =>
    (await world.home.get<Node>('/api/v1/nodes/foreign'))?.status?.conditions?.find(
      ({ type }) => type === 'Ready',
    );
  await until(
    `node foreign has Ready ${status} with ${message}`,
    async () => {
      const condition = (await ready()) as { status?: string; message?: string };
      return condition.status === status && message.test(condition.message ?? '');
    },
    { seconds, seen: ready },
  );
}

async function conditionOfVirtualNode(type: string): Promise<Condition | undefined> {
  const node = await world.home.get<VirtualNode>('/apis/tributary.dev/v1alpha1/virtualnodes/foreign');
  return node?.status?.conditions?.find((condition) => condition.type === type);
}

/** The status is written after the Node. */
async function untilFalse(type: string, reason: string): Promise<void> {
  await until(
    `${type} is False: ${reason}`,
    async () => {
      const condition = await conditionOfVirtualNode(type);
      return condition?.status === 'False' && condition.reason === reason;
    },
    { seen: async () => conditionOfVirtualNode(type) },
  );
}

/** The same container as before, and the agent says so. */
async function expectUntouched(): Promise<void> {
  const now = await world.untilPod('untouched', 'is Ready again', isReady);
  expect(now.metadata.uid).toBe(pod.metadata.uid);
  expect(statusOf(now)).toMatchObject({ containerID: statusOf(pod)?.containerID, restartCount: 0 });
}

test('a foreign API server that has died: the node says so, its pods go on', async () => {
  const server = world.lab.cluster('foreign').daemon('kube-apiserver');
  await server.kill();
  try {
    await untilNode('False', /ECONNREFUSED|refused|answer/i);
    await untilFalse('ForeignClusterReachable', 'ForeignClusterUnreachable');
  } finally {
    server.start();
  }
  await untilNode('True', /./);
  await expectUntouched();
  await world.runPod(aPod('after-death'), FOREIGN_BACKOFF_S);
});

test('a foreign API server that hangs', async () => {
  const server = world.lab.cluster('foreign').daemon('kube-apiserver');
  server.stop();
  try {
    await untilNode('False', /has not answered/);
  } finally {
    server.cont();
  }
  await untilNode('True', /./);
  await expectUntouched();
  await world.runPod(aPod('after-hanging'), FOREIGN_BACKOFF_S);
});

test('a kubeconfig that is none', async () => {
  const { data } = await world.home.call('GET', SECRET);
  await world.home.patch(SECRET, { data: { kubeconfig: Buffer.from('nonsense: [').toString('base64') } });
  try {
    await untilNode('False', /kubeconfig/i);
    await untilFalse('CredentialsValid', 'KubeconfigInvalid');
  } finally {
    await world.home.patch(SECRET, { data });
  }
  await untilNode('True', /./);
  await expectUntouched();
});

test('a credential that the provider has revoked, and a new one', async () => {
  const account = await world.foreign.call('GET', `${ACCOUNT}/home`);
  await world.foreign.remove(`${ACCOUNT}/home`);
  try {
    await untilNode('False', /the credential is wrong or has expired/);
    await untilFalse('CredentialsValid', 'CredentialsRejected');
  } finally {
    const { name, namespace, labels } = account.metadata;
    await world.foreign.create(ACCOUNT, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace, labels },
      automountServiceAccountToken: false,
    });
    const { status } = await world.foreign.create<{ status: { token: string } }>(`${ACCOUNT}/home/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 86_400 },
    });
    const secret = await world.home.call('GET', SECRET);
    const before = Buffer.from(secret.data?.['kubeconfig'] ?? '', 'base64').toString();
    const renewed = before.replace(/token: .*/, `token: ${status.token}`);
    await world.home.patch(SECRET, { data: { kubeconfig: Buffer.from(renewed).toString('base64') } });
  }
  await untilNode('True', /./);
  await expectUntouched();
  await world.runPod(aPod('after-renewal'));
});
