/** Reads one API server: lists and watches, and nothing else. */
import type { IncomingMessage } from 'node:http';
import { Agent, request, type RequestOptions } from 'node:https';

import type { Access } from './kubeconfig.ts';
import type { RawObject } from './snapshot-model.ts';

const REQUEST_MS = 20_000;
/** The server ends a watch after this time. One that is silent for longer, by SILENT_MS, is on a dead connection. */
const WATCH_SECONDS = 15;
const SILENT_MS = 10_000;
const PAGE = 500;

/** The server could not be read, or answered with this status. */
export class ReadError extends Error {
  override readonly name = 'ReadError';
  /** Undefined: no answer. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

export interface Listed {
  readonly version: string;
  readonly items: readonly RawObject[];
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: RawObject & { code?: number };
}

interface Page {
  metadata?: { resourceVersion?: string; continue?: string };
  items?: RawObject[];
}

export class ApiReader {
  readonly name: string;
  readonly #access: Access;
  readonly #agent: Agent;

  /** @param name of the cluster, for messages */
  constructor(name: string, access: Access) {
    this.name = name;
    this.#access = access;
    const { ca, cert, key, isInsecure } = access;
    this.#agent = new Agent({
      keepAlive: true,
      rejectUnauthorized: !isInsecure,
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
    });
  }

  /** @throws {ReadError} */
  async get<T>(path: string): Promise<T> {
    const signal = AbortSignal.timeout(REQUEST_MS);
    const answer = await this.#send(path, signal);
    const text = await this.#textOf(answer, path);
    if (answer.statusCode !== 200) {
      const start = text.slice(0, 200);
      throw new ReadError(
        `${this.name} answered ${answer.statusCode} to ${path}: ${start}`,
        answer.statusCode,
      );
    }
    return this.#parsed(text, path) as T;
  }

  /**
   * All objects of a collection, as they are now, in pages.
   *
   * @throws {ReadError}
   */
  async list(path: string): Promise<Listed> {
    const items: RawObject[] = [];
    let page: Page | undefined;
    do {
      const next: string = page?.metadata?.continue ?? '';
      const query = `limit=${PAGE}${next === '' ? '' : `&continue=${encodeURIComponent(next)}`}`;
      page = await this.get<Page>(`${path}?${query}`);
      if (page.metadata === undefined)
        throw new ReadError(`${this.name} answered ${path} with what is no list`);
      items.push(...(page.items ?? []));
    } while ((page.metadata.continue ?? '') !== '');
    // Lists that are computed, such as that of ComponentStatuses, have none.
    return { version: page.metadata.resourceVersion ?? '0', items };
  }

  /**
   * What happens to a collection from that version on, until the server ends the watch as it was asked to.
   *
   * @param onOpen called when the server has taken the watch
   * @throws {ReadError} with status 410 if the version is too old
   */
  async *watch(
    path: string,
    version: string,
    signal: AbortSignal,
    onOpen: () => void,
  ): AsyncGenerator<WatchEvent> {
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}&resourceVersion=${version}`;
    const late = AbortSignal.timeout(WATCH_SECONDS * 1000 + SILENT_MS);
    const answer = await this.#send(`${path}?${query}`, AbortSignal.any([signal, late]));
    if (answer.statusCode !== 200) {
      answer.resume();
      throw new ReadError(
        `${this.name} answered ${answer.statusCode} to a watch of ${path}`,
        answer.statusCode,
      );
    }
    onOpen();
    try {
      for await (const line of linesOf(answer)) {
        const event = this.#parsed(line, path) as WatchEvent;
        if (event.type === 'ERROR')
          throw new ReadError(`${this.name} ended a watch of ${path}`, event.object.code ?? 500);
        yield event;
      }
    } catch (error) {
      if (error instanceof ReadError) throw error;
      throw new ReadError(`${this.name} cut a watch of ${path}: ${String(error)}`);
    } finally {
      answer.destroy();
    }
    if (!answer.complete) throw new ReadError(`${this.name} cut a watch of ${path}`);
  }

  async #send(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { token } = this.#access;
    const headers = {
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const options: RequestOptions = { agent: this.#agent, headers, signal };
    const sent = request(new URL(path, this.#access.server), options, (answer) => {
      // Whoever reads it is told; this only keeps an abort after the end from ending the process.
      answer.on('error', () => undefined);
      resolve(answer);
    });
    sent.on('error', (error) => reject(new ReadError(`${this.name} cannot be reached: ${error.message}`)));
    sent.end();
    return promise;
  }

  async #textOf(answer: IncomingMessage, path: string): Promise<string> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    } catch (error) {
      throw new ReadError(`${this.name} cut its answer to ${path}: ${String(error)}`);
    }
  }

  #parsed(text: string, path: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw new ReadError(`${this.name} answered ${path} with what is no JSON`);
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Whole lines only: one that was cut is no event. */
async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
