import { expect, test } from '@jest/globals';
import type { SearchDomain } from '../../../../src/api/search-domain.ts';
import { searchDomains } from '../../../../src/api/search-domain.ts';
import { WanSource } from '../../../../src/discovery/wan/wan-source.ts';
import { createClient } from '../../../../src/kube/http-client.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { describeCandidateSource } from '../../../contract/candidate-source.ts';
import type { CandidateSourceWorld } from '../../../contract/candidate-source.ts';
import { DnsServer, announced } from '../../../support/dns-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeApiServer } from '../../../support/fake-api-server.ts';

const OWN = 'own'.padEnd(26, 'z');
const DOMAIN = 'clusters.example.org';
const PACE = { minTtlMs: 100, intervalMs: 60 };

interface WanWorld extends CandidateSourceWorld {
  dns: DnsServer;
  api: FakeApiServer;
  source: WanSource;
  status(name?: string): SearchDomain['status'];
  browsed(): { status: string; reason: string; message: string } | undefined;
}

const stored = (api: FakeApiServer, name: string): SearchDomain | undefined =>
  api.storage.get('searchdomains.tributary.dev', name) as SearchDomain | undefined;

async function makeWorld(spec: Partial<SearchDomain['spec']> = {}): Promise<WanWorld> {
  const dns = await new DnsServer().start();
  const api = await new FakeApiServer({ types: [searchDomains] }).start();
  api.seed(searchDomains, {
    metadata: { name: 'work' },
    spec: { domain: DOMAIN, servers: [dns.address], ...spec },
  });
  const client = createClient(api.credentials());
  const common = { client, clock: systemClock, log: silentLogger };
  const domains = new Informer<SearchDomain>({ ...common, type: searchDomains, list: {} });
  const source = new WanSource({ ...common, domains, ownClusterID: OWN, pace: PACE });
  const { signal } = new AbortController();
  await domains.start(signal);
  await source.start(signal);
  const without = (label: string): typeof dns.records =>
    dns.records.filter(
      (record) =>
        !record.name.startsWith(`${label}.`) &&
        !(record.type === 'PTR' && record.data.startsWith(`${label}.`)),
    );
  const status: WanWorld['status'] = (name = 'work') => stored(api, name)?.status;
  return {
    dns,
    api,
    source,
    status,
    browsed: () => status()?.conditions?.find(({ type }) => type === 'Browsed'),
    ownClusterID: OWN,
    announce: async (one) => {
      dns.records = [...without(one.clusterID), ...announced(DOMAIN, { ...one, ttl: 0 })];
      return Promise.resolve();
    },
    withdraw: async (clusterID) => {
      dns.records = without(clusterID);
      return Promise.resolve();
    },
    fallSilent: async () => {
      dns.intercept = () => true;
      return Promise.resolve();
    },
    announceNonsense: async (label) => {
      const [ptr, , , address] = announced(DOMAIN, { clusterID: label, address: '10.9.9.9', port: 1 });
      const instance = `${label}._tributary._tcp.${DOMAIN}`;
      if (ptr === undefined || address === undefined) throw new Error('no records');
      dns.records.push(ptr, address, { type: 'TXT', name: instance, data: ['id=../../etc', 'v=NaN'] });
      dns.records.push({ type: 'SRV', name: instance, data: { port: 0, target: `${label}.${DOMAIN}` } });
      return Promise.resolve();
    },
    stop: async () => {
      await source.stop();
      await domains.stop();
      await client.close();
      await api.stop();
      await dns.stop();
    },
  };
}

describeCandidateSource({ makeWorld, carriesDetails: true, expires: true });

const milan = { clusterID: 'milan'.padEnd(26, 'a'), address: '10.1.0.1', port: 6443 };

test('the status says which clusters are listed and that all was well', async () => {
  const world = await makeWorld();
  try {
    await world.announce(milan);
    await eventually('milan in the status', () => world.status()?.clusters?.length === 1);
    expect(world.status()).toMatchObject({
      observedGeneration: 1,
      clusters: [milan.clusterID],
      conditions: [{ type: 'Browsed', status: 'True', reason: 'AsExpected', message: '1 listed' }],
    });
    const writes = world.api.count(/^PATCH/);
    const asked = world.dns.log.length;
    await eventually('three more looks', () => world.dns.log.length >= asked + 15);
    expect(world.api.count(/^PATCH/)).toBe(writes);
  } finally {
    await world.stop();
  }
});
