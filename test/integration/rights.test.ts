import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { KubeApi } from '../../lab/kube-api.ts';
import {
  CLUSTER_RIGHTS,
  GATEWAY_RIGHTS,
  NODE_ROLE_RIGHTS,
  rightsAt,
} from '../../src/deploy/rights/cluster.ts';
import { groupAndResource, rulesOf, type Right } from '../../src/api/rbac.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { PEER_RIGHTS } from '../../src/hosting/tenants/peer-rights.ts';
import {
  AGENT_AUTHENTICATION_RIGHTS,
  AGENT_CLUSTER_RIGHTS,
  AGENT_KUBECONFIG_RIGHTS,
  AGENT_LEASE_RIGHTS,
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
} from '../../src/deploy/rights/agent.ts';
import { UNINSTALL_RIGHTS } from '../../src/deploy/rights/uninstall.ts';
import { forgeUninstallHook, UNINSTALL_ACCOUNT } from '../../src/deploy/installation/uninstall-hook.ts';
import { SETTINGS_RIGHTS } from '../../src/deploy/rights/settings.ts';
import {
  allowed,
  expected,
  filledIn,
  servedResources,
  serviceAccount,
  type Account,
} from '../support/labs/access-reviews.ts';
import { short } from '../support/long.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster, printed, type AccountRef, type Caller } from '../support/labs/rights-cluster.ts';

/**
 * The rights that are written down, compared with what a real API server allows. One cluster plays both sides:
 * the peer `rome` has the tenant namespace `rome-shop`, the agent of virtual node `milan` offloads `shop`.
 */

/** What Kubernetes itself gives to every service account, by ClusterRoles it keeps up to date. */
const EVERYBODYS: readonly Right[] = [
  {
    resource: 'selfsubjectaccessreviews.authorization.k8s.io',
    verbs: ['create'],
    why: 'system:basic-user',
  },
  {
    resource: 'selfsubjectrulesreviews.authorization.k8s.io',
    verbs: ['create'],
    why: 'system:basic-user',
  },
  {
    resource: 'selfsubjectreviews.authentication.k8s.io',
    verbs: ['create'],
    why: 'system:basic-user',
  },
];
/** Likewise: system:discovery, system:public-info-viewer, system:service-account-issuer-discovery. */
const EVERYBODYS_URLS = [
  '/.well-known/openid-configuration',
  '/.well-known/openid-configuration/',
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/openid/v1/jwks',
  '/openid/v1/jwks/',
  '/readyz',
  '/version',
  '/version/',
];

/** Accounts and namespaces of which thousands of single questions would only repeat, in every run, what a rules review says. */
const ALL =
  short('roles and namespaces whose every right is asked one by one', { short: 'none', long: 'all' }) ===
  'all';
const more = (namespaces: readonly string[]): readonly string[] => (ALL ? namespaces : []);
const testWhere = (isAsked: boolean): typeof test | typeof test.skip => (isAsked ? test : test.skip);
const PEER = serviceAccount('tributary-peers', 'rome');
const AGENT = serviceAccount('tributary-system', 'tributary-peer-milan');
const CLUSTER = serviceAccount('tributary-system', 'tributary-cluster');
const GATEWAY = serviceAccount('tributary-network', 'tributary-gateway');
const NODE = serviceAccount('tributary-network', 'tributary-node');
const UNINSTALL = serviceAccount(UNINSTALL_ACCOUNT.namespace, UNINSTALL_ACCOUNT.name);
const PLACEHOLDERS = { node: 'milan', 'virtual-node': 'milan', secret: 'milan-kubeconfig' };
const NAMES = Object.fromEntries(Object.entries(PLACEHOLDERS).map(([key, name]) => [`<${key}>`, name]));

const keyOf = (right: Pick<Right, 'resource'>): string => {
  const { group, resource } = groupAndResource(right);
  return `${group}/${resource}`;
};

