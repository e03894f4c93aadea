import { createSocket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, encode, TRUNCATED_RESPONSE } from 'dns-packet';

import { parseServers, serverText } from '../../../../src/discovery/wan/exchange.ts';
import { decodeReply } from '../../../../src/discovery/wan/message.ts';
import { Resolver } from '../../../../src/discovery/wan/resolver.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { errorMessage } from '../../../../src/lib/errors.ts';
import { fc } from '../../../support/property.ts';
import { type Asked, DnsServer } from './support/dns-server.ts';

const NAME = 'milan.example.org';
const unavailable = { name: 'TributaryError', code: 'Unavailable' };
const never = new AbortController().signal;

let server: DnsServer;
let other: DnsServer;
beforeEach(async () => {
  [server, other] = [await new DnsServer().start(), await new DnsServer().start()];
  server.records = [{ type: 'A', name: NAME, ttl: 42, data: '10.1.0.1' }];
  other.records = [{ type: 'A', name: NAME, ttl: 7, data: '10.1.0.2' }];
});
afterEach(async () => {
  await Promise.all([server.stop(), other.stop()]);
});

/** For tests that count the questions: a busy machine must not make a second one. */
const PATIENT_MS = 20_000;

const resolver = (servers: readonly string[] = [server.address], timeoutMs = PATIENT_MS): Resolver =>
  new Resolver({ servers: parseServers(servers), clock: systemClock, timeoutMs });
const withId = (asked: Asked, id: number): Buffer => encode({ ...asked.answer, id });
const idOf = (asked: Asked): number => asked.query.id ?? 0;

test('records come with their TTL', async () => {
  expect(await resolver().resolve(NAME, 'A', never)).toEqual({ records: ['10.1.0.1'], ttlSeconds: 42 });
});

test('an answer that there is nothing is no error, and holds for the TTL of the zone', async () => {
  expect(await resolver().resolve('rome.example.org', 'A', never)).toEqual({ records: [], ttlSeconds: 60 });
  expect(await resolver().resolve(NAME, 'AAAA', never)).toEqual({ records: [], ttlSeconds: 60 });
});

test.each([
  ['time-out', () => true, 150],
  ['SERVFAIL', (asked: Asked) => (asked.send(encode({ ...asked.answer, flags: 2, answers: [] })), true)],
  ['REFUSED', (asked: Asked) => (asked.send(encode({ ...asked.answer, flags: 5, answers: [] })), true)],
  ['a referral', (asked: Asked) => (asked.send(encode({ ...asked.answer, flags: 0, answers: [] })), true)],
  [
    'nonsense',
    (asked: Asked) => (
      asked.send(Buffer.concat([withId(asked, idOf(asked)).subarray(0, 30), Buffer.alloc(9, 0xc0)])),
      true
    ),
  ],
] as [string, (asked: Asked) => boolean, number?][])(
  'after %s another server is asked, and the next time it is asked first',
  async (_what, intercept, timeoutMs = PATIENT_MS) => {
    server.intercept = intercept;
    const both = resolver([server.address, other.address], timeoutMs);
    expect(await both.resolve(NAME, 'A', never)).toEqual({ records: ['10.1.0.2'], ttlSeconds: 7 });
    const asked = server.log.length;
    expect(asked).toBeGreaterThan(0);
    await both.resolve(NAME, 'A', never);
    expect(server.log).toHaveLength(asked);
    await expect(resolver([server.address], timeoutMs).resolve(NAME, 'A', never)).rejects.toMatchObject(
      unavailable,
    );
  },
);

test('a server that is not there is passed over at once', async () => {
  const { address } = await new DnsServer().start().then(async (gone) => {
    await gone.stop();
    return gone;
  });
  const found = await resolver([address, server.address], 60_000).resolve(NAME, 'A', never);
  expect(found.records).toEqual(['10.1.0.1']);
});

test('an address that nothing can be sent to is passed over', async () => {
  const found = await resolver(['255.255.255.255', '[ff02::1]', server.address]).resolve(NAME, 'A', never);
  expect(found.records).toEqual(['10.1.0.1']);
});

test('without any server the error says so', async () => {
  await expect(resolver([]).resolve(NAME, 'A', never)).rejects.toThrow(
    /no DNS server answered: there is none/,
  );
});

