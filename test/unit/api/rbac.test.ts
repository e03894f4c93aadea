import { expect, test } from '@jest/globals';
import { forgeBinding, forgeGrant, rulesOf } from '../../../src/api/rbac.ts';

const account = { namespace: 'tributary-system', name: 'agent' };

test('names with placeholders are filled in; a forgotten one is an error, not a rule that matches nothing', () => {
  const right = { resource: 'nodes', names: ['<node>'], verbs: ['get'], why: '' } as const;
  expect(rulesOf([right], { node: 'milan' })).toEqual([
    { apiGroups: [''], resources: ['nodes'], resourceNames: ['milan'], verbs: ['get'] },
  ]);
  expect(() => rulesOf([right])).toThrow('no value for <node>');
});

test.each([
  [undefined, 'ClusterRole', 'ClusterRoleBinding'],
  ['shop', 'Role', 'RoleBinding'],
])('a grant in namespace %s is a %s and a %s for one account', (namespace, role, binding) => {
  const grant = { name: 'x', ...(namespace !== undefined && { namespace }), labels: {}, account };
  const objects = forgeGrant({ ...grant, rules: [] });
  expect(objects.map(({ kind }) => kind)).toEqual([role, binding]);
  expect(objects[1]).toMatchObject({
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role, name: 'x' },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
  expect(objects.map(({ metadata }) => metadata.namespace)).toEqual([namespace, namespace]);
});

test('a binding to a role that Kubernetes ships makes no role', () => {
  const role = { kind: 'Role', name: 'extension-apiserver-authentication-reader' } as const;
  expect(forgeBinding(role, { name: 'x', namespace: 'kube-system', labels: {}, account })).toMatchObject({
    kind: 'RoleBinding',
    metadata: { name: 'x', namespace: 'kube-system' },
    roleRef: role,
  });
});

test('bind is for named roles only: without names it would be a way to every right', () => {
  const right = {
    resource: 'clusterroles.rbac.authorization.k8s.io',
    verbs: ['bind'],
    why: '',
  } as const;
  expect(() => rulesOf([right])).toThrow('without names');
  expect(() => rulesOf([{ ...right, names: [] }])).toThrow('without names');
  expect(rulesOf([{ ...right, names: ['tributary-tenant'] }])).toMatchObject([
    { verbs: ['bind'], resourceNames: ['tributary-tenant'] },
  ]);
});
