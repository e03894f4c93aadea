import { expect, test } from '@jest/globals';
import { forgeManualTenant } from '../../../../src/hosting/tenants/manual-tenant.ts';
import { PEER_RIGHTS } from '../../../../src/hosting/tenants/peer-rights.ts';
import { tenantPolicyLines } from './support/tenant-policy-names.ts';

const objects = forgeManualTenant({ peer: 'rome', namespaces: ['a', 'b'] });
const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);

test('a tenant is these objects, in this order', () => {
  const tenant = (namespace: string): string[] => [
    `Namespace /${namespace}`,
    `ResourceQuota ${namespace}/tributary`,
    `LimitRange ${namespace}/tributary`,
    `ServiceAccount ${namespace}/default`,
    `NetworkPolicy ${namespace}/tributary-ingress`,
    `NetworkPolicy ${namespace}/tributary-egress`,
    `NetworkPolicy ${namespace}/tributary`,
    `Role ${namespace}/tributary-peer`,
    `RoleBinding ${namespace}/tributary-peer`,
    `Role ${namespace}/tributary-tenant-logs`,
    `RoleBinding ${namespace}/tributary-tenant-logs`,
  ];
  expect(names).toEqual([
    'Namespace /tributary-peers',
    'ServiceAccount tributary-peers/rome',
    ...tenantPolicyLines('/'),
    ...tenant('a'),
    ...tenant('b'),
  ]);
});

test('nothing is granted cluster-wide, and the account is in none of the tenant namespaces', () => {
  expect(names.filter((name) => name.startsWith('Cluster'))).toEqual([]);
  const peer = { namespace: 'tributary-peers', name: 'rome' };
  const own = { namespace: 'tributary-system', name: 'tributary-cluster' };
  for (const binding of objects.filter(({ kind }) => kind === 'RoleBinding')) {
    const account = binding.metadata.name === 'tributary-peer' ? peer : own;
    expect(binding).toMatchObject({ subjects: [{ kind: 'ServiceAccount', ...account }] });
  }
});

test.each(['baseline', 'restricted'] as const)('Pod Security %s is enforced', (podSecurity) => {
  const made = forgeManualTenant({ peer: 'rome', namespaces: ['a'], podSecurity });
  expect(made.find(({ metadata }) => metadata.name === 'a')?.metadata.labels).toMatchObject({
    'tributary.dev/peer': 'rome',
    'pod-security.kubernetes.io/enforce': podSecurity,
    'pod-security.kubernetes.io/enforce-version': 'latest',
  });
});

const annotationsOf = (made: ReturnType<typeof forgeManualTenant>): Record<string, string> | undefined =>
  made.find(({ kind, metadata }) => kind === 'Namespace' && metadata.name === 'a')?.metadata.annotations;

test('where and as what its pods run is written on its namespaces, as for a negotiated tenant', () => {
  const made = forgeManualTenant({
    peer: 'rome',
    namespaces: ['a'],
    quota: { pods: '5', 'requests.storage': '1Gi' },
    runtimeClassName: 'gvisor',
    nodeSelector: { 'example.com/lends': 'yes', a: 'b' },
    tolerations: [{ key: 'example.com/guests', operator: 'Exists' }],
    storageClasses: ['slow', 'fast'],
    keepForSeconds: 60,
  });
  expect(annotationsOf(made)).toMatchObject({
    'tributary.dev/runtime-class': 'gvisor',
    'tributary.dev/node-selector': 'a=b,example.com/lends=yes',
    'scheduler.alpha.kubernetes.io/node-selector': 'a=b,example.com/lends=yes',
    'tributary.dev/tolerations': '[{"key":"example.com/guests","operator":"Exists"}]',
    'tributary.dev/storage-classes': 'fast,slow',
    'tributary.dev/keep-for': '60',
  });
});

test('who says nothing gets a day, no storage, and pods kept apart from every private range', () => {
  const made = forgeManualTenant({ peer: 'rome', namespaces: ['a'] });
  expect(annotationsOf(made)).toMatchObject({
    'tributary.dev/keep-for': '86400',
    'tributary.dev/storage-classes': '',
  });
  const policyOf = (more: object): string =>
    JSON.stringify(
      forgeManualTenant({ peer: 'rome', namespaces: ['a'], ...more }).filter(
        ({ kind }) => kind === 'NetworkPolicy',
      ),
    );
  expect(policyOf({})).toContain('10.0.0.0/8');
  expect(policyOf({ ownCidrs: ['10.1.0.0/16'] })).not.toContain('10.0.0.0/8');
  expect(policyOf({ ownCidrs: ['10.1.0.0/16'] })).toContain('10.1.0.0/16');
  expect(forgeManualTenant({ peer: 'rome', namespaces: ['a'], isolation: 'None' })).not.toContainEqual(
    expect.objectContaining({ kind: 'NetworkPolicy' }),
  );
});

test.each([
  [{ peer: 'rome', namespaces: ['a'], storageClasses: ['fast'] }, 'requests.storage'],
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
  expect(() => forgeManualTenant(tenant)).toThrow(message);
});

test('no right is written down twice, none without a reason', () => {
  const resources = PEER_RIGHTS.map(({ resource }) => resource);
  expect(new Set(resources).size).toBe(resources.length);
  expect(PEER_RIGHTS.filter(({ why }) => why.length < 10)).toEqual([]);
});
