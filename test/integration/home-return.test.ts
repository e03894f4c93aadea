import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  ANNOTATION_WHEN_LOST,
  HOME_LEASE,
  LABEL_HOME_UID,
} from '../../src/api/names.ts';
import { leases, pods } from '../../src/api/resources.ts';
import type { Pod, PodSpec, PodStatus } from '../../src/api/wire.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts';

/**
 * The home shows that it is present, goes away, and comes back to the pods that a guardian, played by the test, has
 * recreated.
 */

const LEASE = { namespace: 'tenant', name: HOME_LEASE };
/** As short as the provider's policy permits, so that the home soon counts as away. */
const DURATION_S = 10;
const GATE = { schedulingGates: [{ name: 'tributary.dev/result' }] };

let lab: AgentLab;
/** Between the agent and its own API server. */
let way: TcpProxy;
let folder: string;
let kubeconfig: string;

beforeAll(async () => {
  lab = await AgentLab.up();
  const server = new URL(lab.homeCluster.server);
  way = await startTcpProxy(Number(server.port));
  folder = mkdtempSync(join(tmpdir(), 'tributary-home-return-'));
  kubeconfig = join(folder, 'kubeconfig');
  const direct = readFileSync(lab.homeCluster.kubeconfig, 'utf8');
  writeFileSync(kubeconfig, direct.replace(lab.homeCluster.server, `https://127.0.0.1:${way.port}`));
  await lab.foreign.create(leases, { metadata: LEASE, spec: { leaseDurationSeconds: DURATION_S } });
  await lab.start({ kubeconfig });
  await lab.ready();
});
afterAll(async () => {
  await lab?.down();
  await way?.close();
  rmSync(folder, { recursive: true, force: true });
});

const read = async (side: 'home' | 'foreign', name: string): Promise<Pod> =>
  lab[side].get(pods, { namespace: side === 'home' ? 'shop' : 'tenant', name });
const phase = async (side: 'home' | 'foreign', name: string): Promise<string | undefined> =>
  (await read(side, name)).status?.phase;
const renewedAt = async (): Promise<number> =>
  Date.parse(String((await lab.foreign.get(leases, LEASE)).spec?.renewTime));

async function run(name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const containers = [{ name: 'main', image: 'web:1' }];
  await lab.home.create(pods, {
    metadata: { name, namespace: 'shop' },
    spec: { nodeName: NODE, terminationGracePeriodSeconds: 1, containers, ...spec },
  });
  await eventually(`${name} runs`, async () => (await phase('home', name)) === 'Running');
  return read('home', name);
}

async function take(name: string): Promise<Pod> {
  const pod = await read('foreign', name);
  await lab.foreign.delete(pods, { namespace: 'tenant', name }, { gracePeriodSeconds: 0 });
  return pod;
}

/** As the guardian makes it; its status is the kubelet's, or the one that is given. */
async function put(
  { metadata, spec }: Pod,
  annotations: Record<string, string>,
  status?: PodStatus,
): Promise<void> {
  const {
    nodeName: _node,
    priority: _priority,
    serviceAccount: _account,
    ...rest
  } = spec ?? { containers: [] };
  const { name, namespace = '', labels = {} } = metadata;
  const made = await lab.foreign.create(pods, {
    metadata: { name, namespace, labels, annotations: { ...metadata.annotations, ...annotations } },
    spec: { ...rest, ...(status && GATE) },
  });
  if (status === undefined) {
    await eventually(`${name} runs again`, async () => (await phase('foreign', name)) === 'Running');
  } else await lab.foreign.replace(pods, { ...made, status }, { subresource: 'status' });
}

const RECREATED = { [ANNOTATION_RECREATED]: '{"count":2,"restarts":{"main":5}}' };
const restarts = async (name: string): Promise<number | undefined> =>
  (await read('home', name)).status?.containerStatuses?.[0]?.restartCount;

test('the Lease is renewed while the agent runs', async () => {
  await eventually('found', async () => (await renewedAt()) > 0);
  const first = await renewedAt();
  await eventually('renewed', async () => (await renewedAt()) > first);
  const { spec } = await lab.foreign.get(leases, LEASE);
  expect(spec).toMatchObject({
    holderIdentity: expect.stringMatching(new RegExp(`^${NODE} [0-9a-f-]{8}\\.[0-9]+$`, 'u')),
    leaseDurationSeconds: DURATION_S,
  });
});

test('what was made anew while home was away is taken for what it was', async () => {
  const before = [await run('web'), await run('late'), await run('work', { restartPolicy: 'Never' })];
  expect((await read('foreign', 'web')).metadata.annotations?.[ANNOTATION_WHEN_LOST]).toBe('WhenFenced');
  await lab.kill();
  const last = await renewedAt();
  const late = await take('late');
  await put(await take('web'), RECREATED);
  const ended = { name: 'main', image: 'web:1', imageID: '', ready: false, restartCount: 0 };
  await put(
    await take('work'),
    { [ANNOTATION_RESULT]: 'true' },
    {
      phase: 'Succeeded',
      containerStatuses: [{ ...ended, state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
    },
  );
  await eventually('lapsed', () => Date.now() - last > DURATION_S * 1000 + 1000);
  expect(await renewedAt()).toBe(last);
  const made = [await read('foreign', 'web'), await read('foreign', 'work')];

  await lab.start({ kubeconfig });
  await eventually('home shows itself', async () => (await renewedAt()) > last);
  await put(late, RECREATED);

  await eventually('the first is adopted', async () => (await restarts('web')) === 5);
  await eventually('the one that came late, too', async () => (await restarts('late')) === 5);
  await eventually('the result is home', async () => (await phase('home', 'work')) === 'Succeeded');
  for (const { metadata, status } of before) {
    const now = await read('home', metadata.name);
    expect(now.metadata.uid).toBe(metadata.uid);
    expect(now.status?.startTime).toBe(status?.startTime);
    expect((await read('foreign', metadata.name)).metadata.labels?.[LABEL_HOME_UID]).toBe(metadata.uid);
  }
  const web = await read('home', 'web');
  expect(web.status?.phase).toBe('Running');
  expect(web.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True');
  expect(web.status?.podIP).toBe((await read('foreign', 'web')).status?.podIP);
  // Nothing has been written in the foreign cluster.
  for (const { metadata } of made) {
    expect((await read('foreign', metadata.name)).metadata.resourceVersion).toBe(metadata.resourceVersion);
  }
  expect((await lab.pods('foreign')).map(({ metadata }) => metadata.name)).toEqual(['late', 'web', 'work']);
  const told = async (): Promise<string[]> => {
    const { body } = await lab.homeCluster.api.call('GET', '/api/v1/namespaces/shop/events');
    return (JSON.parse(body) as { items: { reason: string }[] }).items.map(({ reason }) => reason);
  };
  await eventually('told', async () => (await told()).includes('Recreated'));
  expect(await told()).not.toContain('RemotePodLost');
});

test('while the home’s own API server does not answer, the Lease lapses, though the agent lives', async () => {
  way.silence();
  // The Node’s Lease at home counts for 20 s.
  await eventually('lapsed', async () => Date.now() - (await renewedAt()) > (DURATION_S + 2) * 1000);
  const last = await renewedAt();
  way.restore();
  way.cut();
  await eventually('renewed', async () => (await renewedAt()) > last);
  await lab.ready();
});
