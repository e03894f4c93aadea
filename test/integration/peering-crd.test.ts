import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { binaries } from '../../lab/binaries.ts';
import { DEFINITIONS } from '../../src/api/crd/index.ts';
import type { Schema } from '../../src/api/crd/schema.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/** How a real API server treats the kinds of peering: their rules, their defaults, their messages. */

const GROUP = '/apis/tributary.dev/v1alpha1';
const MERGE = 'application/merge-patch+json';

let lab: RightsCluster;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['crds']));
});

afterAll(async () => lab?.down());

type Answer = { status: number; body: string };
type Body = { apiVersion?: string; kind: string; metadata: { name: string }; spec?: object };

const pathOf = (kind: string): string =>
  `${GROUP}/${DEFINITIONS.find(({ type }) => type.kind === kind)?.type.plural}`;
const object = (kind: string, spec: object | undefined, name = 'milan'): Body => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind,
  metadata: { name },
  ...(spec !== undefined && { spec }),
});
const create = async (body: Body, query = ''): Promise<Answer> =>
  lab.cluster.api.call('POST', `${pathOf(body.kind)}${query}`, body);
const patch = async (kind: string, name: string, body: object): Promise<Answer> =>
  lab.cluster.api.call('PATCH', `${pathOf(kind)}/${name}`, body, MERGE);
const dryRun = async (body: Body): Promise<Answer> => create(body, '?dryRun=All');

const ID = 'a'.repeat(26);
const OTHER_ID = 'b2'.repeat(13);
const SIGNATURE = `${'A'.repeat(86)}==`;
const OFFER = {
  provider: ID,
  consumer: OTHER_ID,
  generation: 7,
  issued: '2026-01-01T00:00:00Z',
  expires: '2026-01-01T01:00:00Z',
  resources: { cpu: '4', memory: '8Gi', pods: '100', 'nvidia.com/gpu': '1' },
  shapes: [
    {
      count: 2,
      resources: { cpu: '2', memory: '4Gi', pods: '50' },
      architecture: 'amd64',
      operatingSystem: 'linux',
      labels: { 'topology.kubernetes.io/zone': 'a' },
    },
  ],
  classes: { storage: [{ name: 'fast', provisioner: 'csi.example.org' }], ingress: ['nginx'] },
  labels: { region: 'milan' },
  images: ['registry.k8s.io/pause@sha256:00'],
  prices: { cpu: { amount: '0.04', currency: 'EUR' } },
  namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'rome-shop' }],
  podSecurity: 'baseline',
  keepForSeconds: 3600,
};

const cluster = (spec?: object, name?: string): Body => object('ForeignCluster', spec, name);
const domain = (spec: object): Body => object('SearchDomain', { domain: 'example.org', ...spec });
const sharing = (peers: object, spec: object = {}): Body => object('SharingPolicy', { peers, ...spec });
const acceptance = (spec: object): Body => object('AcceptancePolicy', { peers: { anyone: true }, ...spec });
const request = (spec: object = {}, name = ID): Body =>
  object('PeeringRequest', { clusterID: ID, namespaces: ['shop'], ...spec }, name);
const advertisement = (offer: object = {}, spec: object = {}): Body =>
  object(
    'Advertisement',
    { clusterID: ID, offer: { ...OFFER, ...offer }, signature: SIGNATURE, ...spec },
    ID,
  );

test.each([
  ['a cluster without anything', cluster()],
  ['a cluster by its ID', cluster({ clusterID: ID }, ID)],
  ['an endpoint by name', cluster({ endpoint: 'milan.example.org:6844' })],
  ['an endpoint by IPv6 address', cluster({ endpoint: '[fd00::1]:1' })],
  ['an endpoint on one interface', cluster({ endpoint: '[fe80::1%eth0]:65535' })],
  ['servers of all forms', domain({ servers: ['10.0.0.1', '10.0.0.1:53', 'fd00::1', '[fd00::1]:5353'] })],
  ['a policy for nobody', sharing({})],
  ['a policy for anyone, in so many words', sharing({ anyone: true })],
  ['several ways to be meant', sharing({ clusterIDs: [ID], matchLabels: { a: 'b' }, discovery: ['LAN'] })],
  ['prices', acceptance({ maxPrices: { cpu: { amount: '0.04', currency: 'credits' } } })],
  ['a request', request({ clusterName: 'Rome 2', approval: 'Approved' })],
  ['an offer', advertisement()],
])('accepted: %s', async (_what, body) => {
  expect(await dryRun(body)).toMatchObject({ status: 201 });
});

