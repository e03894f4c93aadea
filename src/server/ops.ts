import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { errorMessage } from '../lib/errors.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { Arrivals } from './arrivals.ts';
import { createServer, setDate } from './http.ts';
import { close, listen, portOf } from './listening.ts';

/** Something that must hold; the answer is what is wrong, undefined when nothing is. */
interface HealthCheck {
  name: string;
  check: () => string | undefined;
}

/** What the lifecycle knows of its components. */
export interface ComponentStates {
  readonly order: readonly string[];
  readonly starting: string | undefined;
}

export interface OpsServerOptions {
  host?: string;
  /** 0 takes a free one. */
  port: number;
  registry: Pick<Registry, 'metrics' | 'contentType'>;
  /** Fail only when a restart would help. */
  live: readonly HealthCheck[];
  /** Besides `live`: fail while the process should get no work. */
  ready: readonly HealthCheck[];
  components: () => ComponentStates;
  /** Name of a component whose start may last although all is in order, as when a standby waits to lead. */
  waiting?: string;
  log: Logger;
  clock?: Clock;
}

/** For so long after the start, `?start` says no until all is ready. */
const STARTING_MS = 60_000;

/** A probe that finds no place would end a process in which nothing is wrong. */
const ARRIVALS = { silent: 64, waiting: 64 };

/** Metrics and health, in plain HTTP on a port of its own: nothing here is secret and nothing can be changed. */
export class OpsServer implements Component {
  readonly name = 'ops server';
  readonly #options: OpsServerOptions;
  readonly #clock: Clock;
  readonly #arrivals: Arrivals;
  #server: Server | undefined;
  #startedAt = 0;

  constructor(options: OpsServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#arrivals = new Arrivals({ clock: this.#clock, limits: ARRIVALS });
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return portOf(this.#server);
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { host, port, log } = this.#options;
    this.#startedAt = this.#clock.monotonic();
    const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000 }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        log.warn('ops request failed', { error: errorMessage(error) });
        reply(response, 500, 'internal error\n');
      });
    });
    this.#arrivals.guardHttp(server);
    this.#server = server;
    await listen(server, host, port, 'ops-port');
    log.info('ops server listens', { port: this.port });
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server !== undefined) await close(server, () => server.closeAllConnections());
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { registry, live } = this.#options;
    if (request.method !== 'GET' && request.method !== 'HEAD') return reply(response, 405, 'GET only\n');
    const [path, query] = request.url?.split('?', 2) ?? [];
    switch (path) {
      case '/metrics':
        return reply(response, 200, await registry.metrics(), registry.contentType);
      case '/livez':
      case '/healthz':
        return health(response, query === 'start' && this.#isStarting ? this.#ready() : live);
      case '/readyz':
        return health(response, this.#ready());
      case '/debug/components':
        return reply(response, 200, this.#components(), 'application/json');
      default:
        return reply(response, 404, 'not found\n');
    }
  }

  get #isStarting(): boolean {
    return this.#clock.monotonic() - this.#startedAt < STARTING_MS;
  }

  #ready(): HealthCheck[] {
    const { live, ready } = this.#options;
    return [{ name: 'startup', check: () => this.#startup() }, ...live, ...ready];
  }

  #startup(): string | undefined {
    const { starting } = this.#options.components();
    return starting === undefined || starting === this.#options.waiting ? undefined : `starting ${starting}`;
  }

  /** Components start one after the other, so their order and the one that is starting tell all. */
  #components(): string {
    const { order, starting } = this.#options.components();
    const current = starting === undefined ? order.length : order.indexOf(starting);
    const list = order.map((name, index) => {
      const others = index < current ? 'started' : 'waiting';
      return { name, state: index === current ? 'starting' : others };
    });
    return `${JSON.stringify({ components: list }, undefined, 2)}\n`;
  }
}

/** `ok`, or a line for each check that fails. A check that throws fails. */
function health(response: ServerResponse, checks: readonly HealthCheck[]): void {
  const failures = checks.flatMap(({ name, check }) => {
    const wrong = verdict(check);
    return wrong === undefined ? [] : [`${name}: ${wrong}\n`];
  });
  if (failures.length === 0) reply(response, 200, 'ok\n');
  else reply(response, 503, failures.join(''));
}

function verdict(check: HealthCheck['check']): string | undefined {
  try {
    return check();
  } catch (error) {
    return errorMessage(error);
  }
}

function reply(
  response: ServerResponse,
  status: number,
  text: string,
  contentType = 'text/plain; charset=utf-8',
): void {
  if (response.destroyed || response.headersSent) return;
  setDate(response);
  response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}
