import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ANNOTATION_REFLECT } from '../../src/api/names.ts';
import type { ReflectionRule } from '../../src/api/reflection.ts';
import { configMaps, events, pods, secrets, serviceAccounts } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KubeEvent, Pod, PodSpec } from '../../src/api/wire.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';

/** Events of remote pods, and rules over ConfigMaps and Secrets, with real API servers and the rights that are printed. */

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await lab.start();
  await lab.ready();
});
afterAll(async () => lab?.down());

async function add(name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const containers = [{ name: 'main', image: 'web:1' }];
  return lab.home.create(pods, {
    metadata: { name, namespace: 'shop' },
    spec: { nodeName: NODE, containers, ...spec },
  });
}
const read = async (name: string): Promise<Pod> => lab.home.get(pods, { namespace: 'shop', name });
const body = async (name: string): Promise<Pod> => lab.foreign.get(pods, { namespace: 'tenant', name });
const runs = async (name: string): Promise<void> =>
  eventually(`${name} runs`, async () => (await read(name)).status?.phase === 'Running');
/** As `kubectl describe pod` asks. */
async function eventsOf(pod: Pod): Promise<KubeEvent[]> {
  const { name, uid } = pod.metadata;
  const fieldSelector = `involvedObject.name=${name},involvedObject.namespace=shop,involvedObject.uid=${uid}`;
  return (await lab.home.list(events, { namespace: 'shop', fieldSelector })).items;
}
const found = async (pod: Pod, reason: string): Promise<KubeEvent | undefined> =>
  (await eventsOf(pod)).find((event) => event.reason === reason);

describe('events', () => {
  test('of the scheduler over there', async () => {
    const pod = await add('unplaceable', {
      containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '50' } } }],
    });
    await eventually('said', async () => (await found(pod, 'FailedScheduling')) !== undefined);
    expect(await found(pod, 'FailedScheduling')).toMatchObject({
      type: 'Warning',
      message: expect.stringContaining('Insufficient cpu'),
      source: { component: 'default-scheduler', host: NODE },
      involvedObject: { kind: 'Pod', uid: pod.metadata.uid },
    });
    const placed = await add('placed');
    await runs('placed');
    await eventually('said', async () => (await found(placed, 'Scheduled')) !== undefined);
    const { message } = (await found(placed, 'Scheduled')) ?? {};
    expect(message).toMatch(/^Successfully assigned shop\/placed to /u);
  });

  test('that count on stay one; an agent that comes anew tells none twice', async () => {
    const pod = await add('restarting');
    await runs('restarting');
    const { uid } = (await body('restarting')).metadata;
    const now = (): string => new Date().toISOString().replace(/\.\d+Z$/u, 'Z');
    const made = await lab.foreign.create(events, {
      metadata: { namespace: 'tenant', name: 'restarting.1' },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: 'tenant',
        name: 'restarting',
        uid,
        fieldPath: 'spec.containers{main}',
      },
      type: 'Warning',
      reason: 'BackOff',
      message: `Back-off restarting failed container main in pod restarting_tenant(${uid})\u001b[2J`,
      source: { component: 'kubelet', host: 'node-1' },
      firstTimestamp: now(),
      lastTimestamp: now(),
      count: 1,
    });
    await eventually('told', async () => (await found(pod, 'BackOff')) !== undefined);
    expect(await found(pod, 'BackOff')).toMatchObject({
      message: `Back-off restarting failed container main in pod restarting_shop(${pod.metadata.uid}) [2J`,
      involvedObject: { fieldPath: 'spec.containers{main}' },
      source: { component: 'kubelet', host: NODE },
    });
    const again = { type: 'merge', body: { count: 7, lastTimestamp: now() } } as const;
    await lab.foreign.patch(events, made.metadata, again);
    await eventually('counted', async () => (await found(pod, 'BackOff'))?.count === 7);
    // Of those from over there: the home's controllers say so themselves where the Node is late.
    const versions = async (): Promise<string[]> =>
      (await eventsOf(pod))
        .filter(({ reason, source }) => reason !== 'BackOff' && source?.component?.endsWith(`, ${NODE}`))
        .map(({ metadata }) => metadata.resourceVersion);
    await eventually('placed', async () => (await found(pod, 'Scheduled')) !== undefined);
    const before = await versions();
    await lab.kill();
    await lab.foreign.patch(events, made.metadata, {
      type: 'merge',
      body: { count: 8, lastTimestamp: now() },
    });
    await lab.start();
    await add('after');
    await eventually('runs', async () => (await read('after')).status?.phase === 'Running');
    await eventually('counted on', async () => (await found(pod, 'BackOff'))?.count === 8);
    expect(await versions()).toEqual(before);
    expect((await eventsOf(pod)).filter(({ reason }) => reason === 'BackOff')).toHaveLength(1);
  });
});

