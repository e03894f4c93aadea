/**
 * An API server in memory, within this process: a simulator with memory, for tests of everything that talks to one.
 * Its clients send what they would send by TLS (`client`), so that only sockets are left out; `fake-api-server.ts`
 * adds them. Any resource works; kinds are those of `src/api/resources.ts` and `types`.
 *
 * Copied from the real one (checked by test/contract/kube-client.ts, which runs on both): one revision for all
 * resources; no-op writes change nothing; resourceVersion and UID preconditions; `status` as a subresource;
 * generation; finalizers; graceful deletion of pods (a scheduled pod stays until grace 0 or its kubelet ends it);
 * generateName; paged lists from one snapshot; watches with a bounded history (410 in the stream), selectors that
 * turn a change into ADDED or DELETED, bookmarks, timeoutSeconds; PartialObjectMetadata; Status bodies; 401.
 *
 * Not copied: validation of specs, admission, defaulting, managedFields (it invents one entry, so that clients
 * must drop it), server-side apply conflicts, strategic merge beyond the usual lists, authorisation.
 *
 * Faults are injected by `fault` (one request at a time), `watches`, `cut` and `stop`.
 */
import * as resources from '../../../src/api/resources.ts';
import type { ResourceType } from '../../../src/api/resources.ts';
import type { KubeObject } from '../../../src/api/wire.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { type ClientOptions, type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import type { Carrier } from '../../../src/kube/transport.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { FakeRequests } from './requests.ts';
import { ApiFailure, type AnyObject, FakeStorage } from './storage.ts';
import { FakeWatches, type Response } from './watch.ts';
import { LocalCarrier } from './local-carrier.ts';

/** What to do to a request instead of, or before, answering it. */
interface FaultyRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  /** As parsed. */
  body: unknown;
}

export interface Fault {
  /** Which requests; default: all. */
  match?: (request: FaultyRequest) => boolean;
  /** How many of them. Default 1. */
  times?: number;
  /** Answer with this status, and a Status body. */
  status?: number;
  /** Of that Status; default: that it was injected. */
  message?: string;
  headers?: Record<string, string>;
  /** Answer this much later, on the server's clock. */
  delayMs?: number;
  /** Answer a list with no items at the current version. */
  emptyList?: boolean;
  /** Never answer; with `body`: never end. */
  stall?: boolean;
  /** Answer these bytes with status 200 and end. */
  body?: string;
}

/** A request as it arrives. */
export interface Arrival {
  method: string;
  /** Path with query. */
  url: string;
  headers: Record<string, string | string[] | undefined>;
  /** Read before it is answered. */
  text: () => Promise<string> | string;
}

export interface FakeApiOptions {
  clock?: Clock;
  /** Changes that a watch can reach back. Default 100 000. */
  historySize?: number;
  /** Accepted bearer tokens; if absent, no token is needed. Tests change it to rotate tokens. */
  tokens?: Set<string>;
  types?: readonly ResourceType<KubeObject>[];
}

/** Nobody dials it. */
const NOWHERE = new URL('https://api.test');

export class FakeApi {
  readonly storage: FakeStorage;
  readonly watches: FakeWatches;
  /** Every request that arrived, as "METHOD /path?query". */
  readonly log: string[] = [];
  protected readonly clock: Clock;
  readonly #tokens: Set<string> | undefined;
  readonly #requests: FakeRequests;
  readonly #faults: Fault[] = [];
  readonly #carriers = new Set<LocalCarrier>();
  #isAway = false;

  constructor(options: FakeApiOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.#tokens = options.tokens;
    const now = (): number => this.clock.now();
    this.storage = new FakeStorage(now, options.historySize ?? 100_000);
    this.watches = new FakeWatches(this.storage, this.clock);
    const known = Object.values(resources).filter((value) => typeof value === 'object');
    const types = [...known, ...(options.types ?? [])] as ResourceType<KubeObject>[];
    this.#requests = new FakeRequests({ storage: this.storage, watches: this.watches, types, now });
  }

