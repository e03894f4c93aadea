import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { ForeignCluster, Sighting } from '../../src/api/foreign-cluster.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import type { SearchDomain } from '../../src/api/search-domain.ts';
import { searchDomains } from '../../src/api/search-domain.ts';
import { SightingWriter, foreignClusterIndexes } from '../../src/discovery/sighting-writer.ts';
import { WanSource } from '../../src/discovery/wan/wan-source.ts';
import { type HttpClient, createClient } from '../../src/kube/http-client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Component } from '../../src/lib/lifecycle.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { CoreDns, type ZoneCluster, zoneLines } from '../support/network/core-dns.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** DNS-SD over unicast DNS: CoreDNS on one side, ForeignClusters of a real API server on the other. */

const DOMAIN = 'example.org';
/** So that a test need not wait for minutes; TTLs of the zones are whole seconds. */
const PACE = { minTtlMs: 300, intervalMs: 300_000 };

let lab: RightsCluster;
let client: HttpClient;
let dns: CoreDns;
let source: WanSource;
let running: Component[] = [];

beforeAll(async () => {
  lab = await RightsCluster.up();
  client = createClient(await parseKubeconfig(readFileSync(lab.cluster.kubeconfig, 'utf8')));
});
afterAll(async () => {
  await client?.close();
  await lab?.down();
});

beforeEach(async () => {
  dns = await CoreDns.start();
  const common = { client, clock: systemClock, log: silentLogger };
  const domains = new Informer<SearchDomain>({ ...common, type: searchDomains, list: {} });
  const clusters = new Informer<ForeignCluster>({
    ...common,
    type: foreignClusters,
    list: {},
    indexes: foreignClusterIndexes,
  });
  source = new WanSource({ ...common, domains, ownClusterID: 'own'.padEnd(26, 'z'), pace: PACE });
  const writer = new SightingWriter({
    ...common,
    source,
    clusters,
  });
  running = [domains, clusters, source, writer];
  for (const component of running) await component.start?.(new AbortController().signal);
});
afterEach(async () => {
  for (const component of running.toReversed()) await component.stop?.();
  await dns.stop();
  for (const type of [searchDomains, foreignClusters]) {
    for (const { metadata } of (await client.list(type)).items) await client.delete(type, metadata);
  }
});

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const clusterOf = (label: string, number = 1): ZoneCluster => ({
  clusterID: label.replaceAll(/[^a-z]/g, '').padEnd(26, 'q'),
  label,
  address: `10.7.0.${number}`,
  port: 7443,
});
const [milan, rome] = [clusterOf('milan', 1), clusterOf('rome', 2)];
const browse = async (
  servers: readonly string[],
  spec: Partial<SearchDomain['spec']> = {},
): Promise<void> => {
  const body = { metadata: { name: 'work' }, spec: { domain: DOMAIN, servers: [...servers], ...spec } };
  await client.create(searchDomains, body);
};
async function sightings(): Promise<Map<string, Sighting>> {
  const { items } = await client.list(foreignClusters);
  return new Map(
    items.flatMap(({ metadata, status }) => {
      const sighting = status?.sightings?.WAN;
      return sighting === undefined ? [] : [[metadata.name, sighting] as const];
    }),
  );
}
const untilSighted = async (...clusters: ZoneCluster[]): Promise<Map<string, Sighting>> => {
  const wanted = clusters
    .map(({ clusterID }) => clusterID)
    .toSorted()
    .join();
  // The same look, since records of a second may be away in the next one.
  return awaited(`sightings of ${clusters.map(({ label }) => label).join()}`, async () => {
    const found = await sightings();
    return [...found.keys()].toSorted().join() === wanted && found;
  });
};
const untilBrowsed = async (status: string, reason: string): Promise<string> => {
  const read = async (): Promise<SearchDomain> => client.get(searchDomains, { name: 'work' });
  const condition = (domain: SearchDomain): { status: string; reason: string; message: string } | undefined =>
    domain.status?.conditions?.find(({ type }) => type === 'Browsed');
  await eventually(`Browsed ${status} ${reason}`, async () => {
    const found = condition(await read());
    return found?.status === status && found.reason === reason;
  });
  return condition(await read())?.message ?? '';
};

