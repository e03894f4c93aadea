/**
 * The dashboard's listener: the page, signing in, one stream of models, and actions. Plain HTTP on loopback only: from
 * outside of the pod there is no way to it but a port-forward, which the API server has authenticated and encrypted.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import type { Basics } from '../../lib/basics.ts';
import { errorCode, errorMessage, TributaryError } from '../../lib/errors.ts';
import { isFields } from '../../lib/fields.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { createServer } from '../http.ts';
import { close, listen, portOf } from '../listening.ts';
import { readBody, reply, replyJson, STATUS } from './answers.ts';
import { SignInCodes } from './codes.ts';
import { cookieFor, foreignTo, NO_COOKIE, SECURITY_HEADERS, sessionIn } from './guard.ts';
import { type PageFile, readPage } from './page-files.ts';
import type { SignIn } from './ports.ts';
import { type Session, SESSION_LIMITS, type SessionLimits, Sessions } from './sessions.ts';
import { streamModels } from './stream.ts';

export interface DashboardServerOptions extends Basics {
  /** 0 takes a free one. */
  port: number;
  /** Where the built page is. */
  pageDirectory: string;
  signIn: SignIn;
  limits?: SessionLimits;
}

const LOOPBACK = '127.0.0.1';
/** Enough for people, too few to guess tokens, or to make the API server guess them. */
const SIGN_INS = { burst: 10, perSecond: 0.5 };
const SWEEP_MS = 60_000;
const MAX_TOKEN = 16_384;

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

export class DashboardServer implements Component {
  readonly name = 'dashboard';
  readonly #options: DashboardServerOptions;
  readonly #sessions: Sessions;
  readonly #codes: SignInCodes;
  readonly #signIns: TokenBucket;
  #page: ReadonlyMap<string, PageFile> = new Map();
  #server: Server | undefined;
  #cancelSweep: () => void = () => undefined;

