import { expect, test } from '@jest/globals';
import { forgeTenant } from '../../../src/peering/tenant.ts';
import { PEER_RIGHTS } from '../../../src/peering/rights.ts';

const objects = forgeTenant({ peer: 'rome', namespaces: ['a', 'b'] });
const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);

test('a tenant is these objects, in this order', () => {
  const tenant = (namespace: string): string[] => [
    `Namespace /${namespace}`,
    `ResourceQuota ${namespace}/tributary`,
    `LimitRange ${namespace}/tributary`,
    `ServiceAccount ${namespace}/default`,
    `Role ${namespace}/tributary-peer`,
    `RoleBinding ${namespace}/tributary-peer`,
  ];
  expect(names).toEqual([
    'Namespace /tributary-peers',
    'ServiceAccount tributary-peers/rome',
    'ValidatingAdmissionPolicy /tributary-tenants',
    'ValidatingAdmissionPolicyBinding /tributary-tenants',
    ...tenant('a'),
    ...tenant('b'),
  ]);
});

test('nothing is granted cluster-wide, and the account is in none of the tenant namespaces', () => {
  expect(names.filter((name) => name.startsWith('Cluster'))).toEqual([]);
  for (const binding of objects.filter(({ kind }) => kind === 'RoleBinding')) {
    expect(binding).toMatchObject({
      subjects: [{ kind: 'ServiceAccount', namespace: 'tributary-peers', name: 'rome' }],
    });
  }
});

test.each(['baseline', 'restricted'] as const)('Pod Security %s is enforced', (podSecurity) => {
  const made = forgeTenant({ peer: 'rome', namespaces: ['a'], podSecurity });
  expect(made.find(({ metadata }) => metadata.name === 'a')?.metadata.labels).toMatchObject({
    'tributary.dev/peer': 'rome',
    'pod-security.kubernetes.io/enforce': podSecurity,
    'pod-security.kubernetes.io/enforce-version': 'latest',
  });
});

test.each([
  [{ peer: 'Rome', namespaces: ['a'] }, 'peer "Rome" is not a DNS name'],
  [{ peer: 'default', namespaces: ['a'] }, 'every namespace has'],
  [{ peer: 'rome', namespaces: [] }, 'no tenant namespace is given'],
  [{ peer: 'rome', namespaces: ['a', 'a'] }, 'tenant namespace "a" is given twice'],
  [{ peer: 'rome', namespaces: ['kube-system'] }, 'is reserved'],
  [{ peer: 'rome', namespaces: ['default'] }, 'is reserved'],
  [{ peer: 'rome', namespaces: ['tributary-peers'] }, 'is reserved'],
  [{ peer: 'rome', namespaces: ['tributary-network'] }, 'is reserved'],
  [{ peer: 'rome', namespaces: ['n'.repeat(64)] }, 'at most 63'],
])('refuses %j', (tenant, message) => {
  expect(() => forgeTenant(tenant)).toThrow(message);
});

test('no right is written down twice, none without a reason', () => {
  const resources = PEER_RIGHTS.map(({ group, resource }) => `${group}/${resource}`);
  expect(new Set(resources).size).toBe(resources.length);
  expect(PEER_RIGHTS.filter(({ why }) => why.length < 10)).toEqual([]);
});
