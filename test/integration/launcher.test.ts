import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PodLauncher } from '../../src/agent/launch-pods.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import type { WantedAgent } from '../../src/peering/ports.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster, printed, type Caller } from '../support/rights-cluster.ts';

/** Agents started under the rights of the `cluster` role on a real API server, and what both are refused. */

const TIMEOUT_MS = 180_000;
const SYSTEM = 'tributary-system';
const AGENTS = 'tributary-agents';
const A = 'a'.repeat(26);
const B = 'b'.repeat(26);
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

const wanted = (clusterID: string, names: string[], namespaces: string[]): WantedAgent => ({
  clusterID,
  virtualNodes: names.map((name) => ({ name: `vn-${name}`, nodeName: name })),
  namespaces,
  kubeconfigSecret: { namespace: SYSTEM, name: `tributary-kubeconfig-${clusterID}` },
});

let lab: RightsCluster;
let home: KubeClient;
let launcher: PodLauncher;
let cluster: Caller;
let admin: Caller;
const { signal } = new AbortController();

const account = (clusterID: string): { namespace: string; name: string } => ({
  namespace: AGENTS,
  name: `tributary-peer-${clusterID}`,
});

beforeAll(async () => {
  lab = await RightsCluster.up('launcher');
  const { api, server, pki } = lab.cluster;
  admin = async (method, path, body) => api.call(method, path, body);
  await lab.apply(await printed(manifestsCommand, ['crds']));
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  for (const name of ['shop', 'web']) {
    await admin('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'password' } };
    await admin('POST', `/api/v1/namespaces/${name}/secrets`, secret);
  }
  const { token } = await lab.tokenOf({ namespace: SYSTEM, name: 'tributary-cluster' });
  cluster = lab.with(token);
  home = createClient({
    server: new URL(server),
    ca: pki.authority.cert,
    token: async () => Promise.resolve(token),
  });
  launcher = new PodLauncher({
    home,
    image: 'tributary:1',
    clock: systemClock,
    log: silentLogger,
    goneMs: 30_000,
  });
  await eventually(
    'the fences are in force',
    async () => {
      const fenced = await cluster('DELETE', '/api/v1/namespaces/shop?dryRun=All');
      const role = { metadata: { name: 'tributary-peer-x' }, rules: [] };
      const launching = await cluster('POST', `${RBAC}/namespaces/${SYSTEM}/roles?dryRun=All`, {
        ...role,
        metadata: { name: 'other' },
      });
      return fenced.status === 422 && launching.status === 422;
    },
    30_000,
  );
}, TIMEOUT_MS);

afterAll(async () => {
  await home?.close();
  await lab?.down();
}, TIMEOUT_MS);

describe('agents of two foreign clusters', () => {
  let agentA: Caller;

  beforeAll(async () => {
    await launcher.ensure(wanted(A, ['milan', 'milan-2'], ['shop']), signal);
    await launcher.ensure(wanted(B, ['paris'], ['web']), signal);
    agentA = await lab.as(account(A));
    await eventually('its rights hold', async () => (await makeNode('milan', true)).status === 201, 30_000);
  }, TIMEOUT_MS);

  const makeNode = async (name: string, dry = false): Promise<{ status: number; body: string }> =>
    agentA('POST', `/api/v1/nodes${dry ? '?dryRun=All' : ''}`, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
    });

  test('each is one Deployment under an account of its own, and applying it again changes nothing', async () => {
    const path = `/apis/apps/v1/namespaces/${AGENTS}/deployments/tributary-peer-${A}`;
    const before = JSON.parse((await admin('GET', path)).body) as {
      metadata: { resourceVersion: string; generation: number };
      spec: { template: { spec: { serviceAccountName: string; containers: { args: string[] }[] } } };
    };
    const { serviceAccountName, containers } = before.spec.template.spec;
    expect(serviceAccountName).toBe(`tributary-peer-${A}`);
    expect(containers[0]?.args).toEqual(['peer', '--virtual-node', 'vn-milan,vn-milan-2']);
    await launcher.ensure(wanted(A, ['milan-2', 'milan'], ['shop', 'shop']), signal);
    const after = JSON.parse((await admin('GET', path)).body) as typeof before;
    expect(after.metadata.generation).toBe(before.metadata.generation);
  });

  test('one makes its own Nodes, not those of the other, nor any else', async () => {
    expect(await makeNode('milan')).toMatchObject({ status: 201 });
    expect(await makeNode('milan-2', true)).toMatchObject({ status: 201 });
    for (const name of ['paris', 'vn-milan', 'control-plane']) {
      const refused = await makeNode(name);
      expect(refused).toMatchObject({ status: 422 });
      expect(refused.body).toContain('the Nodes that it serves');
    }
  });

  test('one writes no Node, Lease, VirtualNode or pod of the other', async () => {
    await admin('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'paris' } });
    const paris = JSON.parse((await agentA('GET', '/api/v1/nodes/paris')).body) as object;
    expect(await agentA('PUT', '/api/v1/nodes/paris', paris)).toMatchObject({ status: 422 });
    expect(await agentA('PUT', '/api/v1/nodes/paris/status', paris)).toMatchObject({ status: 422 });
    expect(await agentA('DELETE', '/api/v1/nodes/paris')).toMatchObject({ status: 422 });
    const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const lease = (name: string): object => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name },
    });
    expect(await agentA('POST', LEASES, lease('paris'))).toMatchObject({ status: 422 });
    expect(await agentA('POST', LEASES, lease('milan'))).toMatchObject({ status: 201 });
    for (const [name, status] of [
      ['paris', 422],
      ['milan', 200],
    ] as const) {
      const path = `/apis/tributary.dev/v1alpha1/virtualnodes/vn-${name}`;
      const virtualNode = {
        apiVersion: 'tributary.dev/v1alpha1',
        kind: 'VirtualNode',
        metadata: { name: `vn-${name}` },
        spec: {
          nodeName: name,
          kubeconfigSecretRef: { namespace: SYSTEM, name: 'x' },
          resources: { cpu: '1', memory: '1Gi', pods: '1' },
        },
      };
      const made = await admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', virtualNode);
      expect(made).toMatchObject({ status: 201 });
      const body = JSON.parse(made.body) as object;
      expect(await agentA('PUT', `${path}/status`, body)).toMatchObject({ status });
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { nodeName: name, containers: [{ name: 'main', image: 'example/none:1' }] },
      };
      expect(await admin('POST', '/api/v1/namespaces/default/pods', pod)).toMatchObject({ status: 201 });
      const there = `/api/v1/namespaces/default/pods/${name}`;
      const read = JSON.parse((await agentA('GET', there)).body) as object;
      expect(await agentA('PUT', `${there}/status`, read)).toMatchObject({ status });
      expect(await agentA('DELETE', `${there}?gracePeriodSeconds=0`)).toMatchObject({ status });
    }
  });

  test('one reads Secrets of its own namespaces and its own kubeconfig only', async () => {
    expect(await agentA('GET', '/api/v1/namespaces/shop/secrets/password')).toMatchObject({ status: 200 });
    const none = [
      '/api/v1/namespaces/web/secrets/password',
      '/api/v1/secrets',
      `/api/v1/namespaces/${SYSTEM}/secrets`,
      `/api/v1/namespaces/${SYSTEM}/secrets/tributary-identity`,
      `/api/v1/namespaces/${SYSTEM}/secrets/tributary-kubeconfig-${B}`,
    ];
    for (const path of none) expect(await agentA('GET', path)).toMatchObject({ status: 403 });
    const own = `/api/v1/namespaces/${SYSTEM}/secrets/tributary-kubeconfig-${A}`;
    expect(await agentA('GET', own)).toMatchObject({ status: 404 });
  });

  test('a namespace that is taken out is closed to it, one that is added is open', async () => {
    await launcher.ensure(wanted(A, ['milan', 'milan-2'], ['web']), signal);
    const may = async (namespace: string): Promise<number> =>
      (await agentA('GET', `/api/v1/namespaces/${namespace}/secrets/password`)).status;
    await eventually('shop is closed', async () => (await may('shop')) === 403);
    await eventually('web is open', async () => (await may('web')) === 200);
    const agentB = await lab.as(account(B));
    expect(await agentB('GET', '/api/v1/namespaces/web/secrets/password')).toMatchObject({ status: 200 });
  });

  test('one that is removed leaves nothing, its token is worth nothing, and the other stays', async () => {
    await launcher.remove(A, signal);
    const selector = `labelSelector=tributary.dev/provider%3D${A}`;
    for (const path of [
      `/apis/apps/v1/deployments?${selector}`,
      `/api/v1/pods?${selector}`,
      `/api/v1/serviceaccounts?${selector}`,
      `${RBAC}/roles?${selector}`,
      `${RBAC}/rolebindings?${selector}`,
    ]) {
      const { items } = JSON.parse((await admin('GET', path)).body) as { items: object[] };
      expect({ path, items }).toEqual({ path, items: [] });
    }
    await eventually(
      'its token is worth nothing',
      async () => (await agentA('GET', '/api/v1/nodes/milan')).status === 401,
      30_000,
    );
    expect(
      await admin('GET', `/apis/apps/v1/namespaces/${AGENTS}/deployments/tributary-peer-${B}`),
    ).toMatchObject({
      status: 200,
    });
    await launcher.remove(A, signal);
  }, 60_000);
});

