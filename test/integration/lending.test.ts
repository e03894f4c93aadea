import 'reflect-metadata';
import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { binaries } from '../../lab/binaries.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import {
  flowSchemas,
  namespaces,
  nodes,
  pods,
  resourceQuotas,
  roleBindings,
  serviceAccounts,
} from '../../src/api/resources.ts';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { eventually } from '../support/eventually.ts';
import { LendingWorld, type Peer } from '../support/peering/lending-world.ts';
import { RightsCluster, printed, type Caller } from '../support/labs/rights-cluster.ts';

/**
 * Lending on a real API server, under the account and the rights that people apply for the `cluster` role: what
 * RBAC, quota, Pod Security, admission policies and service-account tokens really do.
 */

const SYSTEM = 'tributary-system';
const ACCOUNT = { namespace: SYSTEM, name: 'tributary-cluster' };

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
let world: LendingWorld;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  admin = await lab.admin();
  client = await lab.clientOf(ACCOUNT);
});

afterAll(async () => {
  await client?.close();
  await admin?.close();
  await lab?.down();
});

beforeEach(async () => {
  world = new LendingWorld(client, {}, admin);
  if ((await admin.list(nodes)).items.every(({ metadata }) => metadata.name !== 'real')) {
    await world.node('real', {
      cpu: '8',
      memory: '16Gi',
      pods: '100',
      'ephemeral-storage': '100Gi',
      'example.com/gpu': '2',
    });
  }
  await world.start();
});

afterEach(async () => {
  for (const { metadata } of (await admin.list(peeringRequests)).items) {
    await admin.delete(peeringRequests, { name: metadata.name });
  }
  for (const { metadata } of (await admin.list(sharingPolicies)).items) {
    await admin.delete(sharingPolicies, { name: metadata.name });
  }
  await world.stop();
});

const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const pod = (name: string, requests: Record<string, string> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { [LABEL_HOME_UID]: name } },
  spec: {
    // The namespace controller looks again after half of the longest grace period.
    terminationGracePeriodSeconds: 1,
    // As the webhook would force it; no policy in this file sets another one.
    nodeSelector: { 'example.com/lends': 'yes' },
    containers: [
      {
        name: 'main',
        image: 'example/none:1',
        imagePullPolicy: 'Always',
        resources: { requests, limits: limitsOf(requests) },
      },
    ],
  },
});
const limitsOf = (requests: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(requests).filter(([name]) => name.includes('/')));

/** Calls with the credential that the link would carry. */
async function callerOf(peer: Peer): Promise<Caller> {
  const { token, expires } = await world.lending.credential(peer.identity, new AbortController().signal);
  const seconds = (Date.parse(expires) - Date.now()) / 1000;
  expect(seconds).toBeGreaterThan(3000);
  expect(seconds).toBeLessThanOrEqual(3600);
  return lab.with(token);
}

/** The quota's status alone does not prove that admission uses it: its cache may be older. */
async function quotaInForce(call: Caller, namespace: string): Promise<void> {
  const huge = pod('huge', { cpu: '1000', memory: '1Gi' });
  await eventually('the quota is in force', async () => {
    const { status, body } = await call('POST', `${podsOf(namespace)}?dryRun=All`, huge);
    return status === 403 && body.includes('exceeded quota: tributary');
  });
}

const foreignDevice = pod('fpga', { 'example.com/fpga': '1' });
/** An API server uses a policy some time after it has taken it. */
async function policyInForce(call: Caller, namespace: string): Promise<void> {
  await eventually('the policy of pods is in force', async () => {
    const { status } = await call('POST', `${podsOf(namespace)}?dryRun=All`, foreignDevice);
    return status === 422;
  });
}

/** What nobody but its owner changes of a pod: a kubelet writes its status and thereby its version at any time. */
async function asOrdered(namespace: string, name: string): Promise<object> {
  const { metadata, spec } = await admin.get(pods, { namespace, name });
  const { uid, labels, annotations, deletionTimestamp } = metadata;
  return { uid, labels, annotations, deletionTimestamp, spec };
}