const EXAMPLES = ['policies', 'sharing-policy', 'namespace-policies', 'foreign-cluster', 'search-domain'];
test.each(EXAMPLES)('accepted: the committed example %s', async (name) => {
  const text = readFileSync(`deploy/examples/${name}.yaml`, 'utf8');
  for (const document of parseAllDocuments(text)) {
    expect(await dryRun(document.toJS() as Body)).toMatchObject({ status: 201 });
  }
});

test.each([
  ['an ID in capitals', cluster({ clusterID: 'A'.repeat(26) }), 'should match'],
  ['an ID with a digit that base32 lacks', cluster({ clusterID: '1'.repeat(26) }), 'should match'],
  ['a short ID', cluster({ clusterID: 'a'.repeat(25) }), 'at least 26 chars'],
  ['another ID under the name of one', cluster({ clusterID: OTHER_ID }, ID), 'cannot stand for another one'],
  ['an endpoint without port', cluster({ endpoint: 'milan' }), 'should match'],
  ['port 0', cluster({ endpoint: 'milan:0' }), 'should match'],
  ['port 65536', cluster({ endpoint: 'milan:65536' }), 'should match'],
  ['an address without brackets', cluster({ endpoint: 'fd00::1:443' }), 'should match'],
  ['a wish that is none', cluster({ outgoing: 'Yes' }), 'supported values: "Auto", "Enabled", "Disabled"'],
  ['a namespace twice', cluster({ namespaces: ['a', 'a'] }), 'Duplicate value'],
  ['a domain with a space', domain({ domain: 'a b' }), 'should match'],
  ['no domain', object('SearchDomain', {}), 'Required value'],
  ['an interval of nothing', domain({ intervalSeconds: 0 }), 'greater than or equal to 1'],
  ['a server by name', domain({ servers: ['dns.example.org'] }), 'should match'],
  ['anyone that is not', sharing({ anyone: false }), 'anyone can only be true'],
  ['anyone and a list', sharing({ anyone: true, clusterIDs: [ID] }), 'give one or the other'],
  ['a way of discovery alone', sharing({ discovery: ['LAN'] }), 'discovery only narrows'],
  ['an empty list', sharing({ clusterIDs: [] }), 'at least 1 items'],
  ['labels that select all', sharing({ matchLabels: {} }), 'at least 1 properties'],
  ['an unknown way of discovery', sharing({ anyone: true, discovery: ['Radio'] }), 'supported values'],
  ['no peers', object('SharingPolicy', {}), 'Required value'],
  ['more than all', sharing({}, { sharePercent: 101 }), 'less than or equal to 100'],
  ['less than nothing', sharing({}, { limits: { cpu: '-1' } }), 'should match'],
  ['a number beyond numbers', sharing({}, { limits: { cpu: '1e309' } }), 'should match'],
  ['a level of Pod Security that there is not', sharing({}, { podSecurity: 'none' }), 'supported values'],
  [
    'ExternalNames beside Ingresses',
    sharing({}, { externalNames: 'Allow', ingressClasses: ['edge'] }),
    'externalNames: Allow excludes',
  ],
  [
    'ExternalNames beside routes',
    sharing(
      {},
      {
        externalNames: 'Allow',
        reflectableKinds: [{ group: 'gateway.networking.k8s.io', resource: 'httproutes' }],
      },
    ),
    'externalNames: Allow excludes',
  ],
  [
    'taints of control planes for guests',
    sharing({}, { ownTolerations: ['node-role.kubernetes.io/control-plane'] }),
    'are opened to no peer',
  ],
  [
    'taints of virtual nodes for guests',
    sharing({}, { ownTolerations: ['tributary.dev/virtual-node'] }),
    'are opened to no peer',
  ],
  ['a name of a namespace with a dot', sharing({}, { namespaceNames: ['a.b'] }), 'should match'],
  ['a negative price', sharing({}, { prices: { cpu: { amount: '-1', currency: 'EUR' } } }), 'should match'],
  ['a price without currency', sharing({}, { prices: { cpu: { amount: '1' } } }), 'Required value'],
  ['more Nodes than one peer needs', acceptance({ maxNodes: 257 }), 'less than or equal to 256'],
  ['a shape that is none', acceptance({ shape: 'Round' }), 'supported values: "Aggregate", "PerNode"'],
  ['a request under another name', request({}, OTHER_ID), 'the name must be the clusterID'],
  ['a name that moves the cursor', request({ clusterName: 'a\u001b[2J' }), 'should match'],
  ['an answer that is none', request({ approval: 'Perhaps' }), 'supported values: "Approved", "Denied"'],
  ['an offer of another provider', advertisement({ provider: OTHER_ID }), 'must be one of this provider'],
  ['an offer without end', advertisement({ expires: undefined }), 'Required value'],
  ['an end that is no time', advertisement({ expires: 'soon' }), 'must be of type date-time'],
  ['a generation below 0', advertisement({ generation: -1 }), 'greater than or equal to 0'],
  ['too many shapes', advertisement({ shapes: Array(257).fill(OFFER.shapes[0]) }), 'at most 256 items'],
  ['a signature that is none', advertisement({}, { signature: 'x' }), 'should match'],
])('refused: %s', async (_what, body, why) => {
  const answer = await dryRun(body);
  expect(answer.status).toBe(422);
  expect((JSON.parse(answer.body) as { message: string }).message).toContain(why);
});