/** `group/resource` of rights to named objects, and their names. */
function namedIn(tables: readonly (readonly Right[])[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { names = [], ...right } of tables.flat()) {
    const key = keyOf(right);
    const own = names.map((name) => filledIn(name, NAMES));
    if (own.length > 0) found.set(key, (found.get(key) ?? new Set()).union(new Set(own)));
  }
  return found;
}

/**
 * What tables give to named objects is asked for each of those names and one other; the rules review shows that there
 * are no others.
 */
async function expectNamed(
  account: Account,
  namespace: string,
  tables: readonly (readonly Right[])[],
): Promise<void> {
  for (const [key, names] of namedIn(tables)) {
    const own = tables.flat().filter((right) => keyOf(right) === key);
    for (const name of [...names, 'another']) {
      const may = await allowed(api, account, [key], { namespace, name });
      expect({ name, may }).toEqual({ name, may: expected([own], name, NAMES) });
    }
  }
}

/** The review needs a namespace; cluster-wide rights are in every answer. */
async function expectRules(
  account: AccountRef,
  namespace: string | undefined,
  tables: readonly (readonly Right[])[],
): Promise<void> {
  const rules = await rulesIn(await lab.as(account), namespace ?? 'kube-public');
  expect(flat(rules.resourceRules)).toEqual(flat(rulesOf(tables.flat(), PLACEHOLDERS)));
}

const CONTAINER = { name: 'main', image: 'example/none:1' };

let lab: RightsCluster;
let api: KubeApi;
let resources: string[];

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ api } = lab.cluster);
  const image = ['--image', 'tributary:1'];
  await lab.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }));
  await lab.apply(await printed(manifestsCommand, ['cluster', ...image]));
  await lab.apply(await printed(manifestsCommand, ['gateway', ...image]));
  await lab.apply(await printed(manifestsCommand, ['node', ...image]));
  await lab.apply(
    await printed(manifestsCommand, ['peer', '--virtual-node', 'milan', '--namespaces', 'shop', ...image]),
  );
  await lab.apply(await printed(tenantCommand, ['--peer', 'rome', '--namespace', 'rome-shop']));
  const hook = forgeUninstallHook({ image: 'tributary:1', priorityClasses: false });
  await lab.apply(printYaml(hook.filter(({ kind }) => kind !== 'Job')));
  resources = await servedResources(api);
});

afterAll(async () => lab?.down());

interface Rules {
  resourceRules: { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }[];
  nonResourceRules: { nonResourceURLs: string[]; verbs: string[] }[];
  incomplete: boolean;
}

/** SelfSubjectRulesReview, with the account's own token. */
async function rulesIn(call: Caller, namespace: string): Promise<Rules> {
  const { body } = await call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  });
  return (JSON.parse(body) as { status: Rules }).status;
}

/** One line per group, resource, name and verb, whatever rule it comes from. */
const flat = (rules: readonly Partial<Rules['resourceRules'][number]>[]): string[] =>
  [
    ...new Set(
      rules.flatMap(({ apiGroups = [], resources = [], resourceNames = [''], verbs = [] }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            resourceNames.flatMap((name) => verbs.map((verb) => `${verb} ${group}/${resource} ${name}`)),
          ),
        ),
      ),
    ),
  ].toSorted();