test('an answer that is cut is asked for again over TCP, in however many pieces it comes', async () => {
  server.records = Array.from({ length: 300 }, (_, index) => ({
    type: 'A' as const,
    name: NAME,
    ttl: 42,
    data: `10.1.${Math.floor(index / 250)}.${index % 250}`,
  }));
  expect((await resolver().resolve(NAME, 'A', never)).records).toHaveLength(300);
  expect(server.log).toEqual([`udp A ${NAME}`, `tcp A ${NAME}`]);
});

test('an answer that is cut in the middle of a record is asked for again over TCP', async () => {
  server.intercept = (asked) => {
    if (asked.over === 'tcp') return false;
    const bytes = encode({ ...asked.answer, flags: (asked.answer.flags ?? 0) | TRUNCATED_RESPONSE });
    asked.send(bytes.subarray(0, bytes.length - 3));
    return true;
  };
  expect((await resolver().resolve(NAME, 'A', never)).records).toEqual(['10.1.0.1']);
  expect(server.log).toEqual([`udp A ${NAME}`, `tcp A ${NAME}`]);
});

test('an answer that is cut even over TCP is none', async () => {
  server.intercept = (asked) => {
    asked.send(
      encode({ ...asked.answer, answers: [], flags: (asked.answer.flags ?? 0) | TRUNCATED_RESPONSE }),
    );
    return true;
  };
  await expect(resolver().resolve(NAME, 'A', never)).rejects.toThrow(/truncated, even over TCP/);
});

test('a server that knows no EDNS is asked without', async () => {
  server.intercept = ({ query, answer, send }) => {
    if ((query.additionals ?? []).length === 0) return false;
    send(encode({ ...answer, questions: [], answers: [], flags: 1 }));
    return true;
  };
  expect((await resolver().resolve(NAME, 'A', never)).records).toEqual(['10.1.0.1']);
});

describe('what is not the answer is passed over, and the answer still waited for:', () => {
  const forged = (asked: Asked): Asked['answer'] => ({
    ...asked.answer,
    answers: [{ type: 'A', name: NAME, ttl: 9, data: '10.6.6.6' }],
  });
  const cases: [string, (asked: Asked) => Buffer][] = [
    ['a wrong ID', (asked) => encode({ ...forged(asked), id: idOf(asked) ^ 1 })],
    [
      'a wrong name',
      (asked) =>
        encode({ ...forged(asked), questions: [{ name: 'rome.example.org', type: 'A', class: 'IN' }] }),
    ],
    [
      'a wrong type',
      (asked) => encode({ ...forged(asked), questions: [{ name: NAME, type: 'TXT', class: 'IN' }] }),
    ],
    ['no question', (asked) => encode({ ...forged(asked), questions: [] })],
    [
      'two questions',
      (asked) =>
        encode({
          ...forged(asked),
          questions: [...(asked.query.questions ?? []), { name: 'x', type: 'A', class: 'IN' }],
        }),
    ],
    ['a query', (asked) => encode({ ...forged(asked), type: 'query' })],
    ['too few bytes', () => Buffer.alloc(5)],
    ['nothing', () => Buffer.alloc(0)],
  ];
  test.each(cases)('%s', async (_what, make) => {
    server.intercept = (asked) => {
      asked.send(make(asked));
      return false;
    };
    expect((await resolver().resolve(NAME, 'A', never)).records).toEqual(['10.1.0.1']);
  });

  test('another port', async () => {
    const forger = createSocket('udp4');
    try {
      server.intercept = (asked) => {
        asked.send(encode(forged(asked)), forger);
        // Ours is later than the forged one by far.
        systemClock.after(50, () => asked.send(encode(asked.answer)));
        return true;
      };
      expect((await resolver().resolve(NAME, 'A', never)).records).toEqual(['10.1.0.1']);
    } finally {
      forger.close();
    }
  });
});

test('records of other names in an answer are not believed', async () => {
  server.intercept = ({ answer, send }) => {
    send(encode({ ...answer, answers: [{ type: 'A', name: 'rome.example.org', ttl: 9, data: '10.6.6.6' }] }));
    return true;
  };
  expect((await resolver().resolve(NAME, 'A', never)).records).toEqual([]);
});

test('aliases are followed, in one answer and over several, and the shortest TTL counts', async () => {
  const alias = (name: string, data: string, ttl: number): Answer => ({ type: 'CNAME', name, data, ttl });
  server.records.push(alias('a.example.org', 'b.example.org', 30), alias('b.example.org', NAME, 20));
  expect(await resolver().resolve('A.example.org', 'A', never)).toEqual({
    records: ['10.1.0.1'],
    ttlSeconds: 20,
  });
});

