import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Answer, Packet, Question } from 'dns-packet';

import { HOST, INSTANCE, LanRig, named, SERVICE, srvOf } from './support/lan-rig.ts';
import { onlyInterface } from './support/lan-wire.ts';

/** The library knows the type, its types do not. */
const ANY = 'ANY' as Question['type'];

let rig: LanRig;
beforeEach(() => {
  rig = new LanRig();
});
afterEach(async () => rig.source.stop());

describe('claiming our names (RFC 6762, section 8)', () => {
  test('three probes, 250 ms apart, then three announcements, ever farther apart', async () => {
    rig.random = 0.5;
    await rig.start();
    await rig.clock.advance(124);
    expect(rig.probes).toEqual([]);
    for (const [count, wait] of [1, 250, 250].entries()) {
      await rig.clock.advance(wait);
      expect(rig.probes).toHaveLength(count + 1);
    }
    const [probe] = rig.probes;
    expect(probe?.questions).toEqual([
      expect.objectContaining({ name: INSTANCE, type: 'ANY' }),
      expect.objectContaining({ name: HOST, type: 'ANY' }),
    ]);
    expect(named(probe?.authorities)).toEqual([`A ${HOST}`, `SRV ${INSTANCE}`, `TXT ${INSTANCE}`]);
    expect(rig.responses).toEqual([]);
    for (const [count, wait] of [250, 1000, 2000].entries()) {
      await rig.clock.advance(wait);
      expect(rig.responses).toHaveLength(count + 1);
    }
    await rig.clock.advance(60_000);
    expect(rig.responses).toHaveLength(3);
    const [announcement] = rig.responses;
    expect(named(announcement?.answers)).toEqual([
      `A ${HOST}`,
      'PTR _services._dns-sd._udp.local',
      `PTR ${SERVICE}`,
      `SRV ${INSTANCE}`,
      `TXT ${INSTANCE}`,
    ]);
    for (const record of announcement?.answers ?? []) {
      expect(record).toMatchObject({ ttl: 120, flush: record.type !== 'PTR' });
    }
  });

  test('the TTL is the one that was configured', async () => {
    rig.make({ ttlSeconds: 7 });
    await rig.start();
    await rig.clock.advance(1000);
    for (const record of rig.responses[0]?.answers ?? []) expect(record).toMatchObject({ ttl: 7 });
  });

  test('a name that somebody has is left to it, and so is the next one', async () => {
    await rig.start();
    await rig.clock.advance(100);
    rig.respond(srvOf(1));
    await rig.clock.advance(100);
    rig.respond({ name: 'milan-milanaaa-2.local', type: 'A', ttl: 120, flush: true, data: '10.0.0.2' });
    await rig.clock.advance(3000);
    expect(rig.source.label).toBe('milan-milanaaa-3');
    expect(named(rig.responses[0]?.answers)).toContain(`SRV milan-milanaaa-3.${SERVICE}`);
    expect(rig.log).toContain('our mDNS name is taken');
  });

  test('after many conflicts it goes on slowly', async () => {
    await rig.start();
    for (let attempt = 1; attempt <= 16; attempt++) {
      rig.respond(srvOf(1, 'other.local', `${rig.source.label}.${SERVICE}`));
      await rig.clock.advance(1);
    }
    rig.wire.sent.length = 0;
    await rig.clock.advance(4900);
    expect(rig.probes).toEqual([]);
    await rig.clock.advance(200);
    expect(rig.probes).toHaveLength(1);
  });

  test.each([
    ['lose', 7444, 1000],
    ['win', 7442, 0],
  ])('of two that probe at once, one has the name: we %s', async (_, port, waitMs) => {
    await rig.start();
    await rig.clock.advance(1);
    expect(rig.probes).toHaveLength(1);
    // TXT comes before SRV and is equal, so the port decides.
    const authorities = (rig.probes[0]?.authorities ?? []).map((record) =>
      record.type === 'SRV' ? srvOf(port, HOST) : record,
    );
    rig.query([{ name: INSTANCE, type: ANY }], {
      authorities: authorities.filter(({ name }) => name === INSTANCE),
    });
    rig.wire.sent.length = 0;
    await rig.clock.advance(waitMs === 0 ? 250 : waitMs - 1);
    expect(rig.probes).toHaveLength(waitMs === 0 ? 1 : 0);
    await rig.clock.advance(waitMs === 0 ? 0 : 1);
    expect(rig.probes).toHaveLength(1);
    expect(rig.source.label).toBe('milan-milanaaa');
  });

  test('a prober is told at once that the name is ours, though not at any rate', async () => {
    await rig.settle();
    const probe = (): void => rig.query([{ name: INSTANCE, type: ANY }], { authorities: [srvOf(1)] });
    probe();
    expect(named(rig.responses[0]?.answers)).toEqual([`SRV ${INSTANCE}`, `TXT ${INSTANCE}`]);
    probe();
    expect(rig.responses).toHaveLength(1);
    await rig.clock.advance(250);
    probe();
    expect(rig.responses).toHaveLength(2);
  });

  test('who claims a name that is ours makes us ask again who has it', async () => {
    await rig.settle();
    rig.respond(srvOf(1));
    await rig.clock.advance(1);
    expect(rig.probes).toHaveLength(1);
    await rig.clock.advance(2000);
    expect(rig.source.label).toBe('milan-milanaaa');
  });

  test('what we have said ourselves, and our address on another interface, is no conflict', async () => {
    rig.interfaces = [onlyInterface('10.0.0.1'), onlyInterface('10.0.0.9', 'eth1')];
    await rig.settle();
    expect(rig.source.label).toBe('milan-milanaaa');
    rig.respond({ name: HOST, type: 'A', ttl: 120, flush: true, data: '10.0.0.9' }, srvOf(7443, HOST));
    await rig.clock.advance(5000);
    expect(rig.probes).toEqual([]);
    expect(rig.source.label).toBe('milan-milanaaa');
  });
});