describe('what the API server allows is what is written down', () => {
  test('for a peer, in its tenant namespace and anywhere else', async () => {
    const everywhere = expected([EVERYBODYS]);
    expect(resources.length).toBeGreaterThan(100);
    expect(await allowed(api, PEER, resources, { namespace: 'rome-shop' })).toEqual(
      expected([PEER_RIGHTS, EVERYBODYS]),
    );
    for (const namespace of ['', ...more(['shop', 'tributary-peers'])]) {
      expect({ namespace, may: await allowed(api, PEER, resources, { namespace }) }).toEqual({
        namespace,
        may: everywhere,
      });
    }
  });

  test.each([
    ['rome-shop', PEER_RIGHTS],
    ['default', []],
    ['kube-system', []],
    ['tributary-peers', []],
    ['tributary-system', []],
  ] as const)('for a peer, by its own rules review in %s', async (namespace, table) => {
    const rules = await rulesIn(await lab.as({ namespace: 'tributary-peers', name: 'rome' }), namespace);
    expect(flat(rules.resourceRules)).toEqual(flat(rulesOf([...table, ...EVERYBODYS])));
    const urls = rules.nonResourceRules.flatMap((rule) => rule.nonResourceURLs);
    expect([...new Set(urls)].toSorted()).toEqual(EVERYBODYS_URLS);
    expect(new Set(rules.nonResourceRules.flatMap((rule) => rule.verbs))).toEqual(new Set(['get']));
  });

  const cluster = [AGENT_CLUSTER_RIGHTS, EVERYBODYS];
  describe.each([
    ['', cluster],
    ['shop', [...cluster, AGENT_NAMESPACE_RIGHTS]],
    ['default', [...cluster, AGENT_NODE_EVENT_RIGHTS]],
    ['tributary-system', [...cluster, AGENT_KUBECONFIG_RIGHTS, SETTINGS_RIGHTS]],
    ['kube-node-lease', [...cluster, AGENT_LEASE_RIGHTS]],
    ['kube-system', [...cluster, AGENT_AUTHENTICATION_RIGHTS]],
    ['rome-shop', cluster],
  ])('for an agent, in namespace "%s"', (namespace, tables) => {
    testWhere(['shop', ...more([''])].includes(namespace))(
      'by one question for each resource and verb',
      async () => expect(await allowed(api, AGENT, resources, { namespace })).toEqual(expected(tables)),
    );

    testWhere(namedIn(tables).size > 0)('by the names of objects', async () =>
      expectNamed(AGENT, namespace, tables),
    );

    test('by its own rules review', async () => {
      const account = { namespace: 'tributary-system', name: 'tributary-peer-milan' };
      await expectRules(account, namespace === '' ? undefined : namespace, tables);
    });
  });

  describe.each([
    ['cluster', CLUSTER, CLUSTER_RIGHTS],
    ['gateway', GATEWAY, GATEWAY_RIGHTS],
    ['node', NODE, NODE_ROLE_RIGHTS],
    ['uninstalling', UNINSTALL, UNINSTALL_RIGHTS],
  ] as const)('for the %s role', (_role, account, places) => {
    const [, , of = '', name = ''] = account.user.split(':');
    const namespaces = [...new Set(places.flatMap(({ namespace }) => namespace ?? []))];
    const tablesIn = (namespace?: string): (readonly Right[])[] => [
      rightsAt(places),
      namespaces.includes(namespace ?? '') ? rightsAt(places, namespace) : [],
      EVERYBODYS,
    ];

    testWhere(ALL).each([undefined, ...namespaces])(
      'in namespace %s, by one question for each resource and verb',
      async (namespace) => {
        const may = await allowed(api, account, resources, { namespace: namespace ?? '' });
        expect(may).toEqual(expected(tablesIn(namespace)));
      },
    );

    test.each([undefined, ...namespaces].filter((namespace) => namedIn(tablesIn(namespace)).size > 0))(
      'in namespace %s, by the names of objects',
      async (namespace) => expectNamed(account, namespace ?? '', tablesIn(namespace)),
    );

    test.each([undefined, 'kube-system', 'shop', ...namespaces])(
      'in namespace %s, by its own rules review',
      async (namespace) => expectRules({ namespace: of, name }, namespace, tablesIn(namespace)),
    );
  });
});

