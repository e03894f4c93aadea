import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { acceptancePolicies, type AcceptancePolicy } from '../../src/api/acceptance-policy.ts';
import { foreignClusters, type ForeignCluster } from '../../src/api/foreign-cluster.ts';
import { forgeGrant, rulesOf } from '../../src/api/rbac.ts';
import { sharingPolicies, type SharingPolicy } from '../../src/api/sharing-policy.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { ClientEventRecorder } from '../../src/kube/events.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { Lifecycle } from '../../src/lib/lifecycle.ts';
import { createLogger } from '../../src/lib/log.ts';
import { clusterIndexes, Clusters } from '../../src/peering/clusters/clusters.ts';
import { CLUSTERS_RIGHTS, CLUSTERS_SYSTEM_RIGHTS } from '../../src/peering/clusters/rights.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';
import { linked, MILAN, OWN, ROME } from '../unit/peering/clusters/support/objects.ts';
import { FakeLinks, FakeReports } from '../unit/peering/clusters/support/world.ts';

/** ForeignClusters on a real API server, written with exactly the rights of the table. */

const NAMESPACE = 'tributary-system';
const ACCOUNT = { namespace: NAMESPACE, name: 'clusters' };
const GROUP = '/apis/tributary.dev/v1alpha1';
const PATH = `${GROUP}/foreignclusters`;
const MERGE = 'application/merge-patch+json';

let lab: RightsCluster;
let client: HttpClient;
let lifecycle: Lifecycle;
let clusters: Clusters;
const links = new FakeLinks();
const outgoing = new FakeReports();
const incoming = new FakeReports();
/** What was logged. */
const complaints: string[] = [];

const account = (): string => {
  const common = { labels: {}, account: ACCOUNT };
  return printYaml([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ACCOUNT },
    ...forgeGrant({ ...common, name: 'clusters', rules: rulesOf(CLUSTERS_RIGHTS) }),
    ...forgeGrant({
      ...common,
      name: 'clusters',
      namespace: NAMESPACE,
      rules: rulesOf(CLUSTERS_SYSTEM_RIGHTS),
    }),
  ]);
};

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(account());
  client = await lab.clientOf(ACCOUNT);
  const log = createLogger({ level: 'info', now: () => clock.now(), write: (line) => complaints.push(line) });
  const common = { client, clock, log };
  const objects = new Informer<ForeignCluster>({
    ...common,
    type: foreignClusters,
    list: {},
    indexes: clusterIndexes,
  });
  const acceptance = new Informer<AcceptancePolicy>({ ...common, type: acceptancePolicies, list: {} });
  const sharing = new Informer<SharingPolicy>({ ...common, type: sharingPolicies, list: {} });
  const events = new ClientEventRecorder({ ...common, component: 'tributary' });
  clusters = new Clusters({
    ...common,
    events,
    own: OWN,
    systemNamespace: NAMESPACE,
    clusters: objects,
    acceptance,
    sharing,
    links: () => links,
    outgoing: () => outgoing,
    incoming: () => incoming,
    limits: { unpeerMs: 1500 },
  });
  const components = [events, objects, acceptance, sharing, ...clusters.caches(), ...clusters.components()];
  lifecycle = new Lifecycle(components, { clock, log, stopDeadlineMs: 10_000 });
  await lifecycle.start(new AbortController().signal);
});

afterAll(async () => {
  await lifecycle?.stop();
  await client?.close();
  await lab?.down();
});

