import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { advertisements } from '../../src/api/advertisement.ts';
import { leases, nodes, pods, secrets } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { hasCode } from '../../src/lib/errors.ts';
import {
  BORROWING_CLUSTER_RIGHTS,
  BORROWING_EVENT_RIGHTS,
  BORROWING_LEASE_RIGHTS,
  BORROWING_SYSTEM_RIGHTS,
} from '../../src/peering/borrowing/rights.ts';
import { BorrowingWorld } from '../support/peering/borrowing-world.ts';
import { eventually } from '../support/eventually.ts';
import { SYSTEM, rightsAccount } from '../support/labs/rights-account.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/**
 * Borrowing on a real API server, under an account that has the rights of its tables and no others: what the kinds'
 * rules, finalizers, preconditions and graceful deletion really do. The provider and the agent are scripts.
 */

let lab: RightsCluster;
let admin: KubeClient;
let world: BorrowingWorld;

beforeAll(async () => {
  lab = await RightsCluster.up();
  const account = await rightsAccount(lab, [
    [BORROWING_CLUSTER_RIGHTS],
    [BORROWING_SYSTEM_RIGHTS, SYSTEM],
    [BORROWING_LEASE_RIGHTS, 'kube-node-lease'],
    [BORROWING_EVENT_RIGHTS, 'default'],
  ]);
  ({ admin } = account);
  world = new BorrowingWorld(admin, account.connect());
  await world.start();
});

afterAll(async () => {
  await world?.stop();
  await admin?.close();
  await lab?.down();
});

const isGone = async (read: Promise<unknown>): Promise<boolean> =>
  read.then(
    () => false,
    (error: unknown) => {
      if (hasCode(error, 'NotFound')) return true;
      throw error;
    },
  );

const addPod = async (name: string, nodeName: string): Promise<void> => {
  const containers = [{ name: 'main', image: 'web' }];
  const tolerations = [{ operator: 'Exists' }];
  await admin.create(pods, {
    metadata: { name, namespace: 'shop' },
    spec: { nodeName, containers, tolerations },
  });
};

const reported = (): string => world.borrowing.report(world.id).phase;

test('from an offer to a virtual node, a smaller share, and back to nothing', async () => {
  world.want(true);
  await eventually('established', () => reported() === 'Established');
  const advertisement = await admin.get(advertisements, { name: world.id });
  expect(advertisement.status).toMatchObject({
    decision: 'Accepted',
    access: 'Link',
    virtualNodes: ['milan'],
  });
  expect(advertisement.status?.contract).toEqual(world.provider.contract);
  const node = await admin.get(virtualNodes, { name: 'milan' });
  expect(node.spec).toMatchObject({
    resources: { cpu: '8', memory: '16Gi', pods: '100' },
    namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'shop-t' }],
  });
  await addPod('web', 'milan');
  const { uid } = (await admin.get(pods, { namespace: 'shop', name: 'web' })).metadata;

  world.provider.resources = { cpu: '2', memory: '16Gi', pods: '100' };
  world.provider.renew();
  const from = performance.now();
  world.say();
  await eventually(
    'the smaller share is there',
    async () => (await admin.get(virtualNodes, { name: 'milan' })).spec.resources['cpu'] === '2',
  );
  process.stdout.write(`share on the virtual node after ${Math.round(performance.now() - from)} ms\n`);
  expect((await admin.get(pods, { namespace: 'shop', name: 'web' })).metadata).toMatchObject({ uid });

  await world.quiet();
  const settled = await admin.get(virtualNodes, { name: 'milan' });
  world.want(true);
  await world.quiet();
  expect((await admin.get(virtualNodes, { name: 'milan' })).metadata.resourceVersion).toBe(
    settled.metadata.resourceVersion,
  );

  world.want(false);
  await eventually('gone', async () => isGone(admin.get(advertisements, { name: world.id })));
  expect(await isGone(admin.get(virtualNodes, { name: 'milan' }))).toBe(true);
  expect(await isGone(admin.get(nodes, { name: 'milan' }))).toBe(true);
  expect(await isGone(admin.get(leases, { namespace: 'kube-node-lease', name: 'milan' }))).toBe(true);
  expect(await isGone(admin.get(pods, { namespace: 'shop', name: 'web' }))).toBe(true);
  const { items } = await admin.list(secrets, {
    namespace: SYSTEM,
    labelSelector: 'tributary.dev/provider',
  });
  expect(items).toEqual([]);
  await eventually('the request is withdrawn', () => world.provider.request === undefined);
  expect(world.warnings).toEqual([]);
});

test('with the agent and the provider dead, everything goes within the time that pods are given', async () => {
  world.want(true);
  await eventually('established', () => reported() === 'Established');
  await addPod('web', 'milan');
  world.agents.dead = true;
  world.connected = false;
  world.want(false);
  await eventually('gone', async () => isGone(admin.get(advertisements, { name: world.id })));
  expect(await isGone(admin.get(nodes, { name: 'milan' }))).toBe(true);
  expect(await isGone(admin.get(pods, { namespace: 'shop', name: 'web' }))).toBe(true);
  expect(await isGone(admin.get(leases, { namespace: 'kube-node-lease', name: 'milan' }))).toBe(true);
  expect(world.borrowing.documents(world.id)).toEqual({});
});
