import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { greeterImage } from '../../../lab/images.ts';
import { agentImageName } from '../../../lab/images-agent.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { podPath } from '../../support/e2e/api.ts';
import { until } from '../../support/e2e/until.ts';
import { short } from '../../support/long.ts';
import { OneNetwork, PROVIDERS, SHOP, type Provider } from './support/network.ts';

/** In-cluster clients abroad: an operator that elects its leader at home, and what policies forbid. */

const VIRTUAL = 'tributary.dev/virtual-node';
const GROUP = '/apis/tributary.dev/v1alpha1';
const GREETINGS = `/apis/example.com/v1/namespaces/${SHOP}/greetings`;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${SHOP}/leases/greeter`;
const tolerations = [{ key: VIRTUAL, operator: 'Exists' }];
const resources = { requests: { cpu: '5m', memory: '32Mi' } };

/** One of each: the operator's rights, and the kind that it looks after. */
const FURNITURE = [
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'greetings.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'greetings', singular: 'greeting', kind: 'Greeting' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'greeter', namespace: SHOP } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'greeter', namespace: SHOP },
    rules: [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['*'] },
      { apiGroups: ['example.com'], resources: ['greetings', 'greetings/status'], verbs: ['*'] },
      { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'greeter', namespace: SHOP },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'greeter' },
    subjects: [{ kind: 'ServiceAccount', name: 'greeter', namespace: SHOP }],
  },
];

/** As its maker would publish it, but for the place: one pod in each foreign cluster. */
const OPERATOR = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'greeter', namespace: SHOP },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'greeter' } },
    template: {
      metadata: { labels: { app: 'greeter' } },
      spec: {
        serviceAccountName: 'greeter',
        nodeSelector: { 'tributary.dev/node-type': 'virtual-node' },
        tolerations,
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: { app: 'greeter' } },
          },
        ],
        containers: [
          {
            name: 'main',
            image: 'lab.local/greeter:1',
            resources,
            env: [{ name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }],
          },
        ],
      },
    },
  },
};

/** With what every program finds in its pod; prints the status, or why there is none. */
const ASK = `
  const { readFileSync } = require('node:fs');
  const of = (name) => readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/' + name, 'utf8');
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  const path = '/apis/example.com/v1/namespaces/' + of('namespace') + '/greetings';
  const headers = { authorization: 'Bearer ' + of('token') };
  require('node:https').get({ host, port, path, ca: of('ca.crt'), headers, timeout: 3000 }, (answer) => {
    console.log(host + ' ' + answer.statusCode);
    process.exit(0);
  }).on('timeout', () => { console.log('silence'); process.exit(0); })
    .on('error', (error) => { console.log(error.code); process.exit(0); });
