/** A plain server, a proxy before it, and clients that say what they have seen of an answer. */
import { connect, constants } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';

import { FaultProxy } from '../../../../faults/proxy/proxy.ts';
import { selfSigned, type TestCertificate } from '../../../support/certificate.ts';

export interface Seen {
  /** Undefined: there was no answer. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The connection broke before the end. */
  readonly isBroken: boolean;
}

export interface Ask {
  readonly method?: string;
  readonly body?: string;
  /** Given what has come so far, each time something comes. */
  readonly onText?: (text: string) => void;
}

/** Asks over a connection of its own. */
export type Client = (path: string, ask?: Ask) => Promise<Seen>;

type Answering = (asked: IncomingMessage, answer: ServerResponse, body: string) => void;

export class Proxied {
  readonly proxy: FaultProxy;
  /** What has come to the server: `POST /path body`. */
  readonly asked: string[] = [];
  /** Of the last request. */
  headers: IncomingMessage['headers'] = {};
  /** How the server answers; default: what `asked` says. */
  answering: Answering = (_asked, answer) => void answer.end(this.asked.at(-1));
  readonly #server: Server;
  readonly #certificate: TestCertificate;

  private constructor(proxy: FaultProxy, server: Server, certificate: TestCertificate) {
    this.proxy = proxy;
    this.#server = server;
    this.#certificate = certificate;
    server.on('request', (asked, answer) => void this.#serve(asked, answer));
  }

  static async start(): Promise<Proxied> {
    const certificate = await selfSigned();
    const server = createServer(certificate);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const proxy = new FaultProxy({
      server: `https://127.0.0.1:${port}`,
      ca: certificate.cert,
      certificate,
    });
    return new Proxied(await proxy.start(), server, certificate);
  }

  async stop(): Promise<void> {
    await this.proxy.stop();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  readonly http1: Client = async (path, { method = 'GET', body, onText } = {}) => {
    const { promise, resolve } = Promise.withResolvers<Seen>();
    const options = { method, ca: this.#certificate.cert, agent: false } as const;
    const sent = request(new URL(path, this.proxy.url), options, (got) => {
      const { statusCode: status, headers } = got;
      void readAll(got, onText).then((read) => resolve({ status, headers, ...read }));
    });
    sent.on('error', () => resolve(NOTHING));
    sent.end(body);
    return promise;
  };

  readonly http2: Client = async (path, { method = 'GET', body, onText } = {}) => {
    const session = connect(this.proxy.url, { ca: this.#certificate.cert });
    session.on('error', () => undefined);
    const stream = session.request({ ':method': method, ':path': path }, { endStream: body === undefined });
    const { promise, resolve } = Promise.withResolvers<Seen>();
    let answer: Pick<Seen, 'status' | 'headers'> = NOTHING;
    stream.on('response', (headers) => (answer = { status: headers[':status'], headers }));
    void readAll(stream, onText).then(({ text, isBroken }) =>
      // Streams of a connection that breaks end as if all had come.
      resolve({ ...answer, text, isBroken: isBroken || stream.rstCode !== constants.NGHTTP2_NO_ERROR }),
    );
    if (body !== undefined) stream.end(body);
    try {
      return await promise;
    } finally {
      session.destroy();
    }
  };

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { text } = await readAll(asked);
    this.headers = asked.headers;
    this.asked.push(`${asked.method} ${asked.url} ${text}`.trim());
    this.answering(asked, answer, text);
  }
}

const NOTHING: Seen = { status: undefined, headers: {}, text: '', isBroken: true };

async function readAll(
  stream: Readable,
  onText?: (text: string) => void,
): Promise<Pick<Seen, 'text' | 'isBroken'>> {
  stream.setEncoding('utf8');
  let text = '';
  stream.on('data', (piece: string) => {
    text += piece;
    onText?.(text);
  });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let isWhole = false;
  stream.on('end', () => (isWhole = true));
  stream.on('error', () => undefined);
  stream.on('close', () => resolve(!isWhole));
  const isBroken = await promise;
  return { text, isBroken };
}
