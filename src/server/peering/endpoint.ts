import { constants } from 'node:crypto';
import type { IncomingMessage, Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import {
  createServer as createTlsServer,
  type SecureContextOptions,
  type Server as TlsServer,
  type TLSSocket,
} from 'node:tls';
import type { WebSocket, WebSocketServer } from 'ws';

import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { QuietLog } from '../../lib/quiet-log.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { ARRIVAL_LIMITS, type ArrivalLimits, Arrivals, endOf, groupOf, plainAddress } from '../arrivals.ts';
import { createServer as createHttpServer } from '../http.ts';
import { close, listen, portOf } from '../listening.ts';
import { KnownAddresses, type NamedEndpoint } from './known-addresses.ts';
import { DEFAULT_PLACES, type PlaceLimits, Places } from './places.ts';

type Route = { kind: 'link' } | { kind: 'api' } | { kind: 'stream'; id: string };

const STREAM = /^\/v1\/streams\/([A-Za-z0-9_-]{8,64})$/;

/** What a caller wants of us; undefined for anything else. Queries are not part of the protocol. */
export function routeOf(target: string): Route | undefined {
  if (target === '/v1/link') return { kind: 'link' };
  if (target === '/v1/api') return { kind: 'api' };
  const id = STREAM.exec(target)?.[1];
  return id === undefined ? undefined : { kind: 'stream', id };
}

/** Who is at the other end of a connection, proved by TLS. */
interface Caller {
  readonly clusterID: string;
  /** Raw Ed25519 public key. */
  readonly publicKey: Uint8Array;
}

/** The handler owns the socket from now on. `from` is the caller's address and port. */
export interface PeeringHandlers {
  link: (socket: WebSocket, caller: Caller, from: string) => void;
  stream: (socket: WebSocket, caller: Caller, id: string) => void;
  api: (socket: WebSocket, caller: Caller) => void;
}

export interface PeeringEndpointOptions extends Basics {
  /** Default all addresses, IPv4 and IPv6. */
  host?: string;
  /** 0 takes a free one. */
  port: number;
  certificate: Source<KeyPair>;
  /** Who presented the certificates of this connection; throws what is wrong with them. */
  verify: (socket: Pick<TLSSocket, 'getPeerX509Certificate'>) => Caller;
  handlers: PeeringHandlers;
  /** Callers that we deal with. The others share a small part of the places. */
  isKnown: (clusterID: string) => boolean;
  /** Where they are, as far as somebody has said so who is no stranger. Default: nobody has. */
  named?: () => Iterable<NamedEndpoint>;
  limits?: Partial<PlaceLimits>;
  /** `proofMs` is also what a caller has from its proof until the upgrade. */
  arrivals?: Partial<ArrivalLimits>;
}
const MAX_MESSAGE_BYTES: number = 1024 * 1024;

/**
 * Where peers reach this cluster: mutual TLS, then WebSockets. A caller that proves no identity is disconnected before a
 * byte of HTTP is parsed. A client without a certificate completes the handshake, so that a person can see who we are, and gets
 * nothing else. Nothing is resumed: every connection proves its identity anew.
 */
export class PeeringEndpoint implements Component {
  readonly name = 'peering endpoint';
  readonly #options: PeeringEndpointOptions;
  readonly #handshakeMs: number;
  readonly #places: Places;
  readonly #quiet: QuietLog;
  readonly #knownAddresses: KnownAddresses;
  readonly #arrivals: Arrivals;
  readonly #callers = new WeakMap<Socket, Caller>();
  /** Ends the wait for the upgrade. */
  readonly #upgraded = new WeakMap<Socket, () => void>();
  #tls: TlsServer | undefined;
  #http: HttpServer | undefined;
  #unsubscribe = (): unknown => undefined;

  constructor(options: PeeringEndpointOptions) {
    this.#options = options;
    const { clock, isKnown, named = () => [], limits, arrivals } = options;
    this.#handshakeMs = arrivals?.proofMs ?? ARRIVAL_LIMITS.proofMs;
    this.#places = new Places({ ...DEFAULT_PLACES, ...limits });
    this.#quiet = new QuietLog(options);
    this.#knownAddresses = new KnownAddresses({ clock, isKnown, named });
    this.#arrivals = new Arrivals({
      clock,
      isKnown: (address) => this.#knownAddresses.has(address),
      ...(arrivals && { limits: arrivals }),
    });
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return portOf(this.#tls);
  }

  get connections(): number {
    return this.#arrivals.size;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { certificate, host, port, log } = this.#options;
    const http = await this.#createHttp();
    const tls = createTlsServer({
      ...this.#context(),
      requestCert: true,
      // Judged by `verify`; authorities play no part.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: this.#handshakeMs,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
    });
    [this.#tls, this.#http] = [tls, http];
    this.#arrivals.guardTls(tls);
    tls.on('secureConnection', (socket: TLSSocket) => this.#secured(socket));
    tls.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      socket.destroy();
      const { code } = error as { code?: unknown };
      // Somebody only checked whether the port is open, as load balancers do.
      if (code !== 'ECONNRESET') this.#quiet.warn('TLS', 'TLS failed', { error: error.message });
    });
    this.#unsubscribe = certificate.subscribe(() => this.#renew(tls));
    await listen(tls, host, port, 'peering-port');
    log.info('peering endpoint listens', { port: this.port });
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    const tls = this.#tls;
    if (tls === undefined) return;
    await close(tls, () => {
      this.#http?.close();
      this.#arrivals.endAll();
    });
  }

  async #createHttp(): Promise<HttpServer> {
    const { WebSocketServer } = await import('ws');
    const webSockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
    });
    webSockets.on('wsClientError', (error: Error, socket: Socket) => {
      this.#warn(socket, errorMessage(error));
      refuse(socket, 400, 'Bad Request');
    });
    const http = createHttpServer({ maxHeaderSize: 8_192, keepAliveTimeout: this.#handshakeMs });
    http.on('request', (request, response) => {
      response.writeHead(404, { Connection: 'close', 'Content-Type': 'text/plain' });
      response.end('only WebSockets are served here\n');
      this.#warn(request.socket, 'no upgrade to a WebSocket was asked for');
    });
    http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(webSockets, request, { socket, head }),
    );
    http.on('clientError', (error: Error, socket: Socket) => {
      this.#warn(socket, errorMessage(error));
      socket.destroy();
    });
    return http;
  }

  #context(): SecureContextOptions {
    const { certificate, key } = this.#options.certificate.current();
    return {
      cert: certificate,
      key,
      ca: [],
      minVersion: 'TLSv1.3',
      secureOptions: constants.SSL_OP_NO_TICKET,
    };
  }

  /** For new connections; existing ones keep the certificate that they were opened with. */
  #renew(tls: TlsServer): void {
    try {
      tls.setSecureContext(this.#context());
    } catch (error) {
      this.#options.log.error('cannot use the new peering certificate', { error: errorMessage(error) });
    }
  }

  #secured(socket: TLSSocket): void {
    socket.on('error', () => undefined);
    if (socket.destroyed) return;
    const caller = this.#identify(socket);
    // It keeps its place among those who have proved nothing, and its time, until it is gone.
    if (caller === undefined) return hangUp(socket);
    const { clusterID } = caller;
    const isKnown = this.#options.isKnown(clusterID);
    const address = plainAddress(socket.remoteAddress ?? '');
    if (isKnown) this.#knownAddresses.learn(clusterID, address);
    const leave = this.#places.admit({
      clusterID,
      isKnown,
      address: groupOf(address),
      end: () => this.#makeRoom(socket, clusterID),
    });
    if (leave === undefined) {
      this.#quiet.warn(caller.clusterID, 'too many connections; one more was refused', {
        peer: caller.clusterID,
        from: endOf(socket),
      });
      refuse(socket, 503, 'Service Unavailable');
      return;
    }
    this.#arrivals.proved(socket);
    // Each connection has this long to become a WebSocket.
    const cancel = this.#options.clock.after(this.#handshakeMs, () => socket.destroy());
    socket.once('close', cancel);
    socket.once('close', leave);
    this.#callers.set(socket, caller);
    this.#upgraded.set(socket, cancel);
    this.#http?.emit('connection', socket);
  }

  #makeRoom(socket: Socket, clusterID: string): void {
    this.#quiet.warn('strangers', 'too many clusters that we do not deal with; one made room', {
      peer: clusterID,
      from: endOf(socket),
    });
    socket.destroy();
  }

  /** Undefined for a caller that gets nothing. */
  #identify(socket: TLSSocket): Caller | undefined {
    if (socket.getPeerX509Certificate() === undefined) return undefined;
    try {
      if (socket.isSessionReused()) throw new Error('sessions are not resumed');
      return this.#options.verify(socket);
    } catch (error) {
      this.#quiet.warn(socket.remoteAddress ?? '?', 'a connection proved no identity', {
        from: endOf(socket),
        error: errorMessage(error),
      });
      return undefined;
    }
  }

  #upgrade(
    webSockets: WebSocketServer,
    request: IncomingMessage,
    { socket, head }: { socket: Socket; head: Buffer },
  ): void {
    const caller = this.#callers.get(socket);
    const route = routeOf(request.url ?? '');
    if (caller === undefined || route === undefined) {
      this.#warn(socket, 'an unknown path was asked for');
      return refuse(socket, 404, 'Not Found');
    }
    webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      this.#upgraded.get(socket)?.();
      this.#hand(webSocket, caller, { route, from: endOf(socket) });
    });
  }

  #hand(socket: WebSocket, caller: Caller, { route, from }: { route: Route; from: string }): void {
    const { handlers, log } = this.#options;
    // Without a listener an error would end the process.
    socket.on('error', (error) => {
      this.#quiet.warn(caller.clusterID, 'a peer broke the WebSocket protocol', {
        peer: caller.clusterID,
        from,
        error: errorMessage(error),
      });
    });
    try {
      if (route.kind === 'link') handlers.link(socket, caller, from);
      else if (route.kind === 'api') handlers.api(socket, caller);
      else handlers.stream(socket, caller, route.id);
    } catch (error) {
      log.error('cannot serve a peer', { peer: caller.clusterID, error: errorMessage(error) });
      socket.terminate();
    }
  }

  #warn(socket: Socket, message: string): void {
    const peer = this.#callers.get(socket)?.clusterID ?? '';
    this.#quiet.warn(peer, 'a request of a peer was refused', {
      peer,
      from: endOf(socket),
      error: message,
    });
  }
}

/** Closes the connection after the bytes of the handshake are sent. */
function hangUp(socket: TLSSocket): void {
  socket.resume();
  socket.destroySoon();
}

function refuse(socket: Socket, status: number, text: string): void {
  socket.write(`HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.destroySoon();
}
