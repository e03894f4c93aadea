import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KubeApi } from '../../lab/kube-api.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { draftContract } from '../../src/peering/contract.ts';
import { forgeContractTenant } from '../../src/hosting/tenants/contract-tenant.ts';
import { eventually } from '../support/eventually.ts';
import { allowed, servedResources, serviceAccount } from '../support/labs/access-reviews.ts';
import { RightsCluster, printed, type Caller } from '../support/labs/rights-cluster.ts';
import { NOW_MS, anOffer } from '../unit/peering/support/offers.ts';

/**
 * Everything that the credential of a peer can do in the cluster that lends, as a real API server reports it for
 * every namespace that matters, compared with a committed list; then asked again for every resource that it serves
 * and every verb. One line more or less is a failure. If the change is intended: `UPDATE_PEER_RIGHTS=1 node
 * tools/jest.ts integration test/integration/peer-rights.test.ts`.
 */

const LIST = join(import.meta.dirname, 'peer-rights.txt');
/** The tenant made by hand is `rome`; this one has a contract, with a further kind. */
const CONSUMER = 'c'.repeat(26);
const NEGOTIATED = 'tributary-abc-shop';
const WIDGETS = { group: 'shop.example', resource: 'widgets' };

let lab: RightsCluster;
let api: KubeApi;

const negotiated = (): object[] => {
  const amounts = { cpu: '2', memory: '4Gi', pods: '10', storage: '10Gi' };
  const contract = draftContract(anOffer({ consumer: CONSUMER }), amounts, NOW_MS);
  const { shared, tenants, kinds, account } = forgeContractTenant({
    consumer: CONSUMER,
    contract,
    amounts,
    policy: { peers: {}, storageClasses: ['fast'] },
    kinds: [WIDGETS],
  });
  return [...shared, ...tenants.flat(), ...kinds, ...account];
};

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${WIDGETS.resource}.${WIDGETS.group}` },
  spec: {
    group: WIDGETS.group,
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ api } = lab.cluster);
  await lab.apply(printYaml([definition]));
  await lab.apply(await printed(manifestsCommand, ['crds']));
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  await lab.apply(await printed(tenantCommand, ['--peer', 'rome', '--namespace', 'rome-shop']));
  await lab.apply(printYaml(negotiated()));
  const peer = await lab.as({ namespace: 'tributary-peers', name: CONSUMER });
  const widgets = `/apis/shop.example/v1/namespaces/${NEGOTIATED}/widgets`;
  await eventually('the last rights are in force', async () => (await peer('GET', widgets)).status === 200);
});

afterAll(async () => lab?.down());

interface Rules {
  resourceRules: { apiGroups?: string[]; resources?: string[]; resourceNames?: string[]; verbs: string[] }[];
  nonResourceRules: { nonResourceURLs?: string[]; verbs: string[] }[];
}

/** All rights that RBAC gives an account there, by all bindings, asked with its own token. */
async function rulesIn(peer: Caller, namespace: string): Promise<Rules> {
  const { status, body } = await peer('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  });
  expect({ status, body }).toMatchObject({ status: 201 });
  return (JSON.parse(body) as { status: Rules }).status;
}

/** `verb group/resource [name]`, each once. */
const resourceLines = ({ resourceRules }: Rules): string[] => [
  ...new Set(
    resourceRules
      .flatMap(({ apiGroups = [], resources = [], resourceNames = [''], verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            resourceNames.flatMap((name) =>
              verbs.map((verb) => `${verb} ${group}/${resource} ${name}`.trim()),
            ),
          ),
        ),
      )
      .toSorted(),
  ),
];
const urlLines = ({ nonResourceRules }: Rules): string[] => [
  ...new Set(
    nonResourceRules
      .flatMap(({ nonResourceURLs = [], verbs }) =>
        nonResourceURLs.flatMap((url) => verbs.map((verb) => `${verb} ${url}`)),
      )
      .toSorted(),
  ),
];

const PLACES = [
  'default',
  'kube-system',
  'kube-public',
  'kube-node-lease',
  'tributary-peers',
  'tributary-system',
] as const;
const PEERS = [
  ['rome', 'rome-shop', NEGOTIATED, 'by hand'],
  [CONSUMER, NEGOTIATED, 'rome-shop', 'by a contract, with widgets.shop.example'],
] as const;

test('a peer can do what is written down, and nothing else', async () => {
  const lines: string[] = [];
  for (const [name, own, others, made] of PEERS) {
    const peer = await lab.as({ namespace: 'tributary-peers', name });
    const places = [
      [own, `in its own tenant, made ${made}`],
      [others, 'in the tenant of another peer'],
      ...PLACES.map((place) => [place, `in ${place}`] as const),
    ] as const;
    for (const [namespace, where] of places) {
      lines.push(`# ${where}`, ...resourceLines(await rulesIn(peer, namespace)));
    }
    lines.push('# of what is no resource', ...urlLines(await rulesIn(peer, own)), '');
  }
  const text = lines.join('\n');
  if (process.env['UPDATE_PEER_RIGHTS'] === '1') writeFileSync(LIST, text);
  expect(text.split('\n')).toEqual(readFileSync(LIST, 'utf8').split('\n'));
});

test.each([
  ['its own tenant', NEGOTIATED],
  ['the whole cluster', ''],
])(
  'the API server answers the same in %s when it is asked for each resource and verb',
  async (_where, namespace) => {
    const resources = await servedResources(api);
    expect(resources).toContain('shop.example/widgets');
    const asked = await allowed(api, serviceAccount('tributary-peers', CONSUMER), resources, { namespace });
    const peer = await lab.as({ namespace: 'tributary-peers', name: CONSUMER });
    const listed = resourceLines(await rulesIn(peer, namespace === '' ? 'default' : namespace));
    // Named objects are asked for by name.
    expect(asked).toEqual(listed.filter((line) => line.split(' ').length === 2));
    for (const name of ['tributary-home', 'tributary-cluster', 'another']) {
      const key = 'coordination.k8s.io/leases';
      const may = await allowed(api, serviceAccount('tributary-peers', CONSUMER), [key], { namespace, name });
      expect(may).toEqual(listed.filter((line) => line.endsWith(` ${key} ${name}`)));
    }
  },
);

test('the list that is committed says nothing of what a guest must never have', () => {
  const lines = readFileSync(LIST, 'utf8').split('\n');
  const never =
    /^(\*|deletecollection|escalate|impersonate|bind|approve|sign|use|proxy) | (\*|\S*nodes|\S*namespaces|\S*roles|\S*rolebindings|\S*policies|\S*webhookconfigurations|\/serviceaccounts\S*|\/resourcequotas|\/limitranges|\/persistentvolumes|\/pods\/(status|eviction|binding|proxy))$/;
  // Those ask; see the decision on policies that are asked for.
  const asks = / tributary\.dev\/guestnetworkpolicies$/;
  expect(lines.filter((line) => never.test(line) && !asks.test(line))).toEqual([]);
});
