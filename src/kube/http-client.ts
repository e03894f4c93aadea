import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { fullJitterMs, type Random, systemRandom } from '../lib/backoff.ts';
import { type Breath, breathOf } from '../lib/breath.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { TributaryError, hasCode } from '../lib/errors.ts';
import { collect, readError } from './body.ts';
import type {
  CallOptions,
  KubeClient,
  ListOptions,
  ObjectList,
  RawRequest,
  RawResponse,
  WatchEvent,
  WatchOptions,
} from './client.ts';
import type { Credentials } from './credentials.ts';
import { ListText } from './list-text.ts';
import { type Page, itemsOf, namesOf, oneShape, pageOf, parseAnswer } from './objects.ts';
import { PATCH_TYPES, acceptHeader, collectionPath, listQuery, nameOf, objectPath } from './paths.ts';
import { parseStatus, statusError } from './status-error.ts';
import { Transport, type TransportOptions, type TransportStats } from './transport.ts';
import { watchEvents } from './watch-events.ts';

export interface ClientOptions extends Omit<TransportOptions, 'clock'> {
  clock?: Clock;
  random?: Random;
  /** How long a unary call may take, from sending to the last byte. Default 30 s. */
  timeoutMs?: number;
  /** The largest answer to a unary call. Default 64 MiB. */
  maxAnswerBytes?: number;
}

/** A KubeClient that also tells what it has sent. */
export interface HttpClient extends KubeClient {
  readonly stats: TransportStats;
}

/** Page size. The answer is parsed in parts; larger ones are held in memory for longer. */
const PAGE_LIMIT = 125;

/** Time limits of a call that an answer may take which is read as it comes. API servers end theirs after two. */
const STREAM_LIMITS = 4;

/** How often a call is repeated after HTTP 429, and the longest the server may ask us to wait inside a call. */
const PATIENCE = { attempts: 4, longestMs: 10_000, defaultMs: 1000 };

/** A client of one API server. Nothing is dialled before the first call. */
export function createClient(credentials: Credentials, options: ClientOptions = {}): HttpClient {
  return new JsonClient(credentials, options);
}

interface UnaryRequest {
  method: string;
  path: string;
  what: string;
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  guard?: (() => void) | undefined;
  metadataOnly?: boolean | undefined;
}

class JsonClient implements HttpClient {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #breath: Breath;
  readonly #random: Random;
  readonly #timeoutMs: number;
  readonly #maxAnswerBytes: number;

  constructor(credentials: Credentials, options: ClientOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#breath = breathOf(this.#clock);
    this.#random = options.random ?? systemRandom;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#maxAnswerBytes = options.maxAnswerBytes ?? 64 * 1024 * 1024;
    this.#transport = new Transport(credentials, { ...options, clock: this.#clock });
  }

  get stats(): TransportStats {
    return this.#transport.stats;
  }