describe('answering (RFC 6762, section 6)', () => {
  const ask = (type: Question['type'] = 'PTR', name = SERVICE, more: Packet = {}): void =>
    rig.query([{ name, type }], more);

  test('who browses gets all that is needed, after 20 to 120 ms', async () => {
    await rig.settle();
    ask();
    await rig.clock.advance(19);
    expect(rig.responses).toEqual([]);
    await rig.clock.advance(1);
    const [{ answers, additionals } = {}] = rig.responses;
    expect(named(answers)).toEqual([`PTR ${SERVICE}`]);
    expect(named(additionals)).toEqual([
      `A ${HOST}`,
      `NSEC ${INSTANCE}`,
      `NSEC ${HOST}`,
      `SRV ${INSTANCE}`,
      `TXT ${INSTANCE}`,
    ]);
    rig.random = 1;
    await rig.clock.advance(1000);
    ask();
    await rig.clock.advance(119);
    expect(rig.responses).toHaveLength(1);
    await rig.clock.advance(1);
    expect(rig.responses).toHaveLength(2);
  });

  test('what is ours alone is answered at once, in any case of letters', async () => {
    await rig.settle();
    ask('SRV', INSTANCE.toUpperCase());
    await rig.clock.advance(0);
    expect(named(rig.responses[0]?.answers)).toEqual([`SRV ${INSTANCE}`]);
    expect(named(rig.responses[0]?.additionals)).toEqual([`A ${HOST}`, `NSEC ${HOST}`]);
  });

  test('what our names do not have is answered with NSEC', async () => {
    await rig.settle();
    ask('AAAA', HOST);
    await rig.clock.advance(0);
    expect(rig.responses[0]?.answers).toEqual([
      expect.objectContaining({ type: 'NSEC', name: HOST, data: { nextDomain: HOST, rrtypes: ['A'] } }),
    ]);
  });

  test('questions about others are none of ours', async () => {
    await rig.settle();
    ask('PTR', '_http._tcp.local');
    ask('A', 'other.local');
    rig.hear({ type: 'query', questions: [{ name: SERVICE, type: 'PTR', class: 'CH' }] });
    await rig.clock.advance(2000);
    expect(rig.responses).toEqual([]);
  });

  test.each([
    [60, 0],
    [59, 1],
  ])('an answer that is known with %i s left is given %i times', async (ttl, count) => {
    await rig.settle();
    ask('PTR', SERVICE, { answers: [{ name: SERVICE, type: 'PTR', ttl, data: INSTANCE }] });
    await rig.clock.advance(2000);
    expect(rig.responses).toHaveLength(count);
  });

  test('known answers may follow in further packets', async () => {
    await rig.settle();
    const known: Answer = { name: SERVICE, type: 'PTR', ttl: 120, data: INSTANCE };
    ask('PTR', SERVICE, { flags: 1 << 9 });
    await rig.clock.advance(300);
    rig.hear({ type: 'query', answers: [known] });
    await rig.clock.advance(2000);
    expect(rig.responses).toEqual([]);
    ask('PTR', SERVICE, { flags: 1 << 9 });
    await rig.clock.advance(399);
    expect(rig.responses).toEqual([]);
    await rig.clock.advance(200);
    expect(rig.responses).toHaveLength(1);
  });

  test('one query is answered within two seconds, however many packets follow', async () => {
    await rig.settle();
    for (let packet = 0; packet < 5; packet++) {
      ask('PTR', SERVICE, { flags: 1 << 9 });
      await rig.clock.advance(390);
    }
    expect(rig.responses).toEqual([]);
    ask('PTR', SERVICE, { flags: 1 << 9 });
    await rig.clock.advance(80);
    expect(rig.responses).toHaveLength(1);
  });

  test('of one query so many questions are kept as one packet may have', async () => {
    await rig.settle();
    const others = Array.from({ length: 500 }, (_, index) => ({
      name: `x${index}.local`,
      type: 'A' as const,
    }));
    const more = { flags: 1 << 9 };
    for (let packet = 0; packet < 3; packet++) rig.query(others.slice(0, 300), more);
    ask('PTR', SERVICE, more);
    await rig.clock.advance(2_000);
    expect(rig.responses).toEqual([]);
    ask('PTR', SERVICE, more);
    await rig.clock.advance(2_000);
    expect(rig.responses).toHaveLength(1);
  });

  test('the same record is sent once a second, and who asks sooner gets it then', async () => {
    await rig.settle();
    ask();
    await rig.clock.advance(20);
    ask();
    await rig.clock.advance(999);
    expect(rig.responses).toHaveLength(1);
    await rig.clock.advance(1);
    expect(rig.responses).toHaveLength(2);
  });

  test('an ordinary resolver gets an ordinary answer', async () => {
    await rig.settle();
    const resolver = { address: '10.0.0.2', port: 40_000 };
    rig.hear({ type: 'query', id: 77, questions: [{ name: INSTANCE, type: 'SRV' }] }, resolver);
    const reply = rig.wire.sent.find(({ packet }) => packet.type === 'response');
    expect(reply?.to).toMatchObject(resolver);
    expect(reply?.packet).toMatchObject({ id: 77, questions: [{ name: INSTANCE, type: 'SRV' }] });
    for (const record of [...(reply?.packet.answers ?? []), ...(reply?.packet.additionals ?? [])]) {
      expect(record).toMatchObject({ ttl: 10, flush: false });
    }
  });

  test('nothing is answered before the names are ours', async () => {
    await rig.start();
    ask();
    ask('SRV', INSTANCE);
    await rig.clock.advance(700);
    expect(rig.responses).toEqual([]);
  });
});
