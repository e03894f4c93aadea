import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { announcementPacket } from '../../../support/network/lan-packets.ts';
import { HOST, INSTANCE, LanRig, MILAN, named, OTHER, SERVICE } from './support/lan-rig.ts';
import { onlyInterface } from './support/lan-wire.ts';

const ROME = 'rome'.padEnd(26, 'b');

let rig: LanRig;
beforeEach(() => {
  rig = new LanRig();
});
afterEach(async () => rig.source.stop());

describe('taking back and changing', () => {
  const gone = (): string[] =>
    rig.responses.flatMap(({ answers = [] }) =>
      named(answers.filter((record) => 'ttl' in record && record.ttl === 0)),
    );

  test('at the end all of ours is taken back', async () => {
    await rig.settle();
    await rig.source.stop();
    expect(gone().toSorted()).toEqual([`A ${HOST}`, `PTR ${SERVICE}`, `SRV ${INSTANCE}`, `TXT ${INSTANCE}`]);
  });

  test('what was never announced is not taken back', async () => {
    await rig.start();
    await rig.clock.advance(300);
    await rig.source.stop();
    expect(rig.responses).toEqual([]);
  });

  test('another port is announced at once, without probing', async () => {
    await rig.settle();
    await rig.source.announce({ ...MILAN, port: 8443 });
    expect(rig.responses.flatMap(({ answers = [] }) => answers)).toContainEqual(
      expect.objectContaining({ type: 'SRV', ttl: 120, data: expect.objectContaining({ port: 8443 }) }),
    );
    expect(gone()).toEqual([`SRV ${INSTANCE}`]);
    expect(rig.probes).toEqual([]);
  });

  test('the same again is nothing', async () => {
    await rig.settle();
    await rig.source.announce({ ...MILAN });
    expect(rig.sent).toEqual([]);
  });

  test('another name takes the old one back and is claimed', async () => {
    await rig.settle();
    await rig.source.announce({ ...MILAN, clusterName: 'Torino' });
    expect(gone()).toContain(`SRV ${INSTANCE}`);
    await rig.clock.advance(1000);
    expect(rig.probes).toHaveLength(3);
    expect(named(rig.responses.at(-1)?.answers)).toContain(`SRV torino-milanaaa.${SERVICE}`);
  });

  test('nobody who is somebody: taken back, and no candidate is shown', async () => {
    await rig.settle();
    rig.wire.deliver(announcementPacket({ id: ROME, address: '10.0.0.2' }), OTHER);
    expect([...rig.source.candidates()]).toHaveLength(1);
    await rig.source.announce(undefined);
    expect(gone()).toContain(`SRV ${INSTANCE}`);
    expect([...rig.source.candidates()]).toEqual([]);
  });

  test('an address of another host is announced instead of ours; a name is refused', async () => {
    await rig.source.announce(MILAN, ['203.0.113.1', '2001:db8::1']);
    await rig.source.start();
    await rig.clock.advance(1000);
    const addresses = rig.responses[0]?.answers?.filter(({ name }) => name === HOST);
    expect(addresses?.map((record) => 'data' in record && record.data)).toEqual([
      '203.0.113.1',
      '2001:db8::1',
    ]);
    await expect(rig.source.announce(MILAN, ['peering.example'])).rejects.toThrow('IP addresses');
  });
});

describe('browsing (RFC 6762, section 5.2)', () => {
  test('the first question after 20 to 120 ms, then 1 s, then ever more rarely up to the limit', async () => {
    rig.random = 0.5;
    rig.make({ maxQueryIntervalMs: 5000 });
    await rig.source.start();
    await rig.clock.advance(69);
    expect(rig.browses).toEqual([]);
    const waits = [1, 1000, 2000, 4000, 5000, 5000];
    for (const [count, wait] of waits.entries()) {
      await rig.clock.advance(wait - 1);
      expect(rig.browses).toHaveLength(count);
      await rig.clock.advance(1);
      expect(rig.browses).toHaveLength(count + 1);
    }
  });

  test('says what it knows, so that only others answer', async () => {
    await rig.source.announce(MILAN);
    await rig.source.start();
    rig.wire.deliver(announcementPacket({ id: ROME, address: '10.0.0.2' }), OTHER);
    await rig.clock.advance(20);
    expect(rig.browses[0]?.answers).toEqual([
      expect.objectContaining({
        type: 'PTR',
        name: SERVICE,
        data: `rome.${SERVICE}`.replace('rome', ROME.slice(0, 8)),
      }),
    ]);
  });
});

