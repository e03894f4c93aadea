import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { events, namespaces, pods, serviceAccounts } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { applyYaml, printed } from '../support/labs/rights-cluster.ts';

/** A provider that is slow over one namespace, as with a webhook of its own, and one whose etcd is full. */

const TIMEOUT_MS = 180_000;
const SLOW = { homeNamespace: 'slow', tenantNamespace: 'tenant-slow' };
/** More than there are workers. */
const MANY = 80;
const DELAY_MS = 8_000;

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  const tenant = [
    '--peer',
    'rome',
    '--namespace',
    'tenant',
    '--namespace',
    SLOW.tenantNamespace,
    '--external-names',
  ];
  const quota = ['--quota', 'cpu=100,memory=100Gi,pods=200'];
  await applyYaml(lab.foreignCluster, await printed(tenantCommand, [...tenant, ...quota]));
  await lab.home.create(namespaces, { metadata: { name: SLOW.homeNamespace } });
  const account = { namespace: SLOW.homeNamespace, name: 'default' };
  await awaited('the account', async () =>
    lab.home.get(serviceAccounts, account).catch(ignoring('NotFound')),
  );
  const body = {
    spec: {
      resources: { pods: '200' },
      namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }, SLOW],
    },
  };
  await lab.home.patch(virtualNodes, { name: NODE }, { type: 'merge', body });
  await lab.start();
  await lab.ready();
}, TIMEOUT_MS);
afterAll(async () => lab?.down(), TIMEOUT_MS);

const run = async (namespace: string, name: string): Promise<unknown> =>
  lab.home.create(pods, {
    metadata: { namespace, name },
    spec: {
      nodeName: NODE,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'web:1' }],
    },
  });
const runs = async (namespace: string, name: string): Promise<boolean> =>
  (await lab.home.get(pods, { namespace, name })).status?.phase === 'Running';

test(
  'a slow namespace holds up no other one, and its pods are made once',
  async () => {
    const { proxy } = lab;
    // As with a slow webhook, which is asked before anything is stored.
    proxy.judge(({ method, path }) =>
      method === 'POST' && path.includes(`/${SLOW.tenantNamespace}/pods`)
        ? { kind: 'delay', ms: DELAY_MS }
        : undefined,
    );
    await Promise.all(Array.from({ length: MANY }, async (_none, n) => run(SLOW.homeNamespace, `slow-${n}`)));
    await eventually('its pods are being made', () => (proxy.counts.get('delay') ?? 0) >= 40);
    const began = performance.now();
    await run('shop', 'quick');
    await eventually('the other one runs', async () => runs('shop', 'quick'));
    const tookMs = performance.now() - began;
    const { items: meanwhile } = await lab.foreign.list(pods, { namespace: SLOW.tenantNamespace });
    console.info(
      `ran after ${Math.round(tookMs)} ms, when ${meanwhile.length} of ${MANY} slow ones were there`,
    );
    // With all workers at the slow ones, it would have waited until these had been made.
    expect(meanwhile.length).toBeLessThan(MANY - 64);
    proxy.calm();
    await eventually('all run', async () => {
      const { items } = await lab.home.list(pods, { namespace: SLOW.homeNamespace });
      return items.filter(({ status }) => status?.phase === 'Running').length === MANY;
    });
    const { items } = await lab.foreign.list(pods, { namespace: SLOW.tenantNamespace });
    expect(new Set(items.map(({ metadata }) => metadata.labels?.[LABEL_HOME_UID])).size).toBe(items.length);
    expect(items.length).toBe(MANY);
  },
  TIMEOUT_MS,
);

test(
  'an etcd that is full over there: the pod says so and waits, what runs is kept, and it goes on by itself',
  async () => {
    const { proxy } = lab;
    const before = (await lab.pods('foreign')).map(({ metadata }) => metadata.uid);
    const message = 'etcdserver: mvcc: database space exceeded';
    proxy.judge(({ isWrite }) => (isWrite ? { kind: 'status', code: 500, message } : undefined));
    await run('shop', 'late');
    await eventually('it says why it waits', async () => {
      const { items } = await lab.home.list(events, { namespace: 'shop' });
      const told = items.find(({ reason }) => reason === 'ForeignWriteFailed');
      return told?.message?.includes('database space exceeded') === true;
    });
    expect((await lab.pods('foreign')).map(({ metadata }) => metadata.uid)).toEqual(before);
    expect(await runs('shop', 'quick')).toBe(true);
    proxy.calm();
    await eventually('it runs', async () => runs('shop', 'late'));
    expect(await runs('shop', 'quick')).toBe(true);
  },
  TIMEOUT_MS,
);
