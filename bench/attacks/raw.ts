/** Requests of an attacker: one connection for each worker, no patience, no client that waits where a server asks to. */
import { Agent, request } from 'node:https';

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
  /** Of the header Retry-After. */
  readonly retryAfterSeconds: number | undefined;
}

export class RawClient {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #token: () => string;

  constructor(server: string, ca: string, token: () => string) {
    this.#server = server;
    this.#agent = new Agent({ ca, keepAlive: true, maxSockets: 128 });
    this.#token = token;
  }

  /** Status 0: no answer. */
  async call(method: string, path: string, body?: string, type = 'application/json'): Promise<RawAnswer> {
    const { promise, resolve } = Promise.withResolvers<RawAnswer>();
    const headers = {
      authorization: `Bearer ${this.#token()}`,
      ...(body !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
    };
    const sent = request(new URL(path, this.#server), { method, agent: this.#agent, headers }, (answer) => {
      let got = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (got += chunk));
      const after = answer.headers['retry-after'];
      const retryAfterSeconds = after === undefined ? undefined : Number(after);
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: got, retryAfterSeconds }));
      answer.once('error', () => resolve(LOST));
    });
    sent.once('error', () => resolve(LOST));
    sent.end(body);
    return promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

const LOST: RawAnswer = { status: 0, body: '', retryAfterSeconds: undefined };