test('defaults are those that the types promise', async () => {
  const spec = async (body: Body): Promise<unknown> =>
    (JSON.parse((await dryRun(body)).body) as { spec: unknown }).spec;
  expect(await spec(cluster())).toEqual({
    outgoing: 'Auto',
    incoming: 'Auto',
    network: {
      access: 'OffloadedPods',
      transit: 'OffloadedPods',
      apiServer: 'OffloadedPods',
      services: 'None',
      dns: 'Foreign',
    },
  });
  const joinTokenSecretRef = { name: 'token' };
  expect(await spec(cluster({ joinTokenSecretRef }))).toMatchObject({
    joinTokenSecretRef: { name: 'token', key: 'token' },
  });
  expect(await spec(domain({}))).toEqual({
    domain: 'example.org',
    intervalSeconds: 300,
    outgoing: 'Auto',
  });
  const networkKeySecretRef = { name: 'family' };
  expect(await spec(sharing({ networkKeySecretRef }))).toEqual({
    peers: { networkKeySecretRef: { name: 'family', key: 'key' } },
    approval: 'Manual',
    homeApiServer: 'Allow',
    externalNames: 'Forbid',
    imagePullPolicy: 'Always',
    tethering: 'Forbid',
    precedence: 0,
    sharePercent: 50,
    podSecurity: 'baseline',
    maxPriority: 0,
    namespaceNaming: 'Suffixed',
    shareImages: false,
    onEnd: 'Delete',
    isolation: 'Tenant',
    keepForSeconds: 86_400,
    offerSeconds: 3600,
    thresholdPercent: 10,
  });
  expect(await spec(acceptance({}))).toEqual({
    peers: { anyone: true },
    approval: 'Manual',
    precedence: 0,
    shape: 'Aggregate',
    maxNodes: 16,
  });
});

test('clusterID is set once', async () => {
  expect(await create(cluster({}, 'once'))).toMatchObject({ status: 201 });
  expect(await patch('ForeignCluster', 'once', { spec: { clusterID: ID } })).toMatchObject({ status: 200 });
  for (const spec of [{ clusterID: OTHER_ID }, { clusterID: null }, null]) {
    const answer = await patch('ForeignCluster', 'once', { spec });
    expect(answer).toMatchObject({
      status: 422,
      body: expect.stringContaining('clusterID cannot be changed') as unknown,
    });
  }
  expect(await patch('ForeignCluster', 'once', { spec: { outgoing: 'Disabled' } })).toMatchObject({
    status: 200,
  });
});