test('aliases in a ring end', async () => {
  for (const [name, data] of [
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'a'],
  ] as const) {
    server.records.push({ type: 'CNAME', name: `${name}.example.org`, data: `${data}.example.org`, ttl: 9 });
  }
  await expect(resolver().resolve('a.example.org', 'A', never)).rejects.toThrow(/more than 8 aliases/);
  expect(server.log.length).toBeLessThan(20);
});

test('an alias that is its own target ends', async () => {
  server.records.push({ type: 'CNAME', name: 'a.example.org', data: 'a.example.org', ttl: 9 });
  await expect(resolver().resolve('a.example.org', 'A', never)).rejects.toThrow(/more than 8 aliases/);
});

test.each([['a'.repeat(64)], ['a..b'], [''], [`${'a.'.repeat(130)}a`]])(
  '"%s" is no name to ask for',
  async (name) => {
    await expect(resolver().resolve(name, 'A', never)).rejects.toMatchObject({ code: 'Invalid' });
    expect(server.log).toEqual([]);
  },
);

test('an abort ends the wait, and no other server is asked', async () => {
  const abort = new AbortController();
  server.intercept = () => (abort.abort(new Error('enough')), true);
  await expect(
    resolver([server.address, other.address], 60_000).resolve(NAME, 'A', abort.signal),
  ).rejects.toThrow(/enough|aborted/);
  expect(other.log).toEqual([]);
});

test('no two queries have the same ID by rule, nor the same port', async () => {
  const ids = new Set<number>();
  const ports = new Set<number>();
  const spy = createSocket('udp4');
  await new Promise<void>((resolve) => spy.bind(0, '127.0.0.1', resolve));
  spy.on('message', (bytes, { port }) => {
    ids.add(bytes.readUInt16BE(0));
    ports.add(port);
  });
  const silent = resolver([`127.0.0.1:${spy.address().port}`], 5);
  for (let turn = 0; turn < 8; turn++) await silent.resolve(NAME, 'A', never).catch(errorMessage);
  spy.close();
  expect(ids.size).toBeGreaterThan(8);
  expect(ports.size).toBeGreaterThan(8);
});

test('no bytes whatsoever break the reader', () => {
  const query = { id: 0x4242, name: NAME, type: 'PTR' } as const;
  const header = (flags: number, counts: readonly number[]): Buffer => {
    const bytes = Buffer.alloc(12);
    [query.id, flags, ...counts].forEach((value, index) => bytes.writeUInt16BE(value, index * 2));
    return bytes;
  };
  const count = fc.integer({ min: 0, max: 65_535 });
  fc.assert(
    fc.property(
      count,
      fc.tuple(count, count, count, count),
      fc.uint8Array({ maxLength: 600 }),
      (flags, counts, rest) => {
        try {
          decodeReply(Buffer.concat([header(flags, counts), rest]), query);
        } catch (error) {
          expect(error).toMatchObject({ name: 'TributaryError', code: 'Invalid' });
        }
      },
    ),
    { numRuns: 3000 },
  );
});

test('a compressed name that points to itself, or on, is refused', () => {
  const query = { id: 1, name: 'a', type: 'PTR' } as const;
  const question = Buffer.from([1, 97, 0, 0, 12, 0, 1]);
  for (const pointer of [19, 20, 25, 0x3fff]) {
    const head = Buffer.from([0, 1, 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
    const name = Buffer.from([
      0xc0 | (pointer >> 8),
      pointer & 0xff,
      0,
      12,
      0,
      1,
      0,
      0,
      0,
      9,
      0,
      2,
      0xc0,
      12,
    ]);
    expect(() => decodeReply(Buffer.concat([head, question, name]), query)).toThrow(/not a DNS message/);
  }
});

test.each([
  ['10.0.0.1', '10.0.0.1:53'],
  ['10.0.0.1:5353', '10.0.0.1:5353'],
  ['fd00::1', '[fd00::1]:53'],
  ['[fd00::1]', '[fd00::1]:53'],
  ['[fd00::1]:5353', '[fd00::1]:5353'],
])('server "%s" is %s', (text, shown) => {
  expect(parseServers([text]).map(serverText)).toEqual([shown]);
});

test.each([['dns.example.org'], ['10.0.0.1:0'], ['10.0.0.1:70000'], ['10.0.0.1:'], ['[fd00::1'], ['']])(
  '"%s" is no server',
  (text) => {
    expect(() => parseServers([text])).toThrow(/is not of the form/);
  },
);
