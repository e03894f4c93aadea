import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';

import type { Admission, Hook } from '../../api/admission.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorCode, errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { QuietLog } from '../../lib/quiet-log.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { Arrivals } from '../arrivals.ts';
import { close, listen, portOf } from '../listening.ts';
import type { WebhookMetrics, WebhookOutcome } from './metrics.ts';
import { answerOf, type BodyLimits, BodyReader, parseReview, type ReviewRequest } from './review.ts';

interface WebhookServerOptions extends Basics {
  /** Default all addresses, IPv4 and IPv6. */
  host?: string;
  /** 0 takes a free one. */
  port: number;
  certificate: Source<KeyPair>;
  /** Only their paths are answered. */
  hooks: readonly Hook[];
  metrics: WebhookMetrics;
  bodyLimits?: BodyLimits;
}

/** An API server waits for 2 s. */
const REQUEST_TIMEOUT_MS = 5_000;
/** How late after that a connection may be ended. Each check wakes the process, whether there are connections or not. */
const CHECK_MS = 20_000;
/** Of connections on which nothing is asked. An API server keeps some tens of them. */
const ARRIVALS = { silent: 512, waiting: 512, proofMs: REQUEST_TIMEOUT_MS };
/** Several API servers, each with all the creations that it lets in at a time (200 by default), besides those who wait. */
const MAX_CONNECTIONS: number = 1_024 + ARRIVALS.silent + ARRIVALS.waiting;
/** Requests at the same time, so that one stranger cannot take all places. */
const MAX_PER_ADDRESS = 384;
/**
 * Longer than an API server keeps an idle connection (90 s, Go's default), so that we never close one while a request is
 * on its way: a POST is not sent again, and a pod would be refused.
 */
const KEEP_ALIVE_MS = 180_000;
/** For requests under way when the program stops. */
const DRAIN_MS = 2_000;

/**
 * Answers API servers that ask what to add to a pod, or whether to let it in. Where it has no answer it says so with an HTTP
 * error, and the failurePolicy of the webhook that was asked decides.
 */
export class WebhookServer implements Component {
  readonly name = 'webhook server';
  readonly #options: WebhookServerOptions;
  readonly #bodies: BodyReader;
  readonly #quiet: QuietLog;
  readonly #arrivals: Arrivals;
  /** Requests under way, by address. */
  readonly #addresses = new Map<string, number>();
  #server: Server | undefined;
  #unsubscribe = (): unknown => undefined;

  constructor(options: WebhookServerOptions) {
    this.#options = options;
    this.#bodies = new BodyReader(options.bodyLimits);
    this.#quiet = new QuietLog(options);
    this.#arrivals = new Arrivals({ clock: options.clock, limits: ARRIVALS });
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return portOf(this.#server);
  }

  /** What is wrong, for a health check. */
  problem(): string | undefined {
    return this.#server?.listening === true ? undefined : 'the admission webhook does not listen';
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { certificate, host, port, log } = this.#options;
    const server = createServer(
      {
        ...this.#context(),
        handshakeTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: REQUEST_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectionsCheckingInterval: CHECK_MS,
        maxHeaderSize: 16_384,
        noDelay: true,
      },
      (request, response) => this.#answer(request, response),
    );
    server.maxConnections = MAX_CONNECTIONS;
    this.#arrivals.guardHttps(server);
    server.on('tlsClientError', (error: Error, socket: Socket) => {
      this.#quiet.warn('TLS', 'TLS failed', { error: errorMessage(error), from: socket.remoteAddress });
    });
    this.#server = server;
    await listen(server, host, port, 'webhook-port');
    server.on('error', (error) => log.error('webhook server failed', { error: errorMessage(error) }));
    this.#unsubscribe = certificate.subscribe(() => this.#renew(server));
    log.info('webhook server listens', { port: this.port });
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    const server = this.#server;
    if (server === undefined) return;
    const cancel = this.#options.clock.after(DRAIN_MS, () => this.#arrivals.endAll());
    await close(server, () => server.closeIdleConnections());
    cancel();
  }

  #context(): SecureContextOptions {
    const { certificate, key } = this.#options.certificate.current();
    return { cert: certificate, key, minVersion: 'TLSv1.2' };
  }

  /** For new connections; existing ones keep the certificate that they were opened with. */
  #renew(server: Server): void {
    try {
      server.setSecureContext(this.#context());
    } catch (error) {
      this.#options.log.error('cannot use the new certificate', { error: errorMessage(error) });
    }
  }

