import { expect, test } from '@jest/globals';
import type * as models from '@kubernetes/client-node';
import { groupAndResource } from '../../../src/api/rbac.ts';
import { LABEL_PEER } from '../../../src/api/tenant-labels.ts';
import { forgeCluster } from '../../../src/deploy/cluster.ts';
import { PEER_RIGHTS } from '../../../src/hosting/tenants/peer-rights.ts';

/**
 * Which policies an API server judges a write by. Each of them costs it about a tenth of a millisecond, if only to find that it is
 * about somebody else, and those over all resources do so for each write in the whole cluster (decision 73).
 */

type Rule = models.V1NamedRuleWithOperations;
type Policy = models.V1ValidatingAdmissionPolicy;

interface Write {
  group?: string;
  /** With its subresource. */
  resource: string;
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
}

const policies = forgeCluster({ image: 'tributary:1' }).filter(
  (object): object is Policy & typeof object => object.kind === 'ValidatingAdmissionPolicy',
);

const isAbout =
  ({ group = '', resource, operation }: Write) =>
  ({ apiGroups = [], resources = [], operations = [] }: Rule): boolean => {
    const [main = '', sub] = resource.split('/');
    const names = ['*/*', resource, `${main}/*`, ...(sub === undefined ? ['*'] : [`*/${sub}`])];
    return (
      [group, '*'].some((it) => apiGroups.includes(it)) &&
      names.some((it) => resources.includes(it)) &&
      [operation, '*'].some((it) => operations.includes(it))
    );
  };

function judging(write: Write, labels: Record<string, string>): string[] {
  return policies
    .filter(({ spec }) => {
      const {
        resourceRules = [],
        excludeResourceRules = [],
        namespaceSelector,
      } = spec?.matchConstraints ?? {};
      const isThere = ({ key, operator }: models.V1LabelSelectorRequirement): boolean =>
        operator === (Object.hasOwn(labels, key) ? 'Exists' : 'DoesNotExist');
      return (
        resourceRules.some(isAbout(write)) &&
        !excludeResourceRules.some(isAbout(write)) &&
        (namespaceSelector?.matchExpressions ?? []).every(isThere)
      );
    })
    .map(({ metadata }) => (metadata?.name ?? '').replace('tributary-', ''));
}

test.each<[what: string, write: Write, names: string[]]>([
  ['a change of a ConfigMap', { resource: 'configmaps', operation: 'UPDATE' }, []],
  ['an Event', { resource: 'events', operation: 'CREATE' }, []],
  ['a pod', { resource: 'pods', operation: 'CREATE' }, ['release', 'tether-pods', 'guardian']],
  [
    "a kubelet's word about a pod",
    { resource: 'pods/status', operation: 'UPDATE' },
    ['agents', 'release', 'guardian'],
  ],
  [
    'a heartbeat of a node',
    { group: 'coordination.k8s.io', resource: 'leases', operation: 'UPDATE' },
    ['agents'],
  ],
])('elsewhere: %s', (_, write, names) => {
  expect(judging(write, {})).toEqual(names);
});

test.each<[what: string, write: Write, names: string[]]>([
  [
    'a pod',
    { resource: 'pods', operation: 'CREATE' },
    ['tenant-pods', 'release', 'tether-tenants', 'guardian'],
  ],
  [
    'a container that is put into a pod',
    { resource: 'pods/ephemeralcontainers', operation: 'UPDATE' },
    ['tenant-pods', 'tether-tenants'],
  ],
  [
    'a ConfigMap',
    { resource: 'configmaps', operation: 'CREATE' },
    ['tenant-data', 'tenant-ownership', 'tenant-metadata', 'tether-tenants'],
  ],
  [
    "a kubelet's word about a pod",
    { resource: 'pods/status', operation: 'UPDATE' },
    ['agents', 'release', 'tether-tenants', 'guardian'],
  ],
  ["a scheduler's word about a pod", { resource: 'pods/binding', operation: 'CREATE' }, ['tether-tenants']],
  ['an Event', { resource: 'events', operation: 'CREATE' }, ['tether-tenants']],
])('in a tenant namespace: %s', (_, write, names) => {
  expect(judging(write, { [LABEL_PEER]: 'rome' })).toEqual(names);
});

test('whatever a peer may write is judged in a tenant namespace', () => {
  const operations = { create: 'CREATE', update: 'UPDATE', patch: 'UPDATE', delete: 'DELETE' } as const;
  const isStream = /^pods\/(exec|attach|portforward)$/u;
  const writes = PEER_RIGHTS.map((right) => ({ ...groupAndResource(right), verbs: right.verbs }))
    .filter(({ resource }) => !isStream.test(resource))
    .flatMap(({ group, resource, verbs }) =>
      Object.entries(operations)
        .filter(([verb]) => verbs.some((it) => it === verb))
        .map(([, operation]) => ({ group, resource, operation })),
    );
  expect(writes.length).toBeGreaterThan(20);
  for (const write of writes) {
    const names = judging(write, { [LABEL_PEER]: 'rome' }).filter((name) => name.startsWith('tenant-'));
    expect({ write, names }).not.toEqual({ write, names: [] });
  }
});