describe('ConfigMaps and Secrets', () => {
  const shop = 'shop';
  const there = async (type: typeof secrets | typeof configMaps, name: string): Promise<boolean> =>
    (await lab.foreign.get(type, { namespace: 'tenant', name }).catch(ignoring('NotFound'))) !== undefined;

  async function setRules(reflection: ReflectionRule[]): Promise<void> {
    const namespaces = [{ homeNamespace: shop, tenantNamespace: 'tenant', reflection }];
    const patch = { type: 'merge', body: { spec: { namespaces } } } as const;
    await lab.home.patch(virtualNodes, { name: NODE }, patch);
  }

  test('go along under All and come back under Referenced; a change is there at once', async () => {
    const name = 'settings';
    await lab.home.create(configMaps, { metadata: { namespace: shop, name }, data: { a: '1' } });
    const needed = 'needed';
    await lab.home.create(configMaps, { metadata: { namespace: shop, name: needed }, data: { a: '1' } });
    await add('mounts', { volumes: [{ name: 'config', configMap: { name: needed } }] });
    await runs('mounts');
    expect([await there(configMaps, needed), await there(configMaps, name)]).toEqual([true, false]);
    const changed = { type: 'merge', body: { data: { a: '2' } } } as const;
    await lab.home.patch(configMaps, { namespace: shop, name: needed }, changed);
    await eventually('changed over there', async () => {
      const copy = await lab.foreign.get(configMaps, { namespace: 'tenant', name: needed });
      return copy.data?.['a'] === '2';
    });
    await setRules([{ resource: 'configmaps', policy: 'All' }]);
    await eventually('goes along', async () => there(configMaps, name));
    const stay = { metadata: { annotations: { [ANNOTATION_REFLECT]: 'false' } } };
    await lab.home.patch(configMaps, { namespace: shop, name }, { type: 'merge', body: stay });
    await eventually('comes back', async () => !(await there(configMaps, name)));
    expect(await there(configMaps, needed)).toBe(true);
  });

  test('the token of an account leaves with its own pods only', async () => {
    await setRules([{ resource: 'secrets', policy: 'All' }]);
    await lab.home.create(serviceAccounts, { metadata: { namespace: shop, name: 'robot' } });
    const annotations = { 'kubernetes.io/service-account.name': 'robot' };
    const name = 'robot-token';
    const type = 'kubernetes.io/service-account-token';
    await lab.home.create(secrets, { metadata: { namespace: shop, name, annotations }, type });
    await lab.home.create(secrets, { metadata: { namespace: shop, name: 'plain' }, data: {} });
    await eventually('others go along', async () => there(secrets, 'plain'));
    const thief = await add('thief', { volumes: [{ name: 'token', secret: { secretName: name } }] });
    await eventually('said', async () => (await found(thief, 'MissingReference')) !== undefined);
    expect((await read('thief')).status?.message).toMatch(/service-account tokens of others never leave/u);
    expect(await there(secrets, name)).toBe(false);
    const volumes = [{ name: 'token', secret: { secretName: name } }];
    await add('robot', { serviceAccountName: 'robot', volumes });
    await runs('robot');
    expect(await there(secrets, name)).toBe(true);
  });

  test('a name that is taken over there is said, with the rights that peers have', async () => {
    const name = 'taken';
    await lab.foreign.create(secrets, {
      metadata: { namespace: 'tenant', name },
      data: { theirs: 'eA==' },
    });
    await lab.home.create(secrets, { metadata: { namespace: shop, name }, data: { ours: 'eQ==' } });
    const pod = await add('conflict', { volumes: [{ name: 'key', secret: { secretName: name } }] });
    await eventually('said', async () => (await found(pod, 'NameTaken')) !== undefined);
    const kept = await lab.foreign.get(secrets, { namespace: 'tenant', name });
    expect(kept.data).toEqual({ theirs: 'eA==' });
  });
});
