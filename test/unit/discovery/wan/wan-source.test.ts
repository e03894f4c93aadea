import { afterEach, describe, expect, test } from '@jest/globals';
import { encode } from 'dns-packet';

import { type SearchDomain, searchDomains } from '../../../../src/api/search-domain.ts';
import type { Candidate } from '../../../../src/discovery/candidates.ts';
import { BrowsedDomain, type Pace } from '../../../../src/discovery/wan/domain.ts';
import type { DomainLook } from '../../../../src/discovery/wan/look.ts';
import { WanSource } from '../../../../src/discovery/wan/wan-source.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { type CandidateSourceWorld, describeCandidateSource } from '../../../contract/candidate-source.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { announced, type Asked, DnsServer } from './support/dns-server.ts';

const OWN = 'own'.padEnd(26, 'z');
const DOMAIN = 'clusters.example.org';
const PACE = { minTtlMs: 100, intervalMs: 60 };

interface WanWorld extends CandidateSourceWorld {
  dns: DnsServer;
  api: FakeApi;
  client: KubeClient;
  source: WanSource;
  status(name?: string): SearchDomain['status'];
  browsed(): { status: string; reason: string; message: string } | undefined;
}

const stored = (api: FakeApi, name: string): SearchDomain | undefined =>
  api.storage.get('searchdomains.tributary.dev', name) as SearchDomain | undefined;

