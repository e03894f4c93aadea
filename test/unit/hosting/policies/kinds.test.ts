import { expect, test } from '@jest/globals';
import {
  complaintOf,
  isReflectableGroup,
  judgeKinds,
  refusalOfKind,
} from '../../../../src/hosting/policies/kinds.ts';

const VERBS = ['list', 'watch', 'create', 'update', 'delete'];
const held = (group: string, resource: string, verbs = VERBS): Parameters<typeof judgeKinds>[1] => [
  { apiGroups: [group], resources: [resource], verbs },
];
const widgets = { group: 'shop.example', resource: 'widgets' };

test.each([
  ['', 'pods'],
  ['', 'persistentvolumeclaims'],
  ['apps', 'deployments'],
  ['batch', 'jobs'],
  ['policy', 'poddisruptionbudgets'],
  ['extensions', 'ingresses'],
  ['rbac.authorization.k8s.io', 'roles'],
  ['admissionregistration.k8s.io', 'validatingadmissionpolicies'],
  ['apiextensions.k8s.io', 'customresourcedefinitions'],
  ['apiregistration.k8s.io', 'apiservices'],
  ['certificates.k8s.io', 'certificatesigningrequests'],
  ['networking.k8s.io', 'networkpolicies'],
  ['storage.k8s.io', 'storageclasses'],
  ['scheduling.k8s.io', 'priorityclasses'],
  ['k8s.io', 'things'],
  ['tributary.dev', 'virtualnodes'],
  ['sub.tributary.dev', 'things'],
  ['route.openshift.io', 'routes'],
  ['kyverno.io', 'policies'],
  ['*', 'widgets'],
  ['shop.example', '*'],
  ['shop.example', 'widgets/status'],
])('%s %s is refused whatever a policy says', (group, resource) => {
  expect(refusalOfKind({ group, resource })).toBeDefined();
  expect(judgeKinds([{ group, resource }], held('*', '*', ['*'])).granted).toEqual([]);
});

test.each([
  ['shop.example', 'widgets'],
  ['gateway.networking.k8s.io', 'httproutes'],
  ['cluster.x-k8s.io', 'machines'],
  ['nottributary.dev', 'things'],
])('%s %s is up to the policy', (group, resource) => {
  expect(refusalOfKind({ group, resource })).toBeUndefined();
});

test.each([
  [[], 'missing'],
  [held('shop.example', 'widgets'), 'granted'],
  [held('*', '*', ['*']), 'granted'],
  [held('shop.example', 'widgets', ['list', 'watch', 'create', 'update']), 'missing'],
  [held('shop.example', 'gadgets'), 'missing'],
  [held('other.example', 'widgets'), 'missing'],
  [
    [{ apiGroups: ['shop.example'], resources: ['widgets'], verbs: VERBS, resourceNames: ['one'] }],
    'missing',
  ],
  [
    [...(held('shop.example', 'widgets', ['list', 'watch']) ?? []), ...(held('*', 'widgets') ?? [])],
    'granted',
  ],
] as const)('with the rules %j widgets are %s', (rules, fate) => {
  expect(judgeKinds([widgets], rules as Parameters<typeof judgeKinds>[1])).toMatchObject({
    [fate]: [widgets],
  });
});

test('what is wrong names each kind, and what to do', () => {
  expect(complaintOf(judgeKinds([widgets], held('shop.example', 'widgets')))).toBeUndefined();
  const text = complaintOf(judgeKinds([widgets, { group: 'apps', resource: 'deployments' }]));
  expect(text).toContain('deployments.apps is one of Kubernetes');
  expect(text).toContain('widgets.shop.example');
  expect(text).toContain('tributary.dev/aggregate-to-lending: "true"');
});

test('the fence says what the policy says, of groups', () => {
  expect(isReflectableGroup('g')).toBe(
    "(g in ['gateway.networking.k8s.io'] || (g.contains('.') && !(g == 'k8s.io' || g.endsWith('.k8s.io') || " +
      "g == 'tributary.dev' || g.endsWith('.tributary.dev') || g == 'openshift.io' || g.endsWith('.openshift.io') || " +
      "g == 'cattle.io' || g.endsWith('.cattle.io') || g == 'kyverno.io' || g.endsWith('.kyverno.io') || " +
      "g == 'gatekeeper.sh' || g.endsWith('.gatekeeper.sh'))))",
  );
});
