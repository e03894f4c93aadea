import { beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, decode, encode } from 'dns-packet';

import { ServiceCache } from '../../../../src/discovery/lan/cache.ts';
import { Quota } from '../../../../src/lib/quota.ts';
import { type LanRecord, readPacket } from '../../../../src/discovery/lan/wire.ts';
import { type AnnouncedCluster, announcementRecords } from '../../../support/network/lan-packets.ts';

const ID = 'milan'.padEnd(26, 'a');
const ROME = 'rome'.padEnd(26, 'b');
const milan: AnnouncedCluster = { id: ID, address: '10.0.0.2', label: 'milan', ttl: 100 };

/** As they come from the wire. */
function records(...answers: Answer[]): LanRecord[] {
  const message = readPacket(decode(encode({ type: 'response', answers })));
  if (message?.kind !== 'response') throw new Error('not a response');
  return message.records;
}
const [ptr, srv, txt, address] = announcementRecords(milan) as [Answer, Answer, Answer, Answer];
const goodbye = (answer: Answer): Answer => ({ ...answer, ttl: 0 }) as Answer;

let now: number;
let changed: string[];
let refused: string[];
let quota: Quota;
let cache: ServiceCache;

beforeEach(() => {
  now = 0;
  changed = [];
  refused = [];
  quota = new Quota(1000);
  cache = new ServiceCache({
    name: 'eth0',
    quota,
    random: () => 0,
    now: () => now,
    onChange: (clusterID) => changed.push(clusterID),
    onRefused: (why) => refused.push(why),
  });
});

const announce = (cluster: AnnouncedCluster, source = cluster.address): number =>
  cache.receive(records(...announcementRecords(cluster)), source);
const sweepAt = (ms: number): string[] => {
  now = ms;
  return cache.sweep().questions.map(({ name, type }) => `${type} ${name}`);
};
const endpoints = (id = ID): string[] => cache.sightings(id).flatMap((one) => one.endpoints);

describe('an announcement', () => {
  test('whole, in whatever order, is a sighting', () => {
    cache.receive(records(address, txt, srv, ptr), '10.0.0.2');
    expect(cache.sightings(ID)).toEqual([
      {
        clusterID: ID,
        clusterName: 'milan',
        protocols: [1],
        endpoints: ['10.0.0.2:7443'],
        expiresAt: 100_000,
        firstSeen: 0,
        source: '10.0.0.2',
      },
    ]);
    expect(changed).toEqual([ID]);
  });

  test('in parts is asked for until it is whole, and given up in the end', () => {
    cache.receive(records(ptr), '10.0.0.2');
    const name = 'milan._tributary._tcp.local';
    expect(sweepAt(99)).toEqual([]);
    expect(sweepAt(100)).toEqual([`SRV ${name}`, `TXT ${name}`]);
    expect(sweepAt(1000)).toEqual([]);
    cache.receive(records(srv), '10.0.0.2');
    expect(sweepAt(1100)).toEqual([`TXT ${name}`, 'A milan.local', 'AAAA milan.local']);
    cache.receive(records(txt), '10.0.0.2');
    expect(sweepAt(3100)).toEqual(['A milan.local', 'AAAA milan.local']);
    expect(sweepAt(7100)).toEqual(['A milan.local', 'AAAA milan.local']);
    expect(cache.size).toBe(1);
    sweepAt(15_100);
    expect(cache.size).toBe(0);
    expect(quota.size).toBe(0);
    expect(changed).toEqual([]);
  });

  test('of other services, of names that cannot be written, without pointer: passed over', () => {
    const elsewhere = { ...ptr, name: '_http._tcp.local' };
    const outside = { ...ptr, data: 'milan._http._tcp.local' } as Answer;
    const unwritable = { ...ptr, data: 'a..b._tributary._tcp.local' } as Answer;
    cache.receive(
      [
        ...records(elsewhere, outside),
        { ...records(unwritable)[0], data: 'a\u{FFFD}._tributary._tcp.local' } as LanRecord,
      ],
      '10.0.0.2',
    );
    cache.receive(records(srv, txt, address), '10.0.0.2');
    expect(cache.size).toBe(0);
    expect(cache.sweep().questions).toEqual([]);
  });

  test('that is not to be believed is told once for each time, and is no sighting', () => {
    announce({ ...milan, txt: ['id=nobody', 'v=1'] });
    expect(cache.sightings(ID)).toEqual([]);
    expect(refused).toEqual([expect.stringContaining('not a ClusterID')]);
    expect(changed).toEqual([]);
  });
});