test('two writers of sightings, and a third of the rest, leave each other alone', async () => {
  await create(cluster({ clusterID: ID }, 'seen'));
  const sighting = (host: string): object => ({
    endpoints: [`${host}:6844`],
    firstSeen: '2026-01-01T00:00:00Z',
    expires: '2026-01-01T00:02:00Z',
  });
  const write = async (status: object): Promise<Answer> => patch('ForeignCluster', 'seen/status', { status });
  const answers = await Promise.all([
    write({ sightings: { LAN: sighting('lan') } }),
    write({ sightings: { WAN: sighting('wan') } }),
    write({ foundBy: 'LAN,WAN', link: { connected: true, dialledBy: 'Us' }, outgoing: { phase: 'Pending' } }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  await write({ sightings: { WAN: null } });
  const { body } = await lab.cluster.api.call('GET', `${pathOf('ForeignCluster')}/seen`);
  expect(JSON.parse(body)).toMatchObject({
    spec: { clusterID: ID },
    status: {
      sightings: { LAN: sighting('lan') },
      foundBy: 'LAN,WAN',
      link: { connected: true },
      outgoing: { phase: 'Pending' },
    },
  });
  expect(JSON.parse(body)).not.toHaveProperty('status.sightings.WAN');
});

test('a status that peers could have made is refused all the same', async () => {
  await create(cluster({ clusterID: ID }, 'hostile'));
  for (const [status, why] of [
    [{ clusterName: 'a\u202eb' }, 'should match'],
    [{ outgoing: { phase: 'Fine' } }, 'Unsupported value'],
    [{ outgoing: { phase: 'None', reason: 'two words' } }, 'should match'],
    [{ link: { connected: 'yes' } }, 'must be of type boolean'],
    [{ sightings: { LAN: { endpoints: ['x'] } } }, 'Required value'],
  ] as const) {
    const answer = await patch('ForeignCluster', 'hostile/status', { status });
    expect(answer).toMatchObject({ status: 422, body: expect.stringContaining(why) as unknown });
  }
});

test('kubectl shows the columns that a person wants to see', async () => {
  const { kubectl } = await binaries(undefined, ['kubectl']);
  const run = (...args: string[]): string =>
    spawnSync(kubectl, ['--kubeconfig', lab.cluster.kubeconfig, ...args], { encoding: 'utf8' }).stdout;
  const bodies = [cluster({}, 'shown'), domain({}), sharing({}), acceptance({}), request(), advertisement()];
  for (const body of bodies) expect(await create(body)).toMatchObject({ status: 201 });
  const status = {
    clusterName: 'Milan',
    foundBy: 'LAN',
    link: { connected: true },
    outgoing: { phase: 'Established' },
    incoming: { phase: 'None' },
    conditions: [
      {
        type: 'NetworkReady',
        status: 'False',
        reason: 'NoHandshake',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  };
  await patch('ForeignCluster', 'shown/status', { status });
  const shown = run('get', 'fc', 'shown');
  expect(shown).toMatch(/^NAME +CLUSTER +FOUND-BY +OUTGOING +INCOMING +CONNECTED +TUNNEL +AGE\n/);
  expect(shown).toMatch(/\nshown +Milan +LAN +Established +None +true +False +\d+s\n/);
  expect(run('get', 'sd')).toMatch(/^NAME +DOMAIN +BROWSED +REASON +LAST-LOOK +AGE\n/);
  expect(run('get', 'sp')).toMatch(/^NAME +APPROVAL +SHARE +FREE-CPU +FREE-MEMORY +AGE\nmilan +Manual +50 /);
  expect(run('get', 'ap')).toMatch(/^NAME +APPROVAL +SHAPE +AGE\nmilan +Manual +Aggregate /);
  expect(run('get', 'pr')).toMatch(/^NAME +CLUSTER +PHASE +REASON +APPROVED +HOME +ENDS +AGE\n/);
  expect(run('get', 'adv')).toMatch(/^NAME +PROVIDER +DECISION +REASON +CPU +MEMORY +ACCESS +AGE\n/);
  expect(run('get', 'adv')).toMatch(/ 4 +8Gi /);
});

/** Every field of a schema, as `kubectl explain` names it. */
function* fields(schema: Schema, path: string): Generator<[string, string]> {
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    const at = `${path}.${key}`;
    yield [at, child.description];
    // Items and values have the path of the field that contains them.
    yield* fields(child.items ?? child.additionalProperties ?? child, at);
  }
}

test('kubectl explains every field in our words', async () => {
  const { body } = await lab.cluster.api.call('GET', '/openapi/v3/apis/tributary.dev/v1alpha1');
  const { components } = JSON.parse(body) as { components: { schemas: Record<string, Schema> } };
  let explained = 0;
  for (const { type, schema } of DEFINITIONS) {
    const served = components.schemas[`dev.tributary.v1alpha1.${type.kind}`];
    const known = new Map(fields(served ?? { description: '' }, type.plural));
    for (const [path, description] of fields(schema, type.plural)) {
      expect({ path, description: known.get(path) }).toEqual({ path, description });
      explained++;
    }
  }
  expect(explained).toBeGreaterThan(150);
  const { kubectl } = await binaries(undefined, ['kubectl']);
  for (const [path, words] of [
    ['foreignclusters.spec.clusterID', 'The only identity that is accepted'],
    ['sharingpolicies.spec.peers.anyone', 'Every cluster that proves any ClusterID'],
    ['advertisements.spec.offer.shapes.resources', 'a pod that requests more fits on none of them'],
  ] as const) {
    const { stdout } = spawnSync(kubectl, ['--kubeconfig', lab.cluster.kubeconfig, 'explain', path], {
      encoding: 'utf8',
    });
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(words);
  }
});