  constructor(options: DashboardServerOptions) {
    const { clock, log, limits = SESSION_LIMITS } = options;
    this.#options = options;
    this.#sessions = new Sessions({ clock, log, limits });
    this.#codes = new SignInCodes(clock);
    this.#signIns = new TokenBucket({ clock, ...SIGN_INS });
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return portOf(this.#server);
  }

  async start(signal: AbortSignal): Promise<void> {
    const { pageDirectory, port, log } = this.#options;
    this.#page = await readPage(pageDirectory);
    signal.throwIfAborted();
    const server = createServer({ headersTimeout: 10_000, requestTimeout: 20_000 }, (request, response) => {
      this.#answer({ request, response }).catch((error: unknown) => this.#fail(response, error));
    });
    server.maxConnections = 256;
    this.#server = server;
    await listen(server, LOOPBACK, port);
    this.#sweep();
    log.info('dashboard listens on loopback', { port: this.port });
  }

  async stop(): Promise<void> {
    this.#cancelSweep();
    this.#sessions.endAll();
    const server = this.#server;
    if (server !== undefined) await close(server, () => server.closeAllConnections());
  }

  #sweep(): void {
    this.#cancelSweep = this.#options.clock.after(SWEEP_MS, () => {
      this.#sessions.sweep();
      this.#sweep();
    });
  }

  async #answer({ request, response }: Exchange): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const method = request.method ?? '';
    const foreign = foreignTo(method, request.headers);
    if (foreign !== undefined) return replyJson(response, 403, { error: foreign });
    const path = request.url?.split('?', 1)[0] ?? '';
    if (method === 'GET' || method === 'HEAD') return this.#read(path, { request, response });
    if (method === 'POST') return this.#write(path, { request, response });
    return replyJson(response, 405, { error: 'GET and POST only' });
  }

  async #read(path: string, { request, response }: Exchange): Promise<void> {
    if (path === '/api/models') {
      const session = this.#session(request);
      await session.visitor.review();
      // Whoever has gone meanwhile would never be seen to go.
      if (response.destroyed) return;
      const closed = this.#sessions.streaming(session);
      if (closed === undefined) throw new TributaryError('TooManyRequests', 'too many pages are open');
      return streamModels({ clock: this.#options.clock, session, response, closed });
    }
    if (path === '/api/session') {
      const session = this.#sessions.find(sessionIn(request.headers));
      return replyJson(response, 200, session === undefined ? {} : { user: session.visitor.user });
    }
    const file = this.#page.get(path);
    if (file === undefined) return replyJson(response, 404, { error: 'there is nothing here' });
    response.setHeader('ETag', file.tag);
    response.setHeader('Cache-Control', 'no-cache');
    if (request.headers['if-none-match'] === file.tag) return reply(response, 304, '', file.type);
    return reply(response, 200, file.body, file.type);
  }

  async #write(path: string, { request, response }: Exchange): Promise<void> {
    switch (path) {
      case '/api/sign-in':
        return this.#signIn({ request, response });
      case '/api/sign-in-codes': {
        const token = await this.#tokenIn(request);
        // Found out now whether it is good: who made the code can still do something about it.
        const visitor = await this.#options.signIn(token);
        await visitor.close();
        return replyJson(response, 201, { code: this.#codes.make(token) });
      }
      case '/api/sign-out': {
        const session = this.#sessions.find(sessionIn(request.headers));
        if (session !== undefined) this.#sessions.end(session);
        response.setHeader('Set-Cookie', NO_COOKIE);
        return replyJson(response, 200, {});
      }
      case '/api/actions': {
        const session = this.#session(request);
        return replyJson(response, 200, { done: await session.visitor.act(await readBody(request)) });
      }
      default:
        return replyJson(response, 404, { error: 'there is nothing here' });
    }
  }

  async #signIn({ request, response }: Exchange): Promise<void> {
    const visitor = await this.#options.signIn(await this.#tokenIn(request));
    const before = this.#sessions.find(sessionIn(request.headers));
    if (before !== undefined) this.#sessions.end(before);
    response.setHeader('Set-Cookie', cookieFor(this.#sessions.begin(visitor)));
    this.#options.log.info('signed in to the dashboard', { user: visitor.user });
    return replyJson(response, 200, { user: visitor.user });
  }

  /** Of the body, or behind the code that is there. */
  async #tokenIn(request: IncomingMessage): Promise<string> {
    if (!this.#signIns.tryTake(1)) {
      throw new TributaryError('TooManyRequests', 'too many people sign in; try again in a few seconds');
    }
    const body = await readBody(request);
    const { token, code } = isFields(body) ? body : {};
    const found = typeof code === 'string' ? this.#codes.take(code) : token;
    const text = typeof found === 'string' ? found.trim() : '';
    // What else is no header value, and so nobody's token.
    if (text.length > MAX_TOKEN || !/^[\x21-\x7e]+$/u.test(text)) {
      throw new TributaryError(
        'Unauthorized',
        typeof code === 'string'
          ? 'this address has signed somebody in already, or is older than a minute: run tributary dashboard again, or enter a token'
          : 'this is no token: enter all of the one line that kubectl --namespace NAMESPACE create token ACCOUNT prints',
      );
    }
    return text;
  }

  #session(request: IncomingMessage): Session {
    const session = this.#sessions.find(sessionIn(request.headers));
    if (session === undefined) throw new TributaryError('Unauthorized', 'sign in first');
    return session;
  }

  #fail(response: ServerResponse, error: unknown): void {
    const code = errorCode(error);
    if (code === undefined)
      this.#options.log.warn('dashboard request failed', { error: errorMessage(error) });
    const text =
      code === undefined
        ? 'something went wrong here; the log of the role cluster says what'
        : errorMessage(error);
    if (response.headersSent) response.destroy();
    else replyJson(response, code === undefined ? 500 : STATUS[code], { error: text, code });
  }
}
