import { expect, test } from '@jest/globals';
import type { Manifest } from '../../../../src/api/manifest.ts';
import { draftContract } from '../../../../src/peering/contract.ts';
import * as rights from '../../../../src/peering/lending/rights.ts';
import { forgeHostingBase } from '../../../../src/hosting/base-objects.ts';
import { TENANT_RIGHTS } from '../../../../src/hosting/rights.ts';
import { forgeContractTenant, type ContractTenant } from '../../../../src/hosting/tenants/contract-tenant.ts';
import { NOW_MS, anOffer } from '../../peering/support/offers.ts';
import { tenantPolicyLines } from './support/tenant-policy-names.ts';

const consumer = 'a'.repeat(26);
const amounts = { cpu: '2', memory: '4Gi', pods: '10', storage: '10Gi', 'example.com/gpu': '1' };
const tenantOf = (more: Partial<ContractTenant> = {}): ContractTenant => ({
  consumer,
  contract: draftContract(anOffer({ consumer }), amounts, NOW_MS),
  amounts,
  policy: { peers: {} },
  ...more,
});
const forge = (tenant: ContractTenant): Manifest[] => {
  const { shared, tenants, account } = forgeContractTenant(tenant);
  return [...shared, ...tenants.flat(), ...account];
};
const find = (objects: readonly Manifest[], kind: string): Manifest & { spec?: { hard?: object } } =>
  objects.find((object) => object.kind === kind) as Manifest;

test('a tenant is these objects, the account last: before it, nobody can come in', () => {
  const objects = forge(tenantOf());
  expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)).toEqual(
    [
      `FlowSchema /tributary-peer-${consumer}`,
      'Namespace /tributary-abc-shop',
      'ResourceQuota tributary-abc-shop/tributary',
      'LimitRange tributary-abc-shop/tributary',
      'ServiceAccount tributary-abc-shop/default',
      'NetworkPolicy tributary-abc-shop/tributary-ingress',
      'NetworkPolicy tributary-abc-shop/tributary-egress',
      'NetworkPolicy tributary-abc-shop/tributary',
      'RoleBinding tributary-abc-shop/tributary-peer',
      'RoleBinding tributary-abc-shop/tributary-tenant-logs',
      `ServiceAccount tributary-peers/${consumer}`,
    ],
  );
  for (const { metadata } of objects) {
    expect(metadata.labels).toMatchObject({
      'tributary.dev/peer': consumer,
      'tributary.dev/tenancy': 'contract',
    });
  }
});

test('the quota is the contract; what it does not name of cpu, memory and pods is none', () => {
  expect(find(forge(tenantOf()), 'ResourceQuota').spec?.hard).toMatchObject({
    'requests.cpu': '2',
    'requests.memory': '4Gi',
    pods: '10',
    'count/pods': '100',
    'requests.storage': '10Gi',
    'requests.example.com/gpu': '1',
    persistentvolumeclaims: '100',
  });
  expect(find(forge(tenantOf({ amounts: {} })), 'ResourceQuota').spec?.hard).toMatchObject({
    'requests.cpu': '0',
    'requests.memory': '0',
    pods: '0',
    'count/pods': '0',
    'requests.storage': '0',
    persistentvolumeclaims: '0',
  });
});

test('a tenant is kept apart by what the network knows, unless the policy wants none of that', () => {
  const network = {
    prefixes: ['100.99.0.0/16'],
    own: { inside: ['10.1.0.0/16'], nodes: ['192.168.7.4/32'], beside: [] },
  };
  const text = JSON.stringify(forge(tenantOf({ network })).filter(({ kind }) => kind === 'NetworkPolicy'));
  for (const part of [consumer, '100.99.0.0/16', '10.1.0.0/16', '192.168.7.4/32']) {
    expect(text).toContain(part);
  }
  expect(find(forge(tenantOf({ policy: { peers: {}, isolation: 'None' } })), 'NetworkPolicy')).toBe(
    undefined,
  );
});

test.each([
  [
    {},
    {
      'tributary.dev/max-priority': '0',
      'tributary.dev/on-end': 'Delete',
      'tributary.dev/extended-resources': 'example.com/gpu',
    },
  ],
  [{ onEnd: 'Keep', keepForSeconds: 60 } as const, { 'tributary.dev/on-end': 'Keep=60' }],
  [
    { maxPriority: -5, runtimeClassName: 'kata' },
    { 'tributary.dev/max-priority': '-5', 'tributary.dev/runtime-class': 'kata' },
  ],
  [{}, { 'tributary.dev/priority-classes': '' }],
  [{ priorityClasses: ['b', 'a'] }, { 'tributary.dev/priority-classes': 'a,b' }],
  [
    { nodeSelector: { b: '2', a: '1' } },
    { 'tributary.dev/node-selector': 'a=1,b=2', 'scheduler.alpha.kubernetes.io/node-selector': 'a=1,b=2' },
  ],
])('what the policy %j says is written on the namespace', (policy, annotations) => {
  const objects = forge(tenantOf({ policy: { peers: {}, ...policy } }));
  expect(find(objects, 'Namespace').metadata.annotations).toMatchObject({
    'tributary.dev/home-namespace': 'shop',
    ...annotations,
  });
});