`;

let network: OneNetwork;

beforeAll(async () => {
  network = await OneNetwork.open();
  await apply(FURNITURE);
  // The API server answers 429 while it sets up the storage of a new kind.
  const answer = async (): Promise<number> =>
    (await network.api('rome').cluster.api.call('GET', GREETINGS)).status;
  await until('the kind is served', async () => (await answer()) === 200, { seen: answer });
}, 500_000);

afterAll(async () => {
  await network?.ask(`kubectl -n ${SHOP} delete deployment,pod --all --wait=false`);
  await network?.close();
}, 60_000);

async function apply(items: readonly object[]): Promise<void> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await network.ask('kubectl apply -f -', { stdin });
}

const leader = async (): Promise<string | undefined> => {
  const lease = await network
    .api('rome')
    .get<{ metadata: object; spec?: { holderIdentity?: string } }>(LEASE);
  // The name of the pod, and something that makes it unique.
  return lease?.spec?.holderIdentity?.split('_')[0];
};

async function answered(to: string): Promise<string> {
  await apply([
    { apiVersion: 'example.com/v1', kind: 'Greeting', metadata: { name: to, namespace: SHOP }, spec: { to } },
  ]);
  const path = `${GREETINGS}/${to}`;
  type Greeting = { metadata: object; status?: { answer?: string; by?: string } };
  return until(`an answer to ${to}`, async () => {
    const { status } = (await network.api('rome').get<Greeting>(path)) ?? {};
    return status?.answer === `hello ${to}` && status.by;
  });
}

/** Its compiler takes longer than the test. What every program asks of its API server is asked in each run, below. */
const isLong = short('operators over two clusters', { short: 0, long: 1 }) > 0;

(isLong ? test : test.skip)(
  'an operator with a pod in each of two clusters elects a leader at home, and another one when that is gone',
  async () => {
    const archive = await greeterImage(console.error);
    for (const provider of PROVIDERS) await network.lab.cluster(provider).loadImage(archive);
    await apply([OPERATOR]);
    const first = await until('a leader', leader);
    const pods = await network
      .api('rome')
      .list<Pod>(`/api/v1/namespaces/${SHOP}/pods?labelSelector=app%3Dgreeter`);
    expect(new Set(pods.map(({ spec }) => spec?.nodeName))).toEqual(new Set(PROVIDERS));
    expect(pods.map(({ metadata }) => metadata.name)).toContain(first);
    expect(await answered('rome')).toBe(first);
    await network.ask(`kubectl -n ${SHOP} delete pod ${first}`, { timeoutMs: 60_000 });
    const second = await until('another leader', async () => {
      const now = await leader();
      return now !== undefined && now !== '' && now !== first && now;
    });
    expect(await answered('carthage')).toBe(second);
  },
  240_000,
);

const robot = (name: string, provider: Provider): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: SHOP },
  spec: {
    serviceAccountName: 'greeter',
    nodeSelector: { [VIRTUAL]: provider },
    tolerations,
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image: agentImageName, command: ['sleep', '1000'], resources }],
  },
});

async function run(name: string, provider: Provider): Promise<void> {
  await apply([robot(name, provider)]);
  await until(`${name} runs`, async () => {
    const pod = await network.api('rome').get<Pod>(podPath(SHOP, name));
    return pod?.status?.phase === 'Running';
  });
}

const ask = async (name: string): Promise<string> =>
  (await network.ask(`kubectl -n ${SHOP} exec -i ${name} -- node -`, { stdin: ASK })).trim();

const condition = async (provider: Provider, status: string): Promise<string | undefined> =>
  until(`pods in ${provider} reach home: ${status}`, async () => {
    const node = await network.api('rome').get<VirtualNode>(`${GROUP}/virtualnodes/${provider}`);
    const found = node?.status?.conditions?.find(({ type }) => type === 'HomeApiServerReachable');
    return found?.status === status && `${found.reason}: ${found.message}`;
  });

const told = async (name: string): Promise<string> =>
  until(`${name} is told`, async () => {
    const selector = `involvedObject.name=${name},reason=NoTokenForHome`;
    const text = await network.ask(
      `kubectl -n ${SHOP} get events --field-selector ${selector} -o jsonpath='{.items[*].message}'`,
    );
    return text !== '' && text;
  });

test('either side can forbid it: connections end in silence, and new pods say why they have no token', async () => {
  await run('robot', 'milan');
  expect(await ask('robot')).toBe('kubernetes.default.svc 200');
  await expect(condition('milan', 'True')).resolves.toContain('AsExpected');

  await network.api('milan').patch(`${GROUP}/sharingpolicies/test`, { spec: { homeApiServer: 'Forbid' } });
  await expect(condition('milan', 'False')).resolves.toMatch(/^ForbiddenByProvider: .*SharingPolicy/);
  await until('it is silent', async () => (await ask('robot')) === 'silence');
  await run('late', 'milan');
  expect(await told('late')).toContain('no token of account "greeter" over there: the SharingPolicy');
  await network.api('milan').patch(`${GROUP}/sharingpolicies/test`, { spec: { homeApiServer: null } });
  await condition('milan', 'True');
  await until('it answers again', async () => (await ask('robot')) === 'kubernetes.default.svc 200');

  const turin = `${GROUP}/foreignclusters/turin`;
  await network.api('rome').patch(turin, { spec: { network: { apiServer: 'None' } } });
  await expect(condition('turin', 'False')).resolves.toMatch(/^NotAllowed: .*ForeignCluster/);
  await run('later', 'turin');
  expect(await told('later')).toContain('the ForeignCluster');
  await network.api('rome').patch(turin, { spec: { network: { apiServer: null } } });
  await condition('turin', 'True');
}, 300_000);
