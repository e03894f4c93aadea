/** One use of a container each, by the same client whatever the way. */
import { connect } from 'node:net';

import { WebSocket } from 'ws';

import { tlsTarget } from '../../src/kube/credentials.ts';
import type { Way } from './bed.ts';
import { ECHO_PORT, FILE } from './objects.ts';

export interface Flow {
  /** From the beginning, connections included. */
  readonly firstByteMs: number;
  /** From the first byte to the end. */
  readonly ms: number;
  readonly bytes: number;
}

/** `short`: of a few bytes. `long`: all of the file. */
export type Length = 'short' | 'long';
type Use = (way: Way, length: Length) => Promise<Flow>;

export type UseName = 'exec' | 'log' | 'forward';
export const USES: Readonly<Record<UseName, Use>> = { exec, log: readLog, forward };

const TIMEOUT_MS = 120_000;
/** Of Kubernetes' channels: standard output. */
const STDOUT = 1;

/** Notes when the first byte comes, and how many there are. */
class Meter {
  readonly #began = performance.now();
  #firstAt = Number.NaN;
  #bytes = 0;

  add(bytes: number): void {
    if (bytes === 0) return;
    if (this.#bytes === 0) this.#firstAt = performance.now();
    this.#bytes += bytes;
  }

  end(what: string): Flow {
    if (this.#bytes === 0) throw new Error(`${what}: nothing came`);
    const ms = performance.now() - this.#firstAt;
    return { firstByteMs: this.#firstAt - this.#began, ms, bytes: this.#bytes };
  }
}

function socketOf({ credentials, podPath }: Way, suffix: string, protocol: string): WebSocket {
  const url = new URL(`${podPath}/${suffix}`, credentials.server);
  url.protocol = 'wss:';
  return new WebSocket(url, [protocol], {
    ...tlsTarget(credentials),
    perMessageDeflate: false,
    handshakeTimeout: TIMEOUT_MS,
  });
}

/** A connection of its own, as kubectl has. */
async function exec(way: Way, length: Length): Promise<Flow> {
  const command = length === 'short' ? ['echo', 'word'] : ['cat', FILE];
  const query = new URLSearchParams({ stdout: 'true' });
  for (const word of command) query.append('command', word);
  const meter = new Meter();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = socketOf(way, `exec?${query.toString()}`, 'v5.channel.k8s.io');
  socket.on('message', (data: Buffer) => {
    if (data[0] === STDOUT) meter.add(data.length - 1);
  });
  socket.once('error', reject);
  socket.once('close', resolve);
  await promise;
  return meter.end(`exec, ${way.name}`);
}

async function readLog({ name, client, podPath }: Way, length: Length): Promise<Flow> {
  const path = `${podPath}/log${length === 'short' ? '?tailLines=1' : ''}`;
  const meter = new Meter();
  const { status, body } = await client.raw({ method: 'GET', path, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (status !== 200) throw new Error(`${name}: GET ${path}: ${status}`);
  for await (const chunk of body as AsyncIterable<Buffer>) meter.add(chunk.length);
  return meter.end(`log, ${name}`);
}

/** Through the kubectl of that way, which runs all the time. */
async function forward({ name, forwarded }: Way, length: Length): Promise<Flow> {
  const meter = new Meter();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: '127.0.0.1', port: forwarded[length === 'short' ? 'word' : 'file'] });
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`${name}: port-forward hangs`)));
  socket.on('data', (chunk) => meter.add(chunk.length));
  socket.once('error', reject);
  socket.once('close', () => resolve());
  await promise;
  return meter.end(`forward, ${name}`);
}

export interface Crowd {
  /** Until all have been answered. */
  readonly ms: number;
  /** The longest answer of the agent's /livez meanwhile. */
  readonly stallMs: number;
}

/** Many port-forwards at once, each of which sends a word and waits until it comes back. */
export async function crowd(way: Way, streams: number): Promise<Crowd> {
  const watched = watchStalls(way);
  const began = performance.now();
  const sockets = Array.from({ length: streams }, () =>
    socketOf(way, `portforward?ports=${ECHO_PORT}`, 'v4.channel.k8s.io'),
  );
  try {
    await Promise.all(sockets.map(async (socket) => echoed(socket, way.name)));
    return { ms: performance.now() - began, stallMs: await watched.end() };
  } finally {
    for (const socket of sockets) socket.terminate();
  }
}

async function echoed(socket: WebSocket, name: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let heard = '';
  socket.once('error', reject);
  socket.once('close', () => reject(new Error(`${name}: closed without an answer`)));
  socket.once('open', () => socket.send(Buffer.from('\u0000word')));
  socket.on('message', (data: Buffer) => {
    // The first message of a channel is its port.
    if (data[0] === 0) heard += data.subarray(1).toString('latin1');
    if (heard.endsWith('word')) resolve();
  });
  await promise;
}

/** Asks the agent again and again whether it lives. */
function watchStalls({ agent }: Way): { end: () => Promise<number> } {
  let longest = 0;
  const over = new AbortController();
  const ask = async (): Promise<void> => {
    if (agent === undefined) return;
    while (!over.signal.aborted) {
      const began = performance.now();
      await (await fetch(agent.ops)).text();
      longest = Math.max(longest, performance.now() - began);
    }
  };
  const asked = ask();
  return {
    end: async () => {
      over.abort();
      await asked;
      return longest;
    },
  };
}