  readonly get: KubeClient['get'] = async (type, ref, options = {}) => {
    return this.#object(type, {
      method: 'GET',
      path: objectPath(type, ref, options.subresource),
      what: `get ${nameOf(type, ref)}`,
      ...sending(options),
    });
  };

  async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const items: T[] = [];
    let resourceVersion = '';
    for await (const page of this.pages(type, options)) {
      items.push(...page.items);
      resourceVersion = page.resourceVersion;
    }
    return { resourceVersion, items };
  }

  async *pages<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions = {},
  ): AsyncGenerator<ObjectList<T>, void, undefined> {
    let next: string | undefined;
    do {
      for await (const part of this.#parts(type, options, next)) {
        next = part.continue;
        yield { resourceVersion: part.resourceVersion, items: part.items };
        // Parts of several lists may come in one turn of the event loop. Asked once: workers may be due for long.
        const rest = this.#breath.due();
        if (rest !== undefined) await rest;
      }
    } while (next !== undefined);
  }

  /** A page, or the whole list. The last part says whether there is more. */
  async *#parts<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions,
    next: string | undefined,
  ): AsyncGenerator<Page<T>, void, undefined> {
    const request = listRequest(type, options, next);
    const { what } = request;
    const text = new ListText({ what, mostLength: this.#maxAnswerBytes });
    // A page is there before the caller works on it, which may take longer than an answer may.
    const body = options.limit === 'whole' ? this.#stream(request) : [await this.#unary(request)];
    for await (const chunk of body)
      for (const items of text.add(chunk))
        yield { resourceVersion: '', continue: undefined, items: itemsOf(type, items, what) };
    yield pageOf(type, text.end(), what);
  }

  readonly create: KubeClient['create'] = async (type, body, options = {}) => {
    const { name = '', namespace } = body.metadata;
    const what = `create ${nameOf(type, body.metadata)}`;
    if (type.namespaced && namespace === undefined) {
      throw new TributaryError('Invalid', `${what}: a namespace is needed`);
    }
    const place =
      options.subresource === undefined
        ? collectionPath(type, namespace)
        : objectPath(type, { ...body.metadata, name }, options.subresource);
    const path = place + listQuery({}, options.dryRun === true ? { dryRun: 'All' } : {});
    // For custom resources the API server needs apiVersion and kind in the body. A subresource has a kind of its own.
    const sent = options.subresource === undefined ? { ...namesOf(type), ...body } : body;
    return this.#object(type, { method: 'POST', path, what, body: sent, ...sending(options) });
  };

  async replace<T extends KubeObject>(type: ResourceType<T>, body: T, options: CallOptions = {}): Promise<T> {
    return this.#object(type, {
      method: 'PUT',
      path: objectPath(type, body.metadata, options.subresource),
      what: `replace ${nameOf(type, body.metadata)}`,
      body,
      ...sending(options),
    });
  }

  readonly patch: KubeClient['patch'] = async (type, ref, patch, options = {}) => {
    const force = patch.type === 'apply' && patch.force === true && { force: 'true' };
    const query = patch.type === 'apply' ? listQuery({}, { fieldManager: patch.fieldManager, ...force }) : '';
    return this.#object(type, {
      method: 'PATCH',
      path: objectPath(type, ref, options.subresource) + query,
      what: `patch ${nameOf(type, ref)}`,
      headers: { 'content-type': PATCH_TYPES[patch.type] },
      body: patch.body,
      ...sending(options),
    });
  };

  readonly delete: KubeClient['delete'] = async (type, ref, options = {}) => {
    const { gracePeriodSeconds, propagationPolicy, uid, resourceVersion } = options;
    await this.#unary({
      method: 'DELETE',
      path: objectPath(type, ref, options.subresource),
      what: `delete ${nameOf(type, ref)}`,
      body: {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds,
        propagationPolicy,
        preconditions:
          uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion },
      },
      ...sending(options),
      metadataOnly: true,
    });
  };

  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const what = `watch ${nameOf(type, { ...options })}`;
    const more: Record<string, string> = { watch: 'true' };
    if (options.bookmarks !== false) more['allowWatchBookmarks'] = 'true';
    if (options.timeoutSeconds !== undefined) more['timeoutSeconds'] = String(options.timeoutSeconds);
    const path = collectionPath(type, options.namespace) + listQuery(options, more);
    using head = startDeadline(this.#clock, this.#timeoutMs, what, options.signal);
    const headers = { accept: acceptHeader(options, 'object') };
    const response = await this.#transport.request({ method: 'GET', path, headers, signal: head.signal });
    if (response.status !== 200) throw await this.#failure(response, what);
    head.stopTimer();
    options.onOpen?.();
    yield* watchEvents(type, response.body, what);
  }

  async raw(request: RawRequest): Promise<RawResponse> {
    return this.#transport.request(request);
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  async #object<T extends KubeObject>(type: ResourceType<T>, request: UnaryRequest): Promise<T> {
    return oneShape<T>(type, parseAnswer(await this.#unary(request), request.what));
  }

  /** One call, whose answer it reads as a whole. */
  async #unary(request: UnaryRequest): Promise<Buffer> {
    return this.#patiently(request, async () => this.#once(request));
  }

  /** One call, whose answer is read as it comes; the time limit is for each piece of it, and a longer one for all of them. */
  async *#stream(request: UnaryRequest): AsyncGenerator<Buffer, void, undefined> {
    const { what, signal } = request;
    using whole = startDeadline(this.#clock, STREAM_LIMITS * this.#timeoutMs, what, signal);
    using deadline = startDeadline(this.#clock, this.#timeoutMs, what, whole.signal);
    const { body } = await this.#patiently(request, async () => {
      deadline.restart();
      return this.#answered(request, deadline.signal);
    });
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        deadline.stopTimer();
        yield chunk;
        deadline.restart();
      }
    } catch (error) {
      throw readError(error);
    } finally {
      body.destroy();
    }
  }

  /** Repeats a call after 429, which says that the server has done nothing. */
  async #patiently<R>(request: UnaryRequest, call: () => Promise<R>): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        const waitMs = request.path.endsWith('/eviction') ? undefined : patienceMs(error, attempt);
        if (waitMs === undefined) throw error;
        await this.#clock.sleep(waitMs + fullJitterMs(attempt, this.#jitter()), request.signal);
      }
    }
  }

  #jitter(): { baseMs: number; capMs: number; random: Random } {
    return { baseMs: 100, capMs: 1000, random: this.#random };
  }

  async #once(request: UnaryRequest): Promise<Buffer> {
    using deadline = startDeadline(this.#clock, this.#timeoutMs, request.what, request.signal);
    const { body } = await this.#answered(request, deadline.signal);
    return await collect(body, { maxBytes: this.#maxAnswerBytes, excess: 'throw' });
  }

  /** The head of an answer that says that all is well. */
  async #answered(
    { method, path, what, headers, body, guard, metadataOnly = false }: UnaryRequest,
    signal: AbortSignal,
  ): Promise<RawResponse> {
    const response = await this.#transport.request({
      method,
      path,
      headers: {
        accept: acceptHeader({ metadataOnly }, 'object'),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      guard,
    });
    if (response.status < 200 || response.status > 299) throw await this.#failure(response, what);
    return response;
  }

  async #failure(response: RawResponse, what: string): Promise<TributaryError> {
    const retryAfter = response.headers['retry-after'];
    const body = await collect(response.body, { maxBytes: 64 * 1024, excess: 'cut' });
    return statusError(response.status, parseStatus(body), {
      what,
      ...(typeof retryAfter === 'string' ? { retryAfter } : {}),
    });
  }
}