describe('interfaces', () => {
  test('one that comes is spoken on within two seconds; one that goes takes its clusters with it', async () => {
    await rig.settle();
    rig.interfaces = [...rig.interfaces, onlyInterface('10.0.1.1', 'eth1')];
    await rig.clock.advance(2000);
    const there = rig.wire.sent.filter(({ from }) => from.address === '10.0.1.1');
    expect(there.length).toBeGreaterThan(0);
    rig.wire.deliver(announcementPacket({ id: ROME, address: '10.0.1.2' }), {
      address: '10.0.1.2',
      port: 5353,
    });
    expect(rig.source.candidate(ROME)).toBeDefined();
    const told: string[] = [];
    rig.source.onChange((clusterID) => told.push(clusterID));
    rig.interfaces = [];
    await rig.clock.advance(2000);
    expect(rig.source.candidate(ROME)).toBeUndefined();
    expect(told).toEqual([ROME]);
  });

  test('where the host tells of its changes, they are read after one, and else once in a minute', async () => {
    const told = new Set<() => void>();
    let looks = 0;
    rig.make({
      listInterfaces: () => (looks++, rig.interfaces),
      onHostChange: (listener) => {
        told.add(listener);
        return () => told.delete(listener);
      },
    });
    const during = async (ms: number): Promise<number> => {
      const before = looks;
      await rig.clock.advance(ms);
      return looks - before;
    };
    await rig.settle();
    expect(await during(600_000)).toBe(10);
    rig.interfaces = [...rig.interfaces, onlyInterface('10.0.1.1', 'eth1')];
    told.forEach((tell) => tell());
    expect(await during(2000)).toBe(1);
    expect(rig.wire.sent.some(({ from }) => from.address === '10.0.1.1')).toBe(true);
    // One that changes all the time is read no more often than one that tells nothing.
    const before = looks;
    for (let ms = 0; ms < 20_000; ms += 100) {
      told.forEach((tell) => tell());
      await rig.clock.advance(100);
    }
    expect(looks - before).toBe(10);
    await rig.source.stop();
    expect(told.size).toBe(0);
  });

  test.each([
    ['is tried again, and said', {}],
    ['is tried again as soon where the host tells of its changes', { onHostChange: () => () => undefined }],
  ])('one that cannot be opened %s', async (_what, options) => {
    let broken = true;
    rig.make({
      ...options,
      openLink: async (...args) => {
        if (broken) throw new Error('no such device');
        return rig.wire.open(...args);
      },
    });
    await rig.start();
    await rig.clock.advance(2000);
    expect(
      rig.log.split('\n').filter((line) => line.includes('cannot speak mDNS on an interface')),
    ).toHaveLength(1);
    broken = false;
    await rig.clock.advance(2100);
    expect(rig.browses).toHaveLength(1);
  });
});

test.each(['before', 'after'])(
  'an impostor who comes %s the cluster itself cannot crowd out its endpoints',
  async (when) => {
    await rig.settle();
    const truth = async (): Promise<void> => {
      rig.wire.deliver(
        announcementPacket({ id: ROME, address: '10.0.0.2', name: 'Rome', label: 'rome' }),
        OTHER,
      );
      await rig.clock.advance(10);
    };
    if (when === 'after') await truth();
    for (let lie = 0; lie < 30; lie++) {
      const cluster = { id: ROME, address: `10.0.0.${100 + lie}`, name: 'Evil', label: `evil${lie}` };
      rig.wire.deliver(announcementPacket(cluster), { address: '10.0.0.66', port: 5353 });
    }
    await rig.clock.advance(10);
    if (when === 'before') await truth();
    const { endpoints = [], clusterName } = rig.source.candidate(ROME) ?? {};
    expect([...rig.source.candidates()]).toHaveLength(1);
    expect(endpoints).toHaveLength(8);
    expect(endpoints.indexOf('10.0.0.2:7443')).toBe(when === 'after' ? 0 : 1);
    // Just a word for people.
    expect(clusterName).toBe(when === 'after' ? 'Rome' : 'Evil');
  },
);

test('a thousand bad announcements are a line of the log, with how many there were', async () => {
  await rig.settle();
  for (let bad = 0; bad < 1000; bad++) {
    rig.wire.deliver(announcementPacket({ id: 'nobody', address: '10.0.0.2', label: `bad${bad}` }), OTHER);
  }
  expect(rig.log.split('\n').filter((line) => line.includes('refused'))).toHaveLength(1);
  expect([...rig.source.refused.values()]).toEqual([1000]);
});