test('clusters of a zone are found, change and leave', async () => {
  await dns.zone([milan, rome].flatMap(zoneLines), 1);
  await browse([dns.address], { outgoing: 'Enabled' });
  const began = performance.now();
  const found = await untilSighted(milan, rome);
  console.log(`from SearchDomain to sightings: ${Math.round(performance.now() - began)} ms`);
  expect(found.get(milan.clusterID)).toMatchObject({
    endpoints: ['10.7.0.1:7443'],
    clusterName: 'milan',
    protocols: [1],
    searchDomain: 'work',
  });
  const { spec } = await client.get(foreignClusters, { name: milan.clusterID });
  expect(spec).toMatchObject({ clusterID: milan.clusterID, outgoing: 'Enabled', incoming: 'Auto' });
  await dns.zone([{ ...milan, address: 'fd00::7' }, rome].flatMap(zoneLines), 1);
  await eventually(
    'the new address',
    async () => (await sightings()).get(milan.clusterID)?.endpoints[0] === '[fd00::7]:7443',
  );
  await dns.zone(zoneLines(rome), 1);
  await untilSighted(rome);
  await dns.zone([], 1);
  await untilSighted();
  await dns.zone(zoneLines(milan), 1);
  await untilSighted(milan);
});

test('of several servers, one silent and one that fails, the one that knows is heard', async () => {
  await dns.zone([milan].flatMap(zoneLines), 1);
  const silent = createSocket('udp4');
  await new Promise<void>((resolve) => silent.bind(0, '127.0.0.1', resolve));
  const failing = await CoreDns.start('template IN ANY {\n rcode SERVFAIL\n }');
  try {
    await browse([`127.0.0.1:${silent.address().port}`, failing.address, '127.0.0.1:1', dns.address]);
    await untilSighted(milan);
    await untilBrowsed('True', 'AsExpected');
  } finally {
    silent.close();
    await failing.stop();
  }
});

test('while only SERVFAIL comes, what was found stays; an empty zone takes it away', async () => {
  await dns.zone(zoneLines(milan), 3600);
  await browse([dns.address], { intervalSeconds: 1 });
  await untilSighted(milan);
  await dns.kill();
  await dns.run('template IN ANY {\n rcode SERVFAIL\n }');
  await eventually('SERVFAIL is told', async () =>
    (await untilBrowsed('False', 'NoServerAnswered')).includes('SERVFAIL'),
  );
  expect([...(await sightings()).keys()]).toEqual([milan.clusterID]);
  await dns.kill();
  await dns.run();
  await dns.zone([]);
  await untilSighted();
  await untilBrowsed('True', 'AsExpected');
});

test('a dead server: what was found stays till its TTL, and no longer', async () => {
  // It is asked again in the last fifth, in which the failure must be told and looked at.
  await dns.zone(zoneLines(milan), 20);
  await browse([dns.address]);
  await untilSighted(milan);
  await dns.kill();
  await untilBrowsed('False', 'NoServerAnswered');
  expect([...(await sightings()).keys()]).toEqual([milan.clusterID]);
  await untilSighted();
  await dns.run();
  await untilSighted(milan);
  await untilBrowsed('True', 'AsExpected');
});

test('a zone of a hundred clusters comes over TCP, whole', async () => {
  const many = Array.from({ length: 100 }, (_, index) =>
    clusterOf(`site-${LETTERS[Math.floor(index / 26)]}${LETTERS[index % 26]}`, index + 1),
  );
  await dns.zone(many.flatMap(zoneLines), 3600);
  const began = performance.now();
  await browse([dns.address]);
  await untilSighted(...many);
  console.log(`a hundred clusters: ${Math.round(performance.now() - began)} ms`);
  await untilBrowsed('True', 'AsExpected');
  const { status } = await client.get(searchDomains, { name: 'work' });
  expect(status?.clusters).toHaveLength(100);
});

test('through a forwarder with a cache', async () => {
  await dns.zone([milan, rome].flatMap(zoneLines), 2);
  const forwarder = await CoreDns.start(`forward . ${dns.address}\n cache 5`);
  try {
    await browse([forwarder.address]);
    await untilSighted(milan, rome);
    await dns.zone(zoneLines(rome), 2);
    await untilSighted(rome);
  } finally {
    await forwarder.stop();
  }
});

test('an instance with an alias as its host, and one that makes no sense', async () => {
  const lines = zoneLines(milan).map((line) => line.replace(/7443 milan$/, '7443 www'));
  const nonsense = zoneLines(clusterOf('odd', 9)).map((line) => line.replace('"id=', '"id=../'));
  await dns.zone([...lines, 'www IN CNAME milan', ...nonsense], 1);
  await browse([dns.address]);
  await untilSighted(milan);
  expect(await untilBrowsed('False', 'MalformedAnswer')).toMatch(
    /1 of 2 listed: odd\._tributary.*not a ClusterID/,
  );
});
