import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AGENTS, LauncherLab, RBAC, SYSTEM, account } from '../support/labs/launcher-lab.ts';

/** Requests of the `cluster` role that a real API server refuses although its rights alone would permit them. */

const B = 'b'.repeat(26);
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

let lab: LauncherLab;

beforeAll(async () => {
  lab = await LauncherLab.up();
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'paris' } };
  await lab.admin('POST', '/api/v1/nodes', node);
});

afterAll(async () => lab?.down());

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
    ['no webhook configuration', `${ADMISSION}/mutatingwebhookconfigurations`, { metadata: { name: 'x' } }],
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
    const { status } = await lab.role('POST', `${path}?dryRun=All`, body);
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
    // A missing object would be refused for another reason.
    if (path.endsWith('kube-proxy'))
      await lab.admin(
        'POST',
        bindings('kube-system'),
        binding('kube-proxy', { kind: 'ClusterRole', name: 'view' }),
      );
    const { status } = await lab.role('DELETE', `${path}?dryRun=All`);
    expect([403, 422]).toContain(status);
  });

  test('makes and deletes the Node-less, harmless things that an agent needs', async () => {
    const made = await lab.role(
      'POST',
      `${bindings('shop')}?dryRun=All`,
      binding('tributary-agent-x', ofAgents),
    );
    expect(made).toMatchObject({ status: 201 });
    const own = role('tributary-peer-x', [secrets(['get', 'list', 'watch'], ['tributary-kubeconfig-x'])]);
    expect(await lab.role('POST', `${RBAC}/namespaces/${SYSTEM}/roles?dryRun=All`, own)).toMatchObject({
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