const read = async (name: string): Promise<ForeignCluster | undefined> => {
  const { status, body } = await lab.cluster.api.call('GET', `${PATH}/${name}`);
  return status === 200 ? (JSON.parse(body) as ForeignCluster) : undefined;
};
const until = async (
  name: string,
  condition: (cluster: ForeignCluster) => boolean,
): Promise<ForeignCluster> => {
  let last: ForeignCluster | undefined;
  await eventually(`${name}: ${condition.toString()}`, async () => {
    last = await read(name);
    return last !== undefined && condition(last);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; it is ${JSON.stringify(last)}; logged: ${complaints.join('')}`);
  });
  return last as unknown as ForeignCluster;
};

test('a cluster of a person’s, from its endpoint to a peering, and its end', async () => {
  const { api } = lab.cluster;
  const data = { token: Buffer.from('x.y.z').toString('base64') };
  await api.call('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, { metadata: { name: 'join' }, data });
  const spec = {
    clusterID: MILAN,
    endpoint: 'milan:6844',
    outgoing: 'Enabled',
    joinTokenSecretRef: { name: 'join' },
  };
  const body = {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'ForeignCluster',
    metadata: { name: 'milan' },
    spec,
  };
  expect(await api.call('POST', PATH, body)).toMatchObject({ status: 201 });
  const asked = await until('milan', ({ status }) => status?.outgoing?.phase === 'Pending');
  expect(asked).toMatchObject({
    metadata: { finalizers: ['tributary.dev/peering'] },
    status: { foundBy: 'Manual' },
  });
  await eventually('its token is read', () => clusters.intent(MILAN).joinToken === 'x.y.z');
  await eventually('it is dialled', () => links.targets.length > 0);
  expect(links.targets).toMatchObject([{ name: 'milan', clusterID: MILAN, endpoints: ['milan:6844'] }]);
  // Whatever a peer says about itself, the API server accepts the object that is made from it.
  links.up(
    linked(MILAN, {
      software: 's'.repeat(999),
      clusterName: 'a\u001b[2J',
      peerEndpoints: ['x', 'y:0', 'z:1'],
    }),
  );
  outgoing.say(MILAN, { phase: 'Denied', reason: 'no word', message: '\u0000'.repeat(9999) });
  const denied = await until('milan', ({ status }) => status?.outgoing?.phase === 'Denied');
  expect(denied.status).toMatchObject({ clusterID: MILAN, link: { connected: true } });
  outgoing.say(MILAN, { phase: 'Established' });
  await until('milan', ({ status }) => status?.outgoing?.phase === 'Established');
  await eventually('it is told', async () => {
    const { body: list } = await api.call('GET', '/api/v1/namespaces/default/events');
    return list.includes('OutgoingEstablished') && list.includes('OutgoingDenied');
  });
  await api.call('DELETE', `${PATH}/milan`);
  await eventually('nothing is wanted of it', () => !clusters.intent(MILAN).wanted);
  // The other side is dead, so nobody reports that the peering has ended.
  await eventually('it is gone', async () => (await read('milan')) === undefined);
});

test('a peer that comes by itself gets an object, which discovery may write, too', async () => {
  links.up(linked(ROME, { dialledBy: 'Them', peerEndpoints: ['rome:1'] }));
  await until(ROME, ({ status }) => status?.sightings?.Incoming?.endpoints[0] === 'rome:1');
  const LAN = { endpoints: ['rome:2'], firstSeen: '2026-01-01T00:00:00Z', expires: '2099-01-01T00:00:00Z' };
  await lab.cluster.api.call('PATCH', `${PATH}/${ROME}/status`, { status: { sightings: { LAN } } }, MERGE);
  const both = await until(ROME, ({ status }) => status?.foundBy === 'LAN,Incoming');
  expect(both.status?.sightings).toMatchObject({ LAN, Incoming: { endpoints: ['rome:1'] } });
});

test('nothing was refused, and nothing more is written', async () => {
  const { resourceVersion } = (await read(ROME))?.metadata ?? {};
  for (let rttMs = 1; rttMs < 10; rttMs++)
    links.up(linked(ROME, { dialledBy: 'Them', peerEndpoints: ['rome:1'], rttMs }));
  outgoing.say(ROME, { phase: 'Pending', reason: 'WaitingForOffer', message: 'asked' });
  const last = await until(ROME, ({ status }) => status?.outgoing?.phase === 'Pending');
  expect(last.metadata.resourceVersion).not.toBe(resourceVersion);
  const refused = complaints.filter(
    (line) => !line.includes('"level":"info"') && !line.includes('was not taken down in time'),
  );
  expect(refused).toEqual([]);
});
