/**
 * Loaded before the program, it turns the program into a peer of a later version: that also speaks protocol 2, sends
 * documents, fields, messages and calls that are unknown today, and logs the answers.
 */
import { WebSocket } from 'ws';

type Json = Record<string, unknown>;

/** Larger than any number that a program uses. */
const FIRST_ID = 9_000_000_000_000_000;
const LATER = { tone: 'c sharp', since: 7, parts: [{ name: 'one' }, null] };

let nextID = FIRST_ID;
const { send: plainSend, emit: plainEmit } = WebSocket.prototype as unknown as {
  send: (this: WebSocket, data: unknown, ...rest: unknown[]) => void;
  emit: (this: WebSocket, ...args: unknown[]) => boolean;
};

const log = (message: string, fields: Json): void =>
  void process.stdout.write(
    `${JSON.stringify({ time: new Date().toISOString(), level: 'info', message, ...fields })}\n`,
  );

function parsed(data: unknown): Json | undefined {
  const text = Buffer.isBuffer(data) ? data.toString() : data;
  if (typeof text !== 'string' || !text.startsWith('{"type":')) return undefined;
  return JSON.parse(text) as Json;
}

/** Signed parts of documents are not changed: both signers know their content. */
function laterDocuments(documents: Json): Json {
  const known = Object.entries(documents).map(([kind, document]) => [
    kind,
    document === null ? null : { ...(document as Json), later: LATER },
  ]);
  return { ...Object.fromEntries(known), reservation: { ...LATER, state: 'Active' }, tide: null };
}

function later(message: Json): Json {
  const more = { ...message, later: LATER };
  if (message['type'] === 'hello') {
    const hello = message['hello'] as Json;
    return { ...more, hello: { ...hello, protocols: [1, 2], capabilities: ['song'], later: LATER } };
  }
  if (message['type'] === 'state') {
    return { ...more, documents: laterDocuments(message['documents'] as Json) };
  }
  return more;
}

/** With every state it sends a later kind of message and a later call; both need an answer. */
const companions = (): Json[] => [
  { type: 'sing', id: nextID++, song: LATER },
  { type: 'call', id: nextID++, method: 'compose', params: LATER },
  { type: 'hum' },
];

WebSocket.prototype.send = function send(this: WebSocket, data: unknown, ...rest: unknown[]): void {
  const message = parsed(data);
  if (message === undefined) {
    plainSend.call(this, data, ...rest);
    return;
  }
  plainSend.call(this, JSON.stringify(later(message)), ...rest);
  if (message['type'] !== 'state') return;
  for (const companion of companions()) plainSend.call(this, JSON.stringify(companion));
};

WebSocket.prototype.emit = function emit(this: WebSocket, ...args: unknown[]): boolean {
  const answer = args[0] === 'message' ? parsed(args[1]) : undefined;
  const id = Number(answer?.['id']);
  if (answer !== undefined && id >= FIRST_ID) log('the future was answered', { answer });
  return plainEmit.apply(this, args);
};