describe('the cluster role', () => {
  const binding = (
    name: string,
    roleRef: { kind: string; name: string },
    subject: object = { kind: 'ServiceAccount', ...account(B) },
  ): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...roleRef },
    subjects: [subject],
  });
  const bindings = (namespace: string): string => `${RBAC}/namespaces/${namespace}/rolebindings`;
  const ofAgents = { kind: 'ClusterRole', name: 'tributary-agent-namespace' };
  const role = (name: string, rules: object[]): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name },
    rules,
  });
  const secrets = (verbs: string[], resourceNames?: string[]): object => ({
    apiGroups: [''],
    resources: ['secrets'],
    verbs,
    ...(resourceNames && { resourceNames }),
  });
  const identity = 'tributary-identity';

  test.each([
    ['no ClusterRoleBinding', `${RBAC}/clusterrolebindings`, binding('x', ofAgents)],
    ['no ClusterRole', `${RBAC}/clusterroles`, role('x', [])],
    [
      'not cluster-admin',
      bindings('shop'),
      binding('tributary-agent-x', { kind: 'ClusterRole', name: 'cluster-admin' }),
    ],
    ['not view', bindings('shop'), binding('tributary-agent-x', { kind: 'ClusterRole', name: 'view' })],
    ['not in kube-system', bindings('kube-system'), binding('tributary-agent-x', ofAgents)],
    ['not in its own namespace', bindings(SYSTEM), binding('tributary-agent-x', ofAgents)],
    [
      'not to people',
      bindings('shop'),
      binding('tributary-agent-x', ofAgents, {
        kind: 'User',
        name: 'eve',
        apiGroup: 'rbac.authorization.k8s.io',
      }),
    ],
    [
      'not to another account',
      bindings('shop'),
      binding('tributary-agent-x', ofAgents, { kind: 'ServiceAccount', namespace: 'shop', name: 'default' }),
    ],
    ['not under another name', bindings('shop'), binding('x', ofAgents)],
    [
      'no tenant role outside of tenants',
      bindings('shop'),
      binding('x', { kind: 'ClusterRole', name: 'tributary-tenant' }),
    ],
    ['no Role elsewhere', `${RBAC}/namespaces/shop/roles`, role('tributary-peer-x', [])],
    ['no Role of another name', `${RBAC}/namespaces/${SYSTEM}/roles`, role('x', [])],
    [
      'no Role for all Secrets',
      `${RBAC}/namespaces/${SYSTEM}/roles`,
      role('tributary-peer-x', [secrets(['get'])]),
    ],
    [
      'no Role for the identity',
      `${RBAC}/namespaces/${SYSTEM}/roles`,
      role('tributary-peer-x', [secrets(['get'], [identity])]),
    ],
    [
      'no Role that writes',
      `${RBAC}/namespaces/${SYSTEM}/roles`,
      role('tributary-peer-x', [secrets(['update'], ['tributary-kubeconfig-x'])]),
    ],
    [
      'no account elsewhere',
      `/api/v1/namespaces/${SYSTEM}/serviceaccounts`,
      { metadata: { name: 'tributary-peer-x' } },
    ],
    [
      'no account of a home namespace',
      '/api/v1/namespaces/shop/serviceaccounts',
      { metadata: { name: 'tributary-peer-x' } },
    ],
    ['no namespace that is no tenant', '/api/v1/namespaces', { metadata: { name: 'mine' } }],
    [
      'no Deployment elsewhere',
      '/apis/apps/v1/namespaces/shop/deployments',
      { metadata: { name: 'tributary-peer-x' }, spec: deploymentSpec('x') },
    ],
    [
      'no Deployment under another account',
      `/apis/apps/v1/namespaces/${AGENTS}/deployments`,
      { metadata: { name: 'tributary-peer-x' }, spec: deploymentSpec('default') },
    ],
    [
      'no pod',
      `/api/v1/namespaces/${AGENTS}/pods`,
      { metadata: { name: 'x' }, spec: { containers: [{ name: 'x', image: 'x' }] } },
    ],
  ] as const)('makes %s', async (_what, path, body) => {
    const { status } = await cluster('POST', `${path}?dryRun=All`, body);
    expect([403, 422]).toContain(status);
  });

  test.each([
    '/api/v1/namespaces/shop',
    `/api/v1/namespaces/${SYSTEM}`,
    '/api/v1/namespaces/tributary-peers',
    `${RBAC}/clusterroles/tributary-agents`,
    `${bindings('kube-system')}/kube-proxy`,
    `${bindings(SYSTEM)}/tributary-cluster`,
    `${RBAC}/namespaces/${SYSTEM}/roles/tributary-cluster`,
    `/apis/apps/v1/namespaces/${SYSTEM}/deployments/tributary-cluster`,
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/tributary-agents',
    '/api/v1/nodes/paris',
  ])('does not delete %s', async (path) => {
    // What is not there would be refused for another reason.
    if (path.endsWith('kube-proxy'))
      await admin(
        'POST',
        bindings('kube-system'),
        binding('kube-proxy', { kind: 'ClusterRole', name: 'view' }),
      );
    const { status } = await cluster('DELETE', `${path}?dryRun=All`);
    expect([403, 422]).toContain(status);
  });

  test('makes and deletes the Node-less, harmless things that an agent needs', async () => {
    const made = await cluster(
      'POST',
      `${bindings('shop')}?dryRun=All`,
      binding('tributary-agent-x', ofAgents),
    );
    expect(made).toMatchObject({ status: 201 });
    const own = role('tributary-peer-x', [secrets(['get', 'list', 'watch'], ['tributary-kubeconfig-x'])]);
    expect(await cluster('POST', `${RBAC}/namespaces/${SYSTEM}/roles?dryRun=All`, own)).toMatchObject({
      status: 201,
    });
  });
});

function deploymentSpec(serviceAccountName: string): object {
  const labels = { app: 'x' };
  return {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { serviceAccountName, containers: [{ name: 'x', image: 'x' }] } },
  };
}
