import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { Conversation } from '../../../../../src/network/host/wireguard/conversation.ts';

let directory: string;
let path: string;
let server: Server | undefined;
const open = new Set<Socket>();
let connections = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'conversation-'));
  path = join(directory, 'program.sock');
  connections = 0;
});
afterEach(async () => {
  await close();
  rmSync(directory, { recursive: true });
});

async function listen(answer: (question: string, socket: Socket) => void): Promise<void> {
  server = createServer((socket) => {
    connections += 1;
    open.add(socket);
    socket.setEncoding('latin1').on('error', () => undefined);
    socket.on('data', (text: string) => answer(text, socket));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(path, resolve);
  await promise;
}

async function close(): Promise<void> {
  for (const socket of open) socket.destroy();
  open.clear();
  const { promise, resolve } = Promise.withResolvers<void>();
  if (server === undefined) return;
  server.close(() => resolve());
  server = undefined;
  await promise;
}

test('one connection for many questions, each of which gets its own answer', async () => {
  await listen((question, socket) => {
    // In two pieces, as a long one comes.
    socket.write(`you said ${question.trim()}`);
    setTimeout(() => socket.write('\n\n'), 5);
  });
  const conversation = new Conversation(path);
  const answers = await Promise.all(['a', 'b', 'c'].map(async (word) => conversation.ask(`${word}\n\n`)));
  expect(answers).toEqual(['you said a\n\n', 'you said b\n\n', 'you said c\n\n']);
  expect(connections).toBe(1);
});

test('nobody is there; then somebody is, ends, and another one takes the place', async () => {
  const conversation = new Conversation(path);
  expect(await conversation.ask('a\n\n')).toBeUndefined();
  await listen((_question, socket) => void socket.write('first\n\n'));
  expect(await conversation.ask('a\n\n')).toBe('first\n\n');
  await close();
  expect(await conversation.ask('a\n\n')).toBeUndefined();
  await listen((_question, socket) => void socket.write('second\n\n'));
  expect(await conversation.ask('a\n\n')).toBe('second\n\n');
  expect(connections).toBe(2);
});

test('one that ends instead of an answer is asked once more, and then it is said', async () => {
  let isWell = true;
  await listen((_question, socket) => (isWell ? void socket.write('yes\n\n') : socket.destroy()));
  const conversation = new Conversation(path);
  await conversation.ask('a\n\n');
  isWell = false;
  await expect(conversation.ask('a\n\n')).rejects.toThrow('has ended');
  expect(connections).toBe(2);
  isWell = true;
  expect(await conversation.ask('a\n\n')).toBe('yes\n\n');
});
