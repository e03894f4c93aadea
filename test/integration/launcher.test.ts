import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PodLauncher } from '../../src/agent/launch-pods.ts';
import type { Agent } from '../../src/agent/parts.ts';
import { startPeer } from '../../src/agent/peer.ts';
import { tenantKubeconfigCommand } from '../../src/cli/manifests-tenant-kubeconfig.ts';
import { tenantCommand } from '../../src/cli/manifests-tenant.ts';
import { openTokenIssuer } from '../../src/cli/manifests-token-issuer.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { parseConfig } from '../../src/config.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger, silentLogger } from '../../src/lib/log.ts';
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

  /** Writes an object, or its status, as it is; again where a controller was faster. */
  const replaced = async (path: string): Promise<number> => {
    for (;;) {
      const { body } = await admin('GET', path.replace(/\/status$/, ''));
      const { status } = await agentA('PUT', path, JSON.parse(body) as object);
      if (status !== 409) return status;
    }
  };

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
    expect(await replaced('/api/v1/nodes/paris')).toBe(422);
    expect(await replaced('/api/v1/nodes/paris/status')).toBe(422);
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
      expect(await replaced(`${path}/status`)).toBe(status);
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { nodeName: name, containers: [{ name: 'main', image: 'example/none:1' }] },
      };
      expect(await admin('POST', '/api/v1/namespaces/default/pods', pod)).toMatchObject({ status: 201 });
      const there = `/api/v1/namespaces/default/pods/${name}`;
      expect(await replaced(`${there}/status`)).toBe(status);
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

describe('an agent under the account that was made for it', () => {
  const C = 'c'.repeat(26);
  const lines: { level: string; message: string; error?: string }[] = [];
  let agent: Agent;
  let folder: string;

  beforeAll(async () => {
    await lab.apply(await printed(tenantCommand, ['--peer', 'rome', '--namespace', 'rome-shop']));
    const { kubeconfig, server, pki } = lab.cluster;
    const args = ['--peer', 'rome', '--namespace', 'rome-shop', '--kubeconfig', kubeconfig];
    const foreign = await printed(
      async (args, io) => tenantKubeconfigCommand(args, io, openTokenIssuer),
      args,
    );
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const secret = wanted(C, [], []).kubeconfigSecret;
    await admin('POST', `/api/v1/namespaces/${SYSTEM}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret.name },
      data: { kubeconfig: base64(foreign) },
    });
    const made = await admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'VirtualNode',
      metadata: { name: 'vn-rome', labels: { 'tributary.dev/provider': C } },
      spec: {
        nodeName: 'rome',
        kubeconfigSecretRef: secret,
        resources: { cpu: '4', memory: '4Gi', pods: '10' },
        namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'rome-shop' }],
      },
    });
    expect(made).toMatchObject({ status: 201 });
    await launcher.ensure(wanted(C, ['rome'], ['shop']), signal);
    folder = mkdtempSync(join(tmpdir(), 'tributary-launcher-'));
    const { token } = await lab.tokenOf(account(C));
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'x',
      clusters: [
        { name: 'x', cluster: { server, 'certificate-authority-data': base64(pki.authority.cert) } },
      ],
      users: [{ name: 'x', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    };
    writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(config), { mode: 0o600 });
    const options = {
      kubeconfig: join(folder, 'kubeconfig'),
      'virtual-node': 'vn-rome',
      'node-address': '127.0.0.1',
      'kubelet-port': '0',
      'ops-port': '0',
    };
    agent = await startPeer(
      {
        config: parseConfig({ options, env: {}, hostname: 'test' }),
        clock: systemClock,
        log: createLogger({
          level: 'debug',
          now: () => 0,
          write: (line) => lines.push(JSON.parse(line) as (typeof lines)[number]),
        }),
      },
      signal,
    );
  }, TIMEOUT_MS);

  afterAll(async () => {
    await agent?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  const shown = async <T>(path: string): Promise<T | undefined> => {
    const { status, body } = await admin('GET', path);
    return status === 200 ? (JSON.parse(body) as T) : undefined;
  };
  interface Shown {
    status?: { phase?: string; conditions?: { type: string; status: string }[] };
  }
  const ready = async (): Promise<boolean> =>
    (await shown<Shown>('/api/v1/nodes/rome'))?.status?.conditions?.some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    ) === true;
  const POD = '/api/v1/namespaces/shop/pods/hello';

  test(
    'has all the rights that it needs: Node, pod, its end, and its own',
    async () => {
      await eventually('the Node is Ready', ready, 30_000);
      await eventually(
        'shop has its account',
        async () => (await shown('/api/v1/namespaces/shop/serviceaccounts/default')) !== undefined,
      );
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'hello' },
        spec: {
          nodeName: 'rome',
          tolerations: [{ operator: 'Exists' }],
          automountServiceAccountToken: false,
          containers: [{ name: 'main', image: 'example/none:1' }],
        },
      };
      expect(await admin('POST', '/api/v1/namespaces/shop/pods', pod)).toMatchObject({ status: 201 });
      const remote = '/api/v1/namespaces/rome-shop/pods/hello';
      await eventually('it runs over there', async () => (await shown(remote)) !== undefined, 30_000);
      await eventually(
        'home shows that it runs',
        async () => (await shown<Shown>(POD))?.status?.phase === 'Running',
        30_000,
      );
      await admin('DELETE', POD);
      await eventually(
        'it is gone on both sides',
        async () => !(await shown(POD)) && !(await shown(remote)),
        30_000,
      );
      await admin('DELETE', '/apis/tributary.dev/v1alpha1/virtualnodes/vn-rome');
      await eventually(
        'so is the Node',
        async () => (await shown('/api/v1/nodes/rome')) === undefined,
        30_000,
      );
      const refused = lines.filter((line) => /forbidden|denied|403|422/i.test(JSON.stringify(line)));
      expect(refused).toEqual([]);
    },
    TIMEOUT_MS,
  );
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
