/** A WebSocket client that speaks the channel protocols by itself, as web consoles do. */
import { readFileSync } from 'node:fs';

import { WebSocket } from 'ws';

import type { Cluster } from '../../../lab/cluster.ts';
import { until } from './until.ts';

export class ChannelSocket {
  readonly #socket: WebSocket;
  readonly #isBase64: boolean;
  readonly #received = new Map<number, Buffer[]>();
  /** It may already be closed again when a test looks. */
  #opened = false;
  #closed = false;
  #failure: Error | undefined;

  private constructor(socket: WebSocket, isBase64: boolean) {
    this.#socket = socket;
    this.#isBase64 = isBase64;
    socket.on('message', (data: Buffer) => this.#receive(data));
    socket.on('open', () => (this.#opened = true));
    socket.on('close', () => (this.#closed = true));
    socket.on('error', (error) => (this.#failure = error));
  }

  /** Opens `path` of a cluster's API server as its administrator. */
  static async open(cluster: Cluster, path: string, protocol: string): Promise<ChannelSocket> {
    const { cert, key } = cluster.pki.admin;
    const url = `${cluster.server.replace('https', 'wss')}${path}`;
    const ca = readFileSync(cluster.pki.file('ca.crt'));
    const socket = new WebSocket(url, [protocol], { ca, cert, key, handshakeTimeout: 60_000 });
    const channels = new ChannelSocket(
      socket,
      protocol.startsWith('base64.') || protocol.includes('.base64.'),
    );
    await until('the WebSocket opens', async () => {
      if (channels.#failure !== undefined) return Promise.resolve(true);
      return Promise.resolve(channels.#opened);
    });
    if (channels.#failure !== undefined) throw channels.#failure;
    return channels;
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  send(channel: number, data: string): void {
    if (this.#isBase64) this.#socket.send(`${channel}${Buffer.from(data).toString('base64')}`);
    else this.#socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)]));
  }

  /** Half-close, of protocol v5 only. */
  closeChannel(channel: number): void {
    this.#socket.send(Buffer.from([255, channel]));
  }

  /** All that has come on a channel. */
  text(channel: number): string {
    return Buffer.concat(this.#received.get(channel) ?? []).toString();
  }

  async untilText(channel: number, text: string): Promise<void> {
    await until(
      `channel ${channel} has "${text}"`,
      async () => Promise.resolve(this.text(channel).includes(text)),
      {
        seen: async () => Promise.resolve([0, 1, 2, 3].map((number) => this.text(number))),
      },
    );
  }

  async untilClosed(): Promise<void> {
    await until('the server closes the WebSocket', async () => Promise.resolve(this.#closed));
  }

  close(): void {
    this.#socket.terminate();
  }

  #receive(data: Buffer): void {
    const channel = this.#isBase64 ? Number(String.fromCharCode(data[0] ?? 0)) : (data[0] ?? 0);
    const rest = data.subarray(1);
    const content = this.#isBase64 ? Buffer.from(rest.toString(), 'base64') : rest;
    this.#received.set(channel, [...(this.#received.get(channel) ?? []), content]);
  }
}
