import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { type ForeignCluster, foreignClusters, type Sighting } from '../../../src/api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../../src/api/names.ts';
import { type Candidate, CandidateSet, type CandidateSource } from '../../../src/discovery/candidates.ts';
import {
  foreignClusterIndexes,
  type SightingLimits,
  SightingWriter,
} from '../../../src/discovery/sighting-writer.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { candidateOf, MILAN, ROME } from './support/candidates.ts';

/** A source that sees what it is told. */
let clock: FakeClock;

class ToldSource implements CandidateSource {
  readonly name = 'told';
  readonly source: CandidateSource['source'];
  readonly #set = new CandidateSet(clock);

  constructor(source: CandidateSource['source'] = 'WAN') {
    this.source = source;
  }

  async start(): Promise<void> {
    await Promise.resolve();
  }

  see(...candidates: Candidate[]): void {
    this.#set.replace(new Map(candidates.map((one) => [one.clusterID, one])));
  }

  candidates(): Iterable<Candidate> {
    return this.#set.values();
  }

  onChange(listener: (clusterID: string) => void): () => void {
    return this.#set.onChange(listener);
  }
}

describe('the writer', () => {
  let api: FakeApi;
  let client: HttpClient;
  let clusters: Informer<ForeignCluster>;
  let source: ToldSource;
  const writers: SightingWriter[] = [];

  beforeEach(async () => {
    clock = new FakeClock();
    api = new FakeApi({ clock, types: [foreignClusters] });
    client = api.client();
    clusters = new Informer({
      client,
      type: foreignClusters,
      list: {},
      clock,
      log: silentLogger,
      indexes: foreignClusterIndexes,
    });
    await clusters.start(new AbortController().signal);
    source = new ToldSource();
  });
  afterEach(async () => {
    for (const writer of writers.splice(0)) await writer.stop();
    await clusters.stop();
    await client.close();
    await api.stop();
  });

  async function write(
    limits: Partial<SightingLimits> = {},
    from: ToldSource = source,
    random?: () => number,
  ): Promise<SightingWriter> {
    const writer = new SightingWriter({
      client,
      source: from,
      clusters,
      clock,
      log: silentLogger,
      limits,
      ...(random && { random }),
    });
    writers.push(writer);
    writer.start(new AbortController().signal);
    return writer;
  }
  const seed = (name: string, spec: ForeignCluster['spec'], status?: ForeignCluster['status']): void => {
    api.seed(foreignClusters, { metadata: { name }, spec, ...(status && { status }) });
  };
  const read = (name: string): ForeignCluster | undefined =>
    api.storage.get('foreignclusters.tributary.dev', name);
  const sighting = (name: string): Sighting | undefined => read(name)?.status?.sightings?.WAN;
  const untilSighted = async (name: string): Promise<void> =>
    clock.until(`${name} is sighted`, () => sighting(name) !== undefined);
  /** All that has been asked for has been done, and the cache shows it. */
  const untilQuiet = async (): Promise<void> => {
    let before = '';
    await clock.until('quiet', async () => {
      const now = `${api.log.length} ${api.storage.revision}`;
      const isQuiet = now === before;
      before = now;
      await clock.advance(40);
      return isQuiet;
    });
  };

  test('a candidate that is new becomes a ForeignCluster with a sighting', async () => {
    await write();
    source.see(candidateOf(MILAN, { clusterName: 'Milan', searchDomain: 'work', outgoing: 'Enabled' }));
    await untilSighted(MILAN);
    expect(read(MILAN)).toMatchObject({
      metadata: { name: MILAN, labels: { [LABEL_DISCOVERED]: 'true' } },
      spec: { clusterID: MILAN, outgoing: 'Enabled', incoming: 'Auto' },
      status: {
        sightings: {
          WAN: {
            endpoints: ['10.1.0.1:6443'],
            clusterName: 'Milan',
            protocols: [1],
            searchDomain: 'work',
            firstSeen: '2026-01-01T00:00:00Z',
            expires: '2026-01-01T00:05:00Z',
          },
        },
      },
    });
  });

  test('what was seen before the start is written too', async () => {
    source.see(candidateOf(MILAN));
    await write();
    await untilSighted(MILAN);
    expect(read(MILAN)?.spec?.outgoing).toBe('Auto');
  });

  test('the one that a person has made is used, and nothing of theirs is touched', async () => {
    const spec = { clusterID: MILAN, outgoing: 'Disabled' as const, endpoint: '1.2.3.4:5' };
    const lan = {
      endpoints: ['10.9.9.9:1'],
      firstSeen: '2026-01-01T00:00:00Z',
      expires: '2027-01-01T00:00:00Z',
    };
    seed('my-milan', spec, { sightings: { LAN: lan }, foundBy: 'LAN' });
    await clock.until('in the cache', () => clusters.size === 1);
    await write();
    source.see(candidateOf(MILAN));
    await untilSighted('my-milan');
    await untilQuiet();
    expect(read('my-milan')?.spec).toEqual(spec);
    expect(read('my-milan')?.status).toMatchObject({ sightings: { LAN: lan }, foundBy: 'LAN' });
    expect(read(MILAN)).toBeUndefined();
  });

  test('where a person has made another one later, the sighting moves', async () => {
    await write();
    source.see(candidateOf(MILAN));
    await untilSighted(MILAN);
    await client.create(foreignClusters, { metadata: { name: 'my-milan' }, spec: { clusterID: MILAN } });
    await untilSighted('my-milan');
    await clock.until('the old one is no longer sighted', () => sighting(MILAN) === undefined);
  });

  test('what changes is written, what is no longer said is taken away, and only its own key', async () => {
    await write();
    source.see(candidateOf(MILAN, { clusterName: 'Milan', searchDomain: 'work' }));
    await untilSighted(MILAN);
    source.see(candidateOf(MILAN, { endpoints: ['10.1.0.2:6443'] }));
    await clock.until('the new endpoint', () => sighting(MILAN)?.endpoints[0] === '10.1.0.2:6443');
    expect(sighting(MILAN)).not.toHaveProperty('clusterName');
    expect(sighting(MILAN)).not.toHaveProperty('searchDomain');
    expect(api.log.filter((line) => /^(PUT|DELETE)/.test(line))).toEqual([]);
    expect(api.log.filter((line) => line.startsWith('PATCH') && !line.includes('/status'))).toEqual([]);
  });

  test('nothing is written while nothing differs, until half of the time is over', async () => {
    await write({ validityMs: 300_000 });
    source.see(candidateOf(MILAN));
    await untilSighted(MILAN);
    await untilQuiet();
    const writes = api.count(/^PATCH/);
    // Told again, and the object changes for another reason.
    source.see(candidateOf(MILAN, { expiresAt: 1e9 }));
    await client.patch(
      foreignClusters,
      { name: MILAN },
      { type: 'merge', body: { metadata: { labels: { a: 'b' } } } },
    );
    await clock.advance(149_000);
    await untilQuiet();
    expect(api.count(/^PATCH.*status/)).toBe(writes);
    await clock.advance(2000);
    await clock.until('renewed', () => sighting(MILAN)?.expires === '2026-01-01T00:07:30Z');
    expect(sighting(MILAN)?.firstSeen).toBe('2026-01-01T00:00:00Z');
  });

  test('who is gone loses the sighting, and the object stays for others to judge', async () => {
    await write();
    source.see(candidateOf(MILAN), candidateOf(ROME));
    await untilSighted(MILAN);
    await untilSighted(ROME);
    source.see(candidateOf(ROME));
    await clock.until('milan is no longer sighted', () => sighting(MILAN) === undefined);
    expect(read(MILAN)?.metadata.deletionTimestamp).toBeUndefined();
    expect(sighting(ROME)).toBeDefined();
  });

  test('what a predecessor has seen holds until it expires, then goes', async () => {
    const known = {
      endpoints: ['10.1.0.1:6443'],
      firstSeen: '2026-01-01T00:00:00Z',
      expires: '2026-01-01T00:01:00Z',
    };
    seed(MILAN, { clusterID: MILAN }, { sightings: { WAN: known } });
    await clock.until('in the cache', () => clusters.size === 1);
    await write();
    await clock.advance(59_000);
    await untilQuiet();
    expect(sighting(MILAN)).toEqual(known);
    await clock.advance(2000);
    await clock.until('expired', () => sighting(MILAN) === undefined);
  });

  test('a time far ahead, of a predecessor whose clock was wrong, is not waited for', async () => {
    const known = { endpoints: [], firstSeen: '2026-01-01T00:00:00Z', expires: '2099-01-01T00:00:00Z' };
    seed(MILAN, { clusterID: MILAN }, { sightings: { WAN: known } });
    await clock.until('in the cache', () => clusters.size === 1);
    await write();
    await clock.until('taken away', () => sighting(MILAN) === undefined);
  });

  test('two ways of discovery write side by side, and neither touches what the other has written', async () => {
    const lan = new ToldSource('LAN');
    await write();
    await write({}, lan);
    for (let turn = 1; turn <= 10; turn++) {
      lan.see(candidateOf(MILAN, { endpoints: [`10.1.0.${turn}:1`] }));
      source.see(candidateOf(MILAN, { endpoints: [`10.2.0.${turn}:1`] }));
      await clock.until('both', () => {
        const { LAN, WAN } = read(MILAN)?.status?.sightings ?? {};
        return LAN?.endpoints[0] === `10.1.0.${turn}:1` && WAN?.endpoints[0] === `10.2.0.${turn}:1`;
      });
    }
    expect(clusters.size).toBe(1);
    lan.see();
    await clock.until('the LAN is gone', () => read(MILAN)?.status?.sightings?.LAN === undefined);
    expect(sighting(MILAN)?.endpoints).toEqual(['10.2.0.10:1']);
  });

  test('whoever stops leaves sightings behind, for the next to go on', async () => {
    const writer = await write();
    source.see(candidateOf(MILAN));
    await untilSighted(MILAN);
    await writer.stop();
    writers.length = 0;
    expect(sighting(MILAN)).toBeDefined();
  });

  test('an object that is deleted while its cluster is seen comes again', async () => {
    await write();
    source.see(candidateOf(MILAN));
    await untilSighted(MILAN);
    const { uid } = read(MILAN)?.metadata ?? {};
    await client.delete(foreignClusters, { name: MILAN });
    await clock.until('again', () => read(MILAN) !== undefined && read(MILAN)?.metadata.uid !== uid);
    await untilSighted(MILAN);
  });

  test('an object that is being deleted is left alone', async () => {
    api.seed(foreignClusters, { metadata: { name: MILAN, finalizers: ['a/b'] }, spec: { clusterID: MILAN } });
    await client.delete(foreignClusters, { name: MILAN });
    await clock.until('in the cache', () => clusters.get(MILAN)?.metadata.deletionTimestamp !== undefined);
    await write();
    source.see(candidateOf(MILAN));
    await untilQuiet();
    expect(api.count(/^(PATCH|POST)/)).toBe(0);
  });

  const many = (count: number, from = 0): Candidate[] =>
    Array.from({ length: count }, (_, index) => {
      const letters = String.fromCharCode(97 + ((index + from) % 26), 97 + Math.floor((index + from) / 26));
      return candidateOf(`m${letters}`.padEnd(26, 'x'));
    });

  test('one that announces something else each moment is written less and less often, and as it is in the end', async () => {
    await write();
    for (let change = 0; change < 300; change++) {
      source.see(candidateOf(MILAN, { clusterName: `Milan ${change}` }));
      await clock.advance(100);
    }
    await untilQuiet();
    expect(api.count(/^PATCH/)).toBeLessThan(32);
    await clock.advance(60_000);
    await clock.until('the last word', () => sighting(MILAN)?.clusterName === 'Milan 299');
  });

  test('new objects are made at a bounded rate', async () => {
    await write({ creationBurst: 5, creationsPerSecond: 5 });
    source.see(...many(20));
    await clock.until('the burst', () => api.count(/^POST/) === 5);
    await untilQuiet();
    expect(api.count(/^POST/)).toBe(5);
    await clock.advance(1000);
    await untilQuiet();
    expect(api.count(/^POST/)).toBe(10);
    for (let second = 0; second < 3; second++) {
      await clock.advance(1000);
      await untilQuiet();
    }
    expect(api.count(/^POST/)).toBe(20);
  });

  test('of too many the first stay, and there is room again when one leaves', async () => {
    await write({ maxCandidates: 10 });
    source.see(...many(10));
    await clock.until('ten', () => api.count(/^POST/) === 10);
    source.see(...many(30));
    await untilQuiet();
    expect(api.count(/^POST/)).toBe(10);
    // The objects of those that left are forgotten by whoever keeps ForeignClusters.
    for (const { clusterID } of many(3)) await client.delete(foreignClusters, { name: clusterID });
    source.see(...many(27, 3));
    await untilQuiet();
    await clock.advance(31_000);
    await clock.until('three more', () => api.count(/^POST/) === 13);
    await untilQuiet();
    expect(api.count(/^POST/)).toBe(13);
  });

  test('clusters that have only come in by themselves take no room', async () => {
    const Incoming = { endpoints: [], firstSeen: '2026-01-01T00:00:00Z', expires: '2026-01-01T01:00:00Z' };
    const [status, labels] = [{ sightings: { Incoming } }, { [LABEL_DISCOVERED]: 'true' }];
    for (const { clusterID: name } of many(10))
      api.seed(foreignClusters, { metadata: { name, labels }, spec: { clusterID: name }, status });
    await clock.until('they are known', () => [...clusters.list()].length === 10);
    await write({ maxCandidates: 10 });
    source.see(candidateOf(MILAN));
    await untilSighted(MILAN);
  });

  test('a name that is taken for another cluster is no reason to try without pause', async () => {
    // Pauses in the middle of what chance gives: many short ones in a row would be asked for as often.
    await write({}, source, () => 0.5);
    api.fault({ match: ({ method }) => method === 'POST', times: 100, status: 409, body: '' });
    source.see(candidateOf(MILAN));
    await untilQuiet();
    expect(api.count(/^POST/)).toBeLessThan(5);
  });

  test('an API server that refuses for a while is tried again', async () => {
    await write();
    api.fault({ match: ({ method }) => method === 'PATCH', times: 3, status: 500 });
    source.see(candidateOf(MILAN));
    await clock.until('sighted', async () => {
      await clock.advance(1000);
      return sighting(MILAN) !== undefined;
    });
  });
});
