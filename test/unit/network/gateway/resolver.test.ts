import { createSocket, type Socket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { silentLogger } from '../../../../src/lib/log.ts';
import { parsePrefix, PrefixSet } from '../../../../src/lib/prefix.ts';
import { EndpointResolver, lookUpByDns } from '../../../../src/network/gateway/resolver.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const OWN = new PrefixSet(['10.1.0.0/16', '100.64.0.0/10'].map(parsePrefix));

function create(
  lookUp: (name: string) => Promise<string[]> = async () => Promise.reject(new Error('none')),
): {
  resolver: EndpointResolver;
  clock: FakeClock;
  asked: string[];
  changes: () => number;
} {
  const clock = new FakeClock();
  const asked: string[] = [];
  let changes = 0;
  const resolver = new EndpointResolver({
    clock,
    log: silentLogger,
    lookUp: async (name) => {
      asked.push(name);
      return lookUp(name);
    },
    onChange: () => changes++,
  });
  return { resolver, clock, asked, changes: () => changes };
}

test.each([
  ['192.0.2.1:51820', ['192.0.2.1:51820']],
  ['[2001:DB8:0::1]:51820', ['[2001:db8::1]:51820']],
  ['127.0.0.1:51820', []],
  ['[::1]:51820', []],
  ['[::]:51820', []],
  ['0.0.0.0:51820', []],
  ['169.254.169.254:80', []],
  ['224.0.0.1:51820', []],
  ['255.255.255.255:51820', []],
  ['[fe80::1]:51820', []],
  ['[ff02::1]:51820', []],
  ['[::ffff:127.0.0.1]:51820', []],
  ['10.1.2.3:51820', []],
  ['100.100.0.1:51820', []],
  ['192.0.2.1:0', []],
  ['192.0.2.1', []],
  ['192.0.2.1:51820 allowed-ips=0.0.0.0/0', []],
])('%s becomes %j', (endpoint, literal) => {
  expect(create().resolver.literal([endpoint], OWN)).toEqual(literal);
});

test('a name is looked up, what may not be dialled left out, and asked again when it has aged', async () => {
  let answer = ['127.0.0.1', '192.0.2.7', '192.0.2.8'];
  const { resolver, clock, asked, changes } = create(async () => Promise.resolve(answer));
  const look = (): string[] => resolver.literal(['gw.example:51820'], OWN);
  expect(look()).toEqual([]);
  await settle();
  expect(changes()).toBe(1);
  expect(look()).toEqual(['192.0.2.7:51820', '192.0.2.8:51820']);
  expect(asked).toHaveLength(1);
  answer = ['192.0.2.9'];
  await clock.advance(31_000);
  look();
  await settle();
  expect([look(), changes(), asked.length]).toEqual([['192.0.2.9:51820'], 2, 2]);
});

test('a name that is no longer answered keeps its addresses', async () => {
  let works = true;
  const { resolver, clock } = create(async () =>
    works ? Promise.resolve(['192.0.2.7']) : Promise.reject(new Error('SERVFAIL')),
  );
  resolver.literal(['gw.example:1'], OWN);
  await settle();
  works = false;
  await clock.advance(60_000);
  resolver.literal(['gw.example:1'], OWN);
  await settle();
  expect(resolver.literal(['gw.example:1'], OWN)).toEqual(['192.0.2.7:1']);
});

test('a peer cannot make us ask for much', async () => {
  const never = async (): Promise<string[]> => new Promise(() => undefined);
  const { resolver, asked } = create(never);
  for (let peer = 0; peer < 20; peer++) {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}.p${peer}.example:1`);
    resolver.literal(names, OWN);
  }
  await settle();
  expect(asked).toHaveLength(8);
});

test('an answer that never comes is not waited for', async () => {
  const never = async (): Promise<string[]> => new Promise(() => undefined);
  const { resolver, clock, asked } = create(never);
  resolver.literal(['gw.example:1'], OWN);
  await clock.advance(9000);
  resolver.literal(['gw.example:1'], OWN);
  expect(asked).toHaveLength(2);
});

test('of many addresses of one name a few are tried', async () => {
  const { resolver } = create(async () =>
    Promise.resolve(Array.from({ length: 100 }, (_, index) => `192.0.2.${index + 1}`)),
  );
  resolver.literal(['gw.example:1'], OWN);
  await settle();
  expect(resolver.literal(['gw.example:1'], OWN)).toHaveLength(4);
});

const TYPE_A = 1;

let server: Socket;
let isSilent: boolean;
beforeEach(async () => {
  isSilent = false;
  server = createSocket('udp4').on('message', (question, { port, address }) => {
    if (!isSilent) server.send(answerTo(question), port, address);
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
});
afterEach(async () => new Promise<void>((resolve) => server.close(() => resolve())));

/** RFC 1035 section 4: 192.0.2.7 for A, no data for the rest. */
function answerTo(question: Buffer): Buffer {
  const end = question.indexOf(0, 12) + 5;
  const isA = question.readUInt16BE(end - 4) === TYPE_A;
  const head = Buffer.from(question.subarray(0, end));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isA ? 1 : 0, 6);
  // No additional records (EDNS) come back.
  head.writeUInt16BE(0, 10);
  const record = [0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7];
  return Buffer.concat([head, Buffer.from(isA ? record : [])]);
}

const servers = (): string[] => [`127.0.0.1:${server.address().port}`];

test('a name has the addresses that DNS tells, though it has none of the other family', async () => {
  expect(await lookUpByDns('gateway.example', servers())).toEqual(['192.0.2.7']);
});

test('names that nobody answers for do not keep files from being read', async () => {
  isSilent = true;
  let open = 16;
  const asked = Array.from({ length: open }, async (_, index) =>
    lookUpByDns(`silent-${index}.example`, servers()).finally(() => (open -= 1)),
  );
  const settled = Promise.allSettled(asked);
  await readFile(import.meta.filename);
  expect(open).toBe(16);
  const outcomes = await settled;
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
});