  /** Whether there is a place for one more request of that address, which is given back with the answer. */
  #takePlace({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const from = socket.remoteAddress ?? '';
    const count = (this.#addresses.get(from) ?? 0) + 1;
    if (count > MAX_PER_ADDRESS) return false;
    this.#addresses.set(from, count);
    response.once('close', () => {
      const left = (this.#addresses.get(from) ?? 0) - 1;
      if (left > 0) this.#addresses.set(from, left);
      else this.#addresses.delete(from);
    });
    return true;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => undefined);
    if (!this.#takePlace(request, response)) return this.#refuse(request, response, TOO_MANY);
    // API servers add `?timeout=2s`.
    const path = (request.url ?? '').split('?', 1)[0];
    const hook = this.#options.hooks.find((one) => one.path === path);
    const refusal = hook === undefined ? NOT_FOUND : refusalOf(request);
    if (hook === undefined || refusal !== undefined)
      return this.#refuse(request, response, refusal ?? NOT_FOUND);
    this.#serve(request, response, hook).catch((error: unknown) => {
      this.#options.log.error('webhook request failed', { error: errorMessage(error) });
      this.#options.metrics.answered('error');
      this.#fail(response);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse, hook: Hook): Promise<void> {
    const { metrics, clock } = this.#options;
    let review: ReviewRequest;
    let began: number;
    try {
      const text = await this.#bodies.read(request);
      began = clock.monotonic();
      review = parseReview(text, hook.decideWrite !== undefined);
    } catch (error) {
      return this.#refuse(request, response, { status: statusOf(error), message: errorMessage(error) });
    }
    const admission = this.#decide(review, hook);
    if (admission === undefined) {
      this.#fail(response);
      return metrics.answered('error', clock.monotonic() - began);
    }
    const body = JSON.stringify(answerOf(review.uid, admission));
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(200, headers).end(body);
    metrics.answered(outcomeOf(admission), clock.monotonic() - began);
  }

  /** Undefined if the decision failed, or cannot be made now. */
  #decide({ question, claim, write }: ReviewRequest, hook: Hook): Admission | undefined {
    const { decide, decideClaim, decideWrite, path } = hook;
    const namespace = (question ?? claim ?? write)?.namespace;
    try {
      if (decideWrite !== undefined) return (write && decideWrite(write)) ?? { patch: [], warnings: [] };
      if (question !== undefined) return decide?.(question) ?? { patch: [], warnings: [] };
      return (claim && decideClaim?.(claim)) ?? { patch: [], warnings: [] };
    } catch (error) {
      const message = errorMessage(error);
      this.#quiet.warn(path, 'cannot decide', { error: message, namespace });
      return undefined;
    }
  }

  /**
   * Not `allowed` without a patch: a pod of a namespace with the strategy Remote would run at home for good. On an error the
   * webhook's own failurePolicy decides, by which the others pass as they are.
   */
  #fail(response: ServerResponse): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    response.writeHead(INTERNAL, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end('an error inside tributary; its log says more\n');
  }

  #refuse(request: IncomingMessage, response: ServerResponse, { status, message }: Refusal): void {
    this.#options.metrics.answered('refused');
    if (status === ABORTED || response.destroyed || response.headersSent) return;
    this.#quiet.warn('requests', 'request refused', { problem: message, from: request.socket.remoteAddress });
    // What is left of the body is not read.
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' });
    response.end(`${message}\n`, () => request.destroy());
  }
}

interface Refusal {
  status: number;
  message: string;
}

/** Nobody is there to read it (nginx's number). */
const ABORTED = 499;
const INTERNAL = 500;
const TOO_MANY: Refusal = { status: 503, message: 'too many requests of one address' };
const NOT_FOUND: Refusal = { status: 404, message: 'not found' };

function outcomeOf({ patch, refusal }: Admission): WebhookOutcome {
  if (refusal !== undefined) return 'denied';
  return patch.length > 0 ? 'patched' : 'unchanged';
}

function refusalOf({ method, headers }: IncomingMessage): Refusal | undefined {
  if (method !== 'POST') return { status: 405, message: 'POST only' };
  const isJson = /^application\/json\s*(;|$)/iu.test(headers['content-type'] ?? '');
  return isJson ? undefined : { status: 415, message: 'application/json only' };
}

function statusOf(error: unknown): number {
  switch (errorCode(error)) {
    case 'Invalid':
      return (error as { status?: number }).status ?? 400;
    case 'TooManyRequests':
      return 503;
    case 'Aborted':
      return ABORTED;
    default:
      return INTERNAL;
  }
}