  /** A client on the server's clock, unless told otherwise. */
  client({ token, ...options }: ClientOptions & Pick<Credentials, 'token'> = {}): HttpClient {
    const credentials = { ...this.credentials(), ...(token !== undefined && { token }) };
    return createClient(credentials, { clock: this.clock, carrier: this.carrier(), ...options });
  }

  /** For one client. */
  carrier(): Carrier {
    const carrier = new LocalCarrier({
      isAway: () => this.#isAway,
      answer: (arrival, response) => void this.answer(arrival, response),
      onClose: () => this.#carriers.delete(carrier),
    });
    this.#carriers.add(carrier);
    return carrier;
  }

  credentials(): Credentials {
    return { server: NOWHERE };
  }

  /** The next matching requests fail. Returns a function that removes the fault. */
  fault(fault: Fault): () => void {
    const own = { ...fault, times: fault.times ?? 1 };
    this.#faults.push(own);
    return () => {
      own.times = 0;
    };
  }

  /** Requests that arrived whose text matches. */
  count(pattern: RegExp): number {
    return this.log.filter((line) => pattern.test(line)).length;
  }

  /** Breaks off all answers, watches among them. */
  cut(): void {
    for (const carrier of this.#carriers) carrier.cut();
  }

  /** Opens it again after `stop`, with the same memory; a new server is open from the start. */
  async start(): Promise<this> {
    this.#isAway = false;
    return this;
  }

  /** Ends at once, and all answers with it: from now on it cannot be reached. */
  async stop(): Promise<void> {
    this.#isAway = true;
    this.cut();
  }

  /** Puts an object in as if created by somebody else. */
  seed(type: ResourceType<KubeObject>, object: object): AnyObject {
    return this.#requests.seed(type, object as AnyObject);
  }

  protected async answer({ method, url, headers, text }: Arrival, response: Response): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(url, NOWHERE);
    this.log.push(`${method} ${decodeURIComponent(url)}`);
    try {
      const body = parseBody(await text());
      const fault = this.#takeFault({ method, path, query, body }) ?? {};
      if (fault.delayMs !== undefined) await this.clock.sleep(fault.delayMs);
      if (fault.stall === true && fault.body === undefined) return;
      if (fault.status !== undefined) {
        const { status, message = `injected ${status}` } = fault;
        throw new ApiFailure(status, 'Fault', message, fault.headers);
      }
      this.#authenticate(headers['authorization']);
      if (fault.body !== undefined) {
        if (fault.stall === true) response.write(fault.body);
        else response.end(fault.body);
        return;
      }
      const accept = String(headers['accept'] ?? '');
      const contentType = String(headers['content-type'] ?? '');
      const empty = fault.emptyList === true;
      this.#requests.serve({ method, path, query, body, accept, contentType, empty }, response);
    } catch (error) {
      fail(response, error);
    }
  }

  #takeFault(request: FaultyRequest): Fault | undefined {
    const fault = this.#faults.find(({ times = 0, match }) => times > 0 && (match?.(request) ?? true));
    if (fault?.times !== undefined) fault.times--;
    return fault;
  }

  #authenticate(authorization: string | string[] | undefined): void {
    const token = /^Bearer (.*)$/.exec(String(authorization ?? ''))?.[1] ?? '';
    if (this.#tokens !== undefined && !this.#tokens.has(token))
      throw new ApiFailure(401, 'Unauthorized', 'Unauthorized');
  }
}

function fail(response: Response, error: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const known = error instanceof ApiFailure;
  const status = known ? error.status : 500;
  const headers = known ? error.headers : {};
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(
    JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: known ? error.message : String((error as Error).stack),
      reason: known ? error.reason : 'InternalError',
      code: status,
    }),
  );
}

function parseBody(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ApiFailure(400, 'BadRequest', 'the body is not JSON');
  }
}
