import { createSocket, type Socket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { lookUpByDns } from '../../../../src/network/gateway/look-up.ts';

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
}, 30_000);