describe('the fence around an agent', () => {
  let agent: Caller;
  const node = (name: string): object => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const lease = (name: string): object => ({
    ...node(name),
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
  });
  const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const podPath = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;

  beforeAll(async () => {
    agent = await lab.as({ namespace: 'tributary-system', name: 'tributary-peer-milan' });
    await eventually(
      'the fence is in force',
      async () => (await agent('POST', '/api/v1/nodes?dryRun=All', node('other'))).status === 422,
    );
    for (const [name, nodeName] of [
      ['ours', 'milan'],
      ['others', 'elsewhere'],
      ['pending', undefined],
    ]) {
      const spec = {
        containers: [CONTAINER],
        tolerations: [{ operator: 'Exists' }],
        schedulerName: 'none',
        ...(nodeName && { nodeName }),
      };
      const { status, body } = await api.call('POST', '/api/v1/namespaces/default/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec,
      });
      expect({ status, body }).toMatchObject({ status: 201 });
    }
  });

  test('it makes its own Node and Leases and no other', async () => {
    expect(await agent('POST', '/api/v1/nodes', node('other'))).toMatchObject({ status: 422 });
    expect(await agent('POST', LEASES, lease('other'))).toMatchObject({ status: 422 });
    expect(await agent('POST', '/api/v1/nodes?dryRun=All', node('milan'))).toMatchObject({ status: 201 });
    for (const name of ['milan', 'tributary-agent.milan'])
      expect(await agent('POST', LEASES, lease(name))).toMatchObject({ status: 201 });
  });

  test.each(['others', 'pending'])('it neither deletes nor reports the pod %s', async (name) => {
    const { body } = await agent('GET', podPath(name));
    expect(await agent('PUT', `${podPath(name)}/status`, JSON.parse(body) as object)).toMatchObject({
      status: 422,
    });
    const deleted = await agent('DELETE', `${podPath(name)}?gracePeriodSeconds=0`);
    expect(deleted).toMatchObject({ status: 422 });
    expect(deleted.body).toContain('this agent may write to pods on node milan only');
  });

  test('it reports and deletes a pod of a namespace that is not offloaded, on its own node', async () => {
    const { body } = await agent('GET', podPath('ours'));
    expect(await agent('PUT', `${podPath('ours')}/status`, JSON.parse(body) as object)).toMatchObject({
      status: 200,
    });
    expect(await agent('DELETE', `${podPath('ours')}?gracePeriodSeconds=0`)).toMatchObject({ status: 200 });
  });
});

test('a gateway makes its own objects, no others, and no token of another account', async () => {
  const gateway = await lab.as({ namespace: 'tributary-network', name: 'tributary-gateway' });
  const make = async (name: string, more: object = {}): Promise<number> => {
    const path = '/api/v1/namespaces/tributary-system/secrets?dryRun=All';
    const metadata = { name, annotations: { 'kubernetes.io/service-account.name': 'tributary-cluster' } };
    return (await gateway('POST', path, { apiVersion: 'v1', kind: 'Secret', metadata, ...more })).status;
  };
  await eventually('the fence is in force', async () => (await make('tributary-preshared')) === 422);
  expect(await make('tributary-wireguard', { type: 'kubernetes.io/service-account-token' })).toBe(422);
  expect(await make('tributary-wireguard')).toBe(201);
  for (const [name, status] of [
    ['tributary-cluster', 422],
    ['tributary-gateway', 201],
  ] as const) {
    const path = '/apis/coordination.k8s.io/v1/namespaces/tributary-system/leases?dryRun=All';
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name } };
    expect(await gateway('POST', path, lease)).toMatchObject({ status });
  }
});

test.each([
  ['tributary-system', 'tributary-cluster'],
  ['tributary-system', 'tributary-peer-milan'],
  ['tributary-network', 'tributary-gateway'],
])('in %s the pod of %s passes Pod Security', async (namespace, name) => {
  const deployment = await api.get<{ spec: { template: object } }>(
    `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`,
  );
  const template = deployment?.spec.template as { metadata: object; spec: object };
  const { status, body } = await api.call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, generateName: 'probe-' },
    spec: template.spec,
  });
  expect({ status, body }).toMatchObject({ status: 201 });
});