/** How often anybody has applied a ResourceQuota or a LimitRange, as the API server counts. */
async function appliedBounds(): Promise<number> {
  const { body } = await lab.cluster.api.call('GET', '/metrics');
  const lines = body
    .split('\n')
    .filter((line) =>
      /^apiserver_request_total{.*resource="(resourcequotas|limitranges)".*verb="APPLY"/.test(line),
    );
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('a peer that is let in', () => {
  test('works in its tenant and nowhere else, within what was agreed, until it is revoked', async () => {
    await world.policy({ nodeSelector: { 'example.com/lends': 'yes' } });
    const rome = world.peer();
    await rome.peered({ namespaces: ['shop', 'web'] });
    const call = await callerOf(rome);
    const tenant = rome.tenant();
    await quotaInForce(call, tenant);
    await policyInForce(call, tenant);

    expect(await call('POST', podsOf(tenant), pod('one', { cpu: '3', memory: '1Gi' }))).toMatchObject({
      status: 201,
    });
    for (const elsewhere of ['default', 'kube-system', SYSTEM, 'tributary-peers']) {
      expect(await call('GET', podsOf(elsewhere))).toMatchObject({ status: 403 });
      expect(await call('GET', `/api/v1/namespaces/${elsewhere}/secrets`)).toMatchObject({ status: 403 });
    }
    for (const path of [
      '/api/v1/namespaces',
      '/api/v1/nodes',
      '/apis/tributary.dev/v1alpha1/peeringrequests',
    ]) {
      expect(await call('GET', path)).toMatchObject({ status: 403 });
    }
    // A recount that began before the pod existed would subtract it again.
    await eventually('the pod is counted, and no recount is due', async () => {
      const { spec, status } = await admin.get(resourceQuotas, { namespace: tenant, name: 'tributary' });
      return isDeepStrictEqual(status?.hard, spec?.hard) && Number(status?.used?.['pods']) === 1;
    });
    const tooMuch = await call('POST', podsOf(tenant), pod('two', { cpu: '2', memory: '1Gi' }));
    expect(tooMuch).toMatchObject({ status: 403 });
    expect(tooMuch.body).toContain('exceeded quota: tributary');
    expect(
      await call('POST', podsOf(tenant), pod('gpu', { cpu: '1', 'example.com/gpu': '1' })),
    ).toMatchObject({ status: 201 });
    const foreign = await call('POST', podsOf(tenant), foreignDevice);
    expect(foreign).toMatchObject({ status: 422 });
    expect(foreign.body).toContain('extended resources of the annotation');

    // The share shrinks: quota and offer follow, pods stay as they are.
    const before = await asOrdered(tenant, 'one');
    await world.changePolicy({ sharePercent: 20 });
    await eventually('the quota shrinks', async () => {
      const quota = await admin.get(resourceQuotas, { namespace: tenant, name: 'tributary' });
      return quota.spec?.hard?.['requests.cpu'] === '1600m';
    });
    await eventually('a smaller offer', () => rome.told.offer?.offer.resources['cpu'] === '1600m');
    await rome.accept();
    await eventually('the new contract', () => rome.told.grant?.contract?.text.includes('1600m') === true);
    expect(rome.told.grant).toMatchObject({ state: 'Active' });
    expect(await asOrdered(tenant, 'one')).toEqual(before);

    // Revoked: the very next request is refused.
    world.intent(rome.id, 'Disabled');
    await eventually('access is gone', async () =>
      [401, 403].includes((await call('GET', podsOf(tenant))).status),
    );
    await rome.granted('Denied');
    expect(await rome.hasAccount()).toBe(false);
    for (const home of ['shop', 'web']) expect(await world.exists(rome.tenant(home))).toBe(false);
    const schemas = (await admin.list(flowSchemas)).items.map(({ metadata }) => metadata.name);
    expect(schemas).not.toContain(`tributary-peer-${rome.id}`);
    await eventually('its token is dead', async () => (await call('GET', '/api')).status === 401);
    await expect(world.lending.credential(rome.identity, new AbortController().signal)).rejects.toThrow(
      'no contract',
    );
  });

  test('has its quota and its limits written only when they change, in whatever form the amounts are', async () => {
    await world.policy({ defaultRequests: { cpu: '0.1', memory: '131072Ki' } });
    const rome = world.peer();
    await rome.peered();
    const binding = { namespace: rome.tenant(), name: 'tributary-peer' };
    const lookedAgain = async (): Promise<void> => {
      const { uid } = (await admin.get(roleBindings, binding)).metadata;
      await admin.delete(roleBindings, binding);
      await eventually('its rights are put back', async () => {
        const { items } = await admin.list(roleBindings, { namespace: rome.tenant() });
        return items.some(({ metadata }) => metadata.name === binding.name && metadata.uid !== uid);
      });
    };
    expect(await appliedBounds()).toBeGreaterThan(0);
    // What is lent still grows at first: the node is new.
    await eventually('a look at the tenant that writes neither', async () => {
      const before = await appliedBounds();
      await lookedAgain();
      return (await appliedBounds()) === before;
    });
  });

  test('is served by the API server at the priority of peers', async () => {
    await world.policy();
    const rome = world.peer();
    await rome.peered();
    const { token } = await world.lending.credential(rome.identity, new AbortController().signal);
    const schema = await admin.get(flowSchemas, { name: `tributary-peer-${rome.id}` });
    await eventually('the FlowSchema is in force', async () => {
      const { headers, body } = await lab.clientWith(token).raw({
        method: 'GET',
        path: podsOf(rome.tenant()),
      });
      body.resume();
      return headers['x-kubernetes-pf-flowschema-uid'] === schema.metadata.uid;
    });
    const conditions = schema.status?.conditions ?? [];
    expect(conditions.find(({ type }) => type === 'Dangling')?.status ?? 'False').toBe('False');
  });

  test('comes back after a restart of ours between any two steps', async () => {
    await world.policy();
    const rome = world.peer();
    const again = async (): Promise<void> => {
      await world.stop();
      await world.start();
    };
    await rome.ask();
    await again();
    await rome.ask();
    await rome.offered();
    await again();
    await rome.accept();
    await again();
    await rome.ask();
    await eventually('accepted', async () => {
      if (rome.told.grant?.contract === undefined && rome.told.offer !== undefined) await rome.accept();
      return rome.told.grant?.state === 'Active';
    });
    await again();
    await rome.granted('Active');
    await rome.ask(null);
    await eventually('deleted', async () => !(await world.exists(rome.tenant())) || (await isEnding(rome)));
    await again();
    await eventually('all gone', async () => !(await world.exists(rome.tenant())));
    await eventually(
      'the request as well',
      async () => (await admin.list(peeringRequests)).items.length === 0,
    );
  });
});

const isEnding = async (peer: Peer): Promise<boolean> =>
  (await admin.get(namespaces, { name: peer.tenant() })).metadata.deletionTimestamp !== undefined;

describe("the fence around lending's own account", () => {
  let call: Caller;
  const tenant = 'shop-fenced';
  // This is not a ClusterID: with one, it would be a tenant that nobody asked for, and lending would remove it.
  const peer = 'rome';

  beforeAll(async () => {
    call = await lab.as(ACCOUNT);
    await eventually('the fence is in force', async () => {
      const body = { metadata: { name: 'not-marked' } };
      return (await call('POST', '/api/v1/namespaces?dryRun=All', body)).status === 422;
    });
    const labels = { 'tributary.dev/peer': peer, 'tributary.dev/tenancy': 'contract' };
    await lab.apply(stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: tenant, labels } }));
  });

  afterAll(async () => admin.delete(namespaces, { name: tenant }));

  const own = { namespace: 'tributary-system', name: 'tributary-cluster' };
  const binding = (subject: string | typeof own, role = 'tributary-tenant'): object => ({
    metadata: { name: 'tributary-peer' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [
      {
        kind: 'ServiceAccount',
        ...(typeof subject === 'string' ? { namespace: 'tributary-peers', name: subject } : subject),
      },
    ],
  });
  const bindings = (namespace: string): string =>
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings?dryRun=All`;
  const schema = (name: string, level: string): object => ({
    metadata: { name },
    spec: { priorityLevelConfiguration: { name: level }, matchingPrecedence: 2000 },
  });
  const FLOW = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas?dryRun=All';

  test.each([
    [
      'a tenant namespace',
      'POST',
      '/api/v1/namespaces?dryRun=All',
      {
        metadata: { name: 'x', labels: { 'tributary.dev/peer': peer, 'tributary.dev/tenancy': 'contract' } },
      },
    ],
    ["the peer's binding in it", 'POST', bindings(tenant), binding(peer)],
    ['our own in it, for logs', 'POST', bindings(tenant), binding(own, 'tributary-tenant-logs')],
    [
      'a quota in it',
      'POST',
      `/api/v1/namespaces/${tenant}/resourcequotas?dryRun=All`,
      { metadata: { name: 'q' } },
    ],
    ['a FlowSchema of peers', 'POST', FLOW, schema('tributary-peer-x', 'tributary-peers')],
  ])('lets through %s', async (_what, method, path, body) => {
    const answer = await call(method, path, body);
    expect({ ...answer, body: answer.status === 201 ? '' : answer.body }).toMatchObject({
      status: 201,
      body: '',
    });
  });

  test.each([
    ['a namespace of any kind', 'POST', '/api/v1/namespaces?dryRun=All', { metadata: { name: 'x' } }],
    [
      'a marked namespace with a reserved name',
      'POST',
      '/api/v1/namespaces?dryRun=All',
      {
        metadata: {
          name: 'kube-x',
          labels: { 'tributary.dev/peer': peer, 'tributary.dev/tenancy': 'contract' },
        },
      },
    ],
    ['the deletion of default', 'DELETE', '/api/v1/namespaces/tributary-system?dryRun=All', undefined],
    ['a binding outside tenants', 'POST', bindings('kube-system'), binding(peer)],
    ['a binding of another peer', 'POST', bindings(tenant), binding('paris')],
    ['a binding of a wider role', 'POST', bindings(tenant), binding(peer, 'cluster-admin')],
    ['our own for more than logs', 'POST', bindings(tenant), binding(own)],
    ['our own outside tenants', 'POST', bindings('default'), binding(own, 'tributary-tenant-logs')],
    ['logs for a peer', 'POST', bindings(tenant), binding(peer, 'tributary-tenant-logs')],
    [
      'a quota outside tenants',
      'POST',
      '/api/v1/namespaces/default/resourcequotas?dryRun=All',
      { metadata: { name: 'q' } },
    ],
    [
      'an account outside tenants',
      'POST',
      `/api/v1/namespaces/${SYSTEM}/serviceaccounts?dryRun=All`,
      { metadata: { name: 'x' } },
    ],
    ['a FlowSchema that is exempt', 'POST', FLOW, schema('tributary-peer-x', 'exempt')],
    ['a FlowSchema of others', 'POST', FLOW, schema('x', 'tributary-peers')],
  ])('refuses %s', async (_what, method, path, body) => {
    const { status } = await call(method, path, body);
    expect([403, 422]).toContain(status);
  });

  test.each([
    ['a mark on a namespace of others', 'default', peer, 'has made only'],
    ['a tenant in other hands', tenant, 'paris', 'keeps its peer'],
  ])('refuses %s', async (_what, name, owner, reason) => {
    const labels = { 'tributary.dev/peer': owner, 'tributary.dev/tenancy': 'contract' };
    const patch = { type: 'merge', body: { metadata: { labels } } } as const;
    await expect(client.patch(namespaces, { name }, patch)).rejects.toThrow(reason);
  });

  test('no Secret outside the system namespace can be read, and no account made into a token', async () => {
    expect(await call('GET', '/api/v1/secrets')).toMatchObject({ status: 403 });
    expect(await call('GET', '/api/v1/namespaces/kube-system/secrets')).toMatchObject({ status: 403 });
    const token = await call('POST', '/api/v1/namespaces/kube-system/serviceaccounts/default/token', {});
    expect(token).toMatchObject({ status: 403 });
    expect(
      (await admin.list(serviceAccounts, { namespace: 'tributary-peers' })).items.length,
    ).toBeGreaterThan(0);
  });
});

test('who deletes or narrows a policy in use is warned by the API server, and nothing is refused', async () => {
  await world.policy();
  const free = await kubectl('delete', 'sharingpolicy', 'everybody', '--dry-run=server');
  expect(free.stderr).toBe('');
  const peer = world.peer();
  await peer.peered();
  await eventually('the policy names the peer', async () => {
    const { status } = await admin.get(sharingPolicies, { name: 'everybody' });
    return status?.peers?.includes(peer.id) === true;
  });
  const narrowed = JSON.stringify({ spec: { peers: { anyone: null, clusterIDs: ['a'.repeat(26)] } } });
  const other = JSON.stringify({ spec: { thresholdPercent: 20 } });
  const patch = ['patch', 'sharingpolicy', 'everybody', '--type=merge', '--dry-run=server', '-p'];
  expect(await kubectl(...patch, other)).toMatchObject({ status: 0, stderr: '' });
  for (const args of [
    [...patch, narrowed],
    ['delete', 'sharingpolicy', 'everybody', '--dry-run=server'],
  ]) {
    const { status, stderr } = await kubectl(...args);
    expect(status).toBe(0);
    expect(stderr).toMatch(/^Warning: .*ALL PODS of each peer .* WILL BE ENDED/u);
    expect(stderr).toContain(peer.id);
    expect(stderr).toContain('--drain-seconds');
  }
});

async function kubectl(...args: string[]): Promise<{ status: number | null; stderr: string }> {
  const { kubectl: program } = await binaries(undefined, ['kubectl']);
  return spawnSync(program, ['--kubeconfig', lab.cluster.kubeconfig, ...args], { encoding: 'utf8' });
}