/** @param next the token of the page before */
function listRequest(
  type: ResourceType<KubeObject>,
  options: ListOptions,
  next: string | undefined,
): UnaryRequest {
  const { limit = PAGE_LIMIT } = options;
  // A list that continues takes its version from the token; the server refuses a request that also names one.
  const { resourceVersion: _version, resourceVersionMatch: _match, ...continued } = options;
  const size = limit === 'whole' ? {} : { limit: String(limit) };
  const query =
    next === undefined ? listQuery(options, size) : listQuery(continued, { ...size, continue: next });
  return {
    method: 'GET',
    path: collectionPath(type, options.namespace) + query,
    what: `list ${nameOf(type, { ...options })}`,
    headers: { accept: acceptHeader(options, 'list') },
    signal: options.signal,
  };
}

const sending = ({
  signal,
  guard,
  metadataOnly,
}: CallOptions): Pick<UnaryRequest, 'signal' | 'guard' | 'metadataOnly'> => ({ signal, guard, metadataOnly });

/** How long to wait before the same call is sent again; undefined if it must not be sent again. */
function patienceMs(error: unknown, attempt: number): number | undefined {
  if (!hasCode(error, 'TooManyRequests') || attempt >= PATIENCE.attempts) return undefined;
  const { retryAfterMs = PATIENCE.defaultMs, causes = [] } = error as TributaryError;
  // A budget that is spent gives 429 as well, and names it: the caller has to know that, and others wait for the same budget.
  if (causes.length > 0) return undefined;
  return retryAfterMs > PATIENCE.longestMs ? undefined : retryAfterMs;
}