test.each([
  [{}, '', ''],
  [{ ingressClasses: ['nginx', 'edge'] }, 'edge,nginx', ''],
  [{ ingressClasses: ['nginx'], ingressHosts: ['b.example', '*'] }, 'nginx', '*,b.example'],
])(
  'the ingress classes and hosts of %j are written on the namespace, none as none',
  (policy, classes, hosts) => {
    const objects = forge(tenantOf({ policy: { peers: {}, ...policy } }));
    expect(find(objects, 'Namespace').metadata.annotations).toMatchObject({
      'tributary.dev/ingress-classes': classes,
      'tributary.dev/ingress-hosts': hosts,
    });
  },
);

test('further kinds are counted, and in a Role of their own that goes to the peer', () => {
  const tenant = tenantOf({ kinds: [{ group: 'shop.example', resource: 'widgets' }] });
  expect(find(forge(tenant), 'ResourceQuota').spec?.hard).toMatchObject({
    'count/widgets.shop.example': '500',
  });
  expect(forgeContractTenant(tenant).kinds).toMatchObject([
    {
      kind: 'Role',
      metadata: { namespace: 'tributary-abc-shop', name: 'tributary-peer-kinds' },
      rules: [
        {
          apiGroups: ['shop.example'],
          resources: ['widgets'],
          verbs: ['list', 'watch', 'create', 'update', 'delete'],
        },
      ],
    },
    {
      kind: 'RoleBinding',
      roleRef: { kind: 'Role', name: 'tributary-peer-kinds' },
      subjects: [{ namespace: 'tributary-peers', name: consumer }],
    },
  ]);
  expect(forgeContractTenant(tenantOf()).kinds).toEqual([]);
});

test('Pod Security is the stricter of contract and policy', () => {
  const levelOf = (tenant: ContractTenant): string | undefined =>
    find(forge(tenant), 'Namespace').metadata.labels?.['pod-security.kubernetes.io/enforce'];
  const restricted = { ...tenantOf().contract, podSecurity: 'restricted' } as const;
  expect(levelOf(tenantOf())).toBe('baseline');
  expect(levelOf(tenantOf({ contract: restricted }))).toBe('restricted');
  expect(levelOf(tenantOf({ policy: { peers: {}, podSecurity: 'restricted' } }))).toBe('restricted');
});

test('rights: no right twice, each with its reason, no Secret cluster-wide, three roles to be given away', () => {
  const tables = Object.values(rights).filter(Array.isArray) as (typeof rights.LENDING_CLUSTER_RIGHTS)[];
  expect(tables).toHaveLength(4);
  const cluster = [...rights.LENDING_CLUSTER_RIGHTS, ...TENANT_RIGHTS];
  for (const table of [...tables, cluster]) {
    const lines = table.map(({ resource, names }) => `${resource} ${names?.join() ?? ''}`);
    expect(new Set(lines).size).toBe(lines.length);
    expect(table.filter(({ why }) => why.length < 15)).toEqual([]);
  }
  expect(cluster.filter(({ resource }) => /secrets|token|configmaps|^pods./.test(resource))).toEqual([]);
  // Ends what is left of a tenant; makes, changes and watches no pod.
  const onPods = cluster.filter(({ resource }) => resource === 'pods').flatMap(({ verbs }) => verbs);
  expect(onPods.filter((verb) => verb !== 'list' && verb !== 'delete')).toEqual([]);
  expect(cluster.filter(({ verbs }) => verbs.includes('bind'))).toMatchObject([
    {
      resource: 'clusterroles.rbac.authorization.k8s.io',
      names: ['tributary-tenant', 'tributary-tenant-logs'],
    },
    { resource: 'roles.rbac.authorization.k8s.io', names: ['tributary-peer-kinds'] },
  ]);
});

test('what people apply beforehand: no account, nothing of any peer', () => {
  const statics = forgeHostingBase({ namespace: 'tributary-system', name: 'tributary-cluster' });
  expect(statics.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    'Namespace tributary-peers',
    'ClusterRole tributary-tenant',
    'ClusterRole tributary-tenant-logs',
    ...tenantPolicyLines(''),
    'ValidatingAdmissionPolicy tributary-lending',
    'ValidatingAdmissionPolicyBinding tributary-lending',
    'ClusterRole tributary-lending-kinds',
    'ClusterRoleBinding tributary-lending-kinds',
    'PriorityLevelConfiguration tributary-peers',
  ]);
});