describe('the life of a record', () => {
  test('it is asked for at 80, 85, 90 and 95 % of its TTL, then it is over', () => {
    announce(milan);
    const all = [
      'PTR _tributary._tcp.local',
      'SRV milan._tributary._tcp.local',
      'TXT milan._tributary._tcp.local',
      'A milan.local',
    ];
    expect(sweepAt(79_999)).toEqual([]);
    for (const at of [80_000, 85_000, 90_000, 95_000]) {
      expect(sweepAt(at)).toEqual(all);
      expect(sweepAt(at + 1)).toEqual([]);
    }
    expect(cache.sightings(ID)).toHaveLength(1);
    changed.length = 0;
    sweepAt(100_000);
    expect(cache.sightings(ID)).toEqual([]);
    expect(changed).toEqual([ID]);
    expect(cache.size).toBe(0);
  });

  test('an answer in time renews it', () => {
    announce(milan);
    sweepAt(80_000);
    announce(milan);
    expect(sweepAt(100_000)).toEqual([]);
    expect(cache.sightings(ID)[0]?.expiresAt).toBe(180_000);
  });

  test('a host without addresses that live is no longer to be dialled, but asked for', () => {
    announce(milan);
    cache.receive(records({ ...address, ttl: 10 } as Answer), '10.0.0.2');
    expect(sweepAt(10_000)).toEqual(expect.arrayContaining(['A milan.local']));
    expect(cache.sightings(ID)).toEqual([]);
    cache.receive(records(address), '10.0.0.2');
    expect(endpoints()).toEqual(['10.0.0.2:7443']);
  });

  test.each([
    ['pointer', goodbye(ptr)],
    ['service', goodbye(srv)],
    ['text', goodbye(txt)],
    ['address', goodbye(address)],
  ])('goodbye of its %s takes effect after a second', (_, record) => {
    announce(milan);
    now = 5000;
    expect(cache.receive(records(record), '10.0.0.2')).toBe(6000);
    sweepAt(5999);
    expect(cache.sightings(ID)).toHaveLength(1);
    sweepAt(6000);
    expect(cache.sightings(ID)).toEqual([]);
    expect(changed.at(-1)).toBe(ID);
  });

  test('goodbye of what is not known is nothing', () => {
    cache.receive(records(goodbye(ptr), goodbye(srv), goodbye(address)), '10.0.0.2');
    expect(cache.size).toBe(0);
  });

  test('goodbye of a record that was replaced says nothing of the new one', () => {
    announce(milan);
    cache.receive(
      records({ ...srv, data: { target: 'milan.local', port: 8443 } } as Answer, goodbye(srv)),
      '10.0.0.2',
    );
    cache.receive(records(goodbye(srv), goodbye({ ...txt, data: ['id=other'] } as Answer)), '10.0.0.2');
    sweepAt(2000);
    expect(endpoints()).toEqual(['10.0.0.2:8443']);
  });

  test('a goodbye that is followed by an announcement within the second is undone', () => {
    announce(milan);
    cache.receive(records(goodbye(ptr), goodbye(srv), goodbye(txt), goodbye(address)), '10.0.0.2');
    announce(milan);
    sweepAt(2000);
    expect(endpoints()).toEqual(['10.0.0.2:7443']);
  });

  test('cache flush ends addresses of more than a second ago, not those of the same answer', () => {
    announce(milan);
    now = 10_000;
    cache.receive(records({ ...address, data: '10.0.0.3' } as Answer), '10.0.0.2');
    cache.receive(records({ ...address, data: '10.0.0.4' } as Answer), '10.0.0.2');
    expect(endpoints()).toEqual(['10.0.0.2:7443', '10.0.0.3:7443', '10.0.0.4:7443']);
    sweepAt(11_000);
    expect(endpoints()).toEqual(['10.0.0.3:7443', '10.0.0.4:7443']);
  });

  test('cache flush of one family leaves the other', () => {
    announce(milan);
    cache.receive(
      records({ name: 'milan.local', type: 'AAAA', ttl: 100, flush: true, data: 'fd00::2' }),
      '10.0.0.2',
    );
    now = 10_000;
    cache.receive(records({ ...address, data: '10.0.0.3' } as Answer), '10.0.0.2');
    sweepAt(11_000);
    expect(endpoints()).toEqual(['10.0.0.3:7443', '[fd00::2]:7443']);
  });

  test('a TTL of years is 75 minutes', () => {
    announce({ ...milan, ttl: 2 ** 31 });
    expect(cache.sightings(ID)[0]?.expiresAt).toBe(4_500_000);
  });

  test('an instance that moves to another host leaves the old one', () => {
    announce(milan);
    cache.receive(
      records(
        { ...srv, data: { target: 'other.local', port: 1 } } as Answer,
        { ...address, name: 'other.local', data: '10.0.0.9' } as Answer,
      ),
      '10.0.0.2',
    );
    expect(endpoints()).toEqual(['10.0.0.9:1']);
    cache.receive(records({ ...address, data: '10.0.0.3' } as Answer), '10.0.0.2');
    expect(endpoints()).toEqual(['10.0.0.9:1']);
  });

  test('an instance that says another ID is news of both', () => {
    announce(milan);
    changed.length = 0;
    announce({ ...milan, id: ROME });
    expect(changed.toSorted()).toEqual([ID, ROME]);
    expect([cache.sightings(ID), cache.sightings(ROME)].map((found) => found.length)).toEqual([0, 1]);
    expect([...cache.clusterIDs()]).toEqual([ROME]);
  });
});

test('known answers are those with at least half of their life left', () => {
  announce(milan);
  now = 30_000;
  announce({ ...milan, id: ROME, label: 'rome' });
  now = 50_001;
  expect(cache.knownAnswers(10)).toEqual([
    { type: 'PTR', name: '_tributary._tcp.local', data: 'rome._tributary._tcp.local', ttl: 80, flush: false },
  ]);
  expect(cache.knownAnswers(0)).toEqual([]);
});

test('ten thousand strangers cost no more than a thousand, and displace none but their own', () => {
  announce(milan);
  for (let stranger = 0; stranger < 10_000; stranger++) {
    const label = `x${stranger}`;
    const id = label.replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)] ?? '').padEnd(26, '2');
    announce({ id, label, address: `10.0.1.${stranger % 250}` }, '10.0.0.66');
  }
  expect(cache.size).toBe(1000);
  expect([...cache.clusterIDs()]).toHaveLength(1000);
  expect(endpoints()).toEqual(['10.0.0.2:7443']);
  sweepAt(4_600_000);
  expect([cache.size, quota.size, [...cache.clusterIDs()].length]).toEqual([0, 0, 0]);
});