async function makeWorld(spec: Partial<SearchDomain['spec']> = {}, pace: Pace = PACE): Promise<WanWorld> {
  const dns = await new DnsServer().start();
  const api = new FakeApi({ types: [searchDomains] });
  api.seed(searchDomains, {
    metadata: { name: 'work' },
    spec: { domain: DOMAIN, servers: [dns.address], ...spec },
  });
  const client = api.client();
  const common = { client, clock: systemClock, log: silentLogger };
  const domains = new Informer<SearchDomain>({ ...common, type: searchDomains, list: {} });
  const source = new WanSource({ ...common, domains, ownClusterID: OWN, pace });
  const { signal } = new AbortController();
  await domains.start(signal);
  source.start(signal);
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
    client,
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

describe('the contract', () => {
  // Records live for three of the least TTLs: for longer than a busy machine may keep this process waiting.
  const pace = { ...PACE, minTtlMs: 700 };
  describeCandidateSource({
    makeWorld: async () => makeWorld({}, pace),
    carriesDetails: true,
    expires: true,
  });
});

const milan = { clusterID: 'milan'.padEnd(26, 'a'), address: '10.1.0.1', port: 6443 };
const rome = { clusterID: 'rome'.padEnd(26, 'b'), address: '10.1.0.2', port: 6443 };

describe('one SearchDomain or more', () => {
  let world: WanWorld;
  afterEach(async () => world.stop());

  const seen = (): string[] => [...world.source.candidates()].map(({ clusterID }) => clusterID).toSorted();
  const untilSeen = async (...ids: string[]): Promise<void> =>
    eventually(`candidates ${ids.join()}`, () => seen().join() === ids.toSorted().join());
  const untilBrowsed = async (status: string, reason: string): Promise<string> => {
    await eventually(`Browsed ${status} ${reason}`, () => {
      const condition = world.browsed();
      return condition?.status === status && condition.reason === reason;
    });
    return world.browsed()?.message ?? '';
  };
  const servfail = ({ answer, send }: Asked): boolean => {
    send(encode({ ...answer, flags: 2, answers: [] }));
    return true;
  };

  test('the status says which clusters are listed and that all was well, and is written once', async () => {
    world = await makeWorld();
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
  });

  test('a glitch takes nobody away: SERVFAIL is not an empty zone', async () => {
    world = await makeWorld();
    world.dns.records = announced(DOMAIN, { ...milan, ttl: 3600 });
    await untilSeen(milan.clusterID);
    world.dns.intercept = servfail;
    expect(await untilBrowsed('False', 'NoServerAnswered')).toMatch(/PTR .*SERVFAIL/);
    expect(seen()).toEqual([milan.clusterID]);
    expect(world.status()?.clusters).toEqual([milan.clusterID]);
    world.dns.intercept = () => false;
    await untilBrowsed('True', 'AsExpected');
    world.dns.records = [];
    await untilSeen();
  });

  test('a glitch of one instance takes neither it nor the others away', async () => {
    world = await makeWorld();
    world.dns.records = [milan, rome].flatMap((one) => announced(DOMAIN, { ...one, ttl: 3600 }));
    await untilSeen(milan.clusterID, rome.clusterID);
    world.dns.intercept = (asked) =>
      asked.type === 'SRV' && asked.name.startsWith('milan') && servfail(asked);
    expect(await untilBrowsed('False', 'NoServerAnswered')).toMatch(/^1 of 2 listed: milan/);
    expect(seen()).toEqual([milan.clusterID, rome.clusterID]);
  });

  test('what is listed but makes no sense is named in the status', async () => {
    world = await makeWorld();
    await world.announceNonsense('nowhere');
    await world.announce(milan);
    expect(await untilBrowsed('False', 'MalformedAnswer')).toMatch(
      /1 of \d listed: nowhere\..*not a ClusterID/,
    );
    await untilSeen(milan.clusterID);
  });

  const texts: [string, (string | Buffer)[], RegExp][] = [
    ['oversized', Array.from({ length: 30 }, (_, index) => `k${index}=${'x'.repeat(200)}`), /TXT is longer/],
    ['full of strings', Array.from({ length: 200 }, (_, index) => `k${index}=1`), /more than 32 strings/],
    ['without ID', ['v=1'], /not a ClusterID/],
    ['binary', [Buffer.from([0x69, 0x64, 0x3d, 0xff, 0xfe])], /not UTF-8/],
  ];
  test.each(texts)('a TXT record that is %s is refused with the reason', async (_what, txt, why) => {
    world = await makeWorld();
    world.dns.records = announced(DOMAIN, milan).map((record) =>
      record.type === 'TXT' ? { ...record, data: txt } : record,
    );
    expect(await untilBrowsed('False', 'MalformedAnswer')).toMatch(why);
    expect(seen()).toEqual([]);
  });

  test.each([
    ['no SRV record', 'SRV', /has no SRV record/],
    ['no TXT record', 'TXT', /has no TXT record/],
    ['no address', 'A', /no address in it can be dialled/],
  ])('an instance with %s is refused', async (_what, missing, why) => {
    world = await makeWorld();
    world.dns.records = announced(DOMAIN, milan).filter(({ type }) => type !== missing);
    expect(await untilBrowsed('False', 'MalformedAnswer')).toMatch(why);
  });

  test('an SRV target of "." says that it is not there', async () => {
    world = await makeWorld();
    world.dns.records = announced(DOMAIN, milan).map((record) =>
      record.type === 'SRV' ? { ...record, data: { port: 6443, target: '.' } } : record,
    );
    expect(await untilBrowsed('False', 'MalformedAnswer')).toMatch(/no address/);
  });

  test('several addresses and services come in the order of the zone, IPv4 first', async () => {
    world = await makeWorld();
    const [ptr, srv, txt] = announced(DOMAIN, milan);
    if (ptr === undefined || txt === undefined || srv?.type !== 'SRV') throw new Error('no records');
    world.dns.records = [
      ptr,
      txt,
      { ...srv, data: { port: 2, target: 'second.example.org', priority: 20 } },
      { ...srv, data: { port: 1, target: 'first.example.org', priority: 10 } },
      { type: 'AAAA', name: 'first.example.org', data: 'fd00::1' },
      { type: 'A', name: 'first.example.org', data: '10.0.0.9' },
      { type: 'A', name: 'first.example.org', data: '10.0.0.8' },
      { type: 'A', name: 'second.example.org', data: '10.0.0.7' },
    ];
    await untilSeen(milan.clusterID);
    const [candidate] = world.source.candidates();
    expect(candidate?.endpoints).toEqual(['10.0.0.8:1', '10.0.0.9:1', '[fd00::1]:1', '10.0.0.7:2']);
  });

  test('a zone of more than a hundred is read up to a hundred, and says so', async () => {
    world = await makeWorld();
    world.dns.records = Array.from({ length: 130 }, (_, index) =>
      announced(DOMAIN, {
        clusterID: `c${String.fromCharCode(97 + (index % 26), 97 + Math.floor(index / 26))}`.padEnd(26, 'x'),
        address: '10.3.0.1',
        port: 1,
      }),
    ).flat();
    expect(await untilBrowsed('False', 'TooManyClusters')).toMatch(/lists 130 clusters; the first 100/);
    expect(seen()).toHaveLength(100);
    // The list itself does not fit a datagram.
    expect(world.dns.log.some((line) => line.startsWith('tcp PTR'))).toBe(true);
  });

  test('a cluster in two domains is one candidate, until both have let it go', async () => {
    world = await makeWorld();
    world.dns.records = [DOMAIN, 'two.example.org'].flatMap((domain) =>
      announced(domain, { ...milan, ttl: 0 }),
    );
    await untilSeen(milan.clusterID);
    world.api.seed(searchDomains, {
      metadata: { name: 'a-second' },
      spec: { domain: 'TWO.example.org.', servers: [world.dns.address], outgoing: 'Enabled' },
    });
    const first = (): Candidate | undefined => [...world.source.candidates()][0];
    await eventually('the first domain by name counts', () => first()?.searchDomain === 'a-second');
    expect(seen()).toEqual([milan.clusterID]);
    expect(first()?.outgoing).toBe('Enabled');
    world.dns.records = announced(DOMAIN, { ...milan, ttl: 0 });
    await eventually('the other domain', () => first()?.searchDomain === 'work');
    expect(seen()).toEqual([milan.clusterID]);
  });

  test('a SearchDomain that is deleted takes its clusters along', async () => {
    world = await makeWorld();
    world.dns.records = announced(DOMAIN, { ...milan, ttl: 3600 });
    await untilSeen(milan.clusterID);
    await world.client.delete(searchDomains, { name: 'work' });
    await untilSeen();
  });

  test('another domain in the spec is looked at at once, and the clusters of the old one are gone', async () => {
    world = await makeWorld({}, { minTtlMs: 60_000, intervalMs: 60_000 });
    world.dns.records = [
      ...announced(DOMAIN, { ...milan, ttl: 3600 }),
      ...announced('two.example.org', { ...rome, ttl: 3600 }),
    ];
    await world.client.patch(
      searchDomains,
      { name: 'work' },
      { type: 'merge', body: { spec: { intervalSeconds: 600 } } },
    );
    await untilSeen(milan.clusterID);
    await world.client.patch(
      searchDomains,
      { name: 'work' },
      { type: 'merge', body: { spec: { domain: 'two.example.org' } } },
    );
    await untilSeen(rome.clusterID);
  });

  test('a spec that cannot be used says so', async () => {
    world = await makeWorld({ servers: ['dns.example.org'] });
    expect(await untilBrowsed('False', 'InvalidSpec')).toMatch(/"dns.example.org" is not of the form/);
  });

  test('a status that cannot be written is written later, without another look', async () => {
    world = await makeWorld({}, { minTtlMs: 60_000, intervalMs: 60_000 });
    world.api.fault({ match: ({ path }) => path.endsWith('/status'), times: 2, status: 500 });
    await untilBrowsed('True', 'AsExpected');
    expect(world.dns.log.filter((line) => line.startsWith('udp PTR'))).toHaveLength(1);
    expect(world.api.count(/^PATCH/)).toBe(3);
  });
});

test('the look comes again before the TTL is over, and waits for no longer than the interval', () => {
  const domain = new BrowsedDomain('work', { minTtlMs: 10_000, intervalMs: 300_000 });
  const spec = { domain: DOMAIN };
  const cluster = { clusterID: milan.clusterID, endpoints: ['10.1.0.1:1'], protocols: [1] };
  const look = (ttlSeconds: number, ofList: number | undefined = 3600): DomainLook => ({
    instances: new Map([['milan', { kind: 'found', cluster, ttlSeconds }]]),
    surplus: 0,
    ttlSeconds: ofList,
  });
  const after = (one: DomainLook, intervalMs?: number): [dueMs: number, livesMs: number | undefined] => {
    domain.looked(one, { now: 1000, ...(intervalMs !== undefined && { intervalMs }) });
    const expiresAt = domain.candidates(1000).get(milan.clusterID)?.expiresAt;
    return [domain.dueInMs(1000), expiresAt === undefined ? undefined : expiresAt - 1000];
  };
  domain.asked(spec);
  expect(domain.dueInMs(1000)).toBe(0);
  expect(after(look(60))).toEqual([48_000, 60_000]);
  expect(after(look(3600))).toEqual([300_000, 3_600_000]);
  expect(after(look(3600), 20_000)).toEqual([20_000, 3_600_000]);
  expect(after(look(3600, 30))).toEqual([24_000, 30_000]);
  expect(after(look(3600, 45))).toEqual([36_000, 45_000]);
  expect(after(look(0))).toEqual([8000, 30_000]);
  expect(after({ instances: new Map(), surplus: 0, ttlSeconds: undefined })).toEqual([300_000, undefined]);
  // Not answered: asked soon again, and what was known lives on, but no longer than it would have.
  after(look(60));
  const unanswered = {
    instances: new Map([['milan', { kind: 'unanswered' as const, why: '' }]]),
    surplus: 0,
    ttlSeconds: 3600,
  };
  expect(after(unanswered)).toEqual([8000, 60_000]);
  expect(domain.candidates(61_001).size).toBe(0);
  domain.asked({ ...spec, intervalSeconds: 5 });
  expect(domain.dueInMs(1000)).toBe(0);
  expect(domain.candidates(1000).size).toBe(1);
  domain.asked({ ...spec, servers: ['10.0.0.1'] });
  expect(domain.candidates(1000).size).toBe(0);
});
