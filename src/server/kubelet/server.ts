import { constants } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';

import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { Arrivals } from '../arrivals.ts';
import { close, listen, portOf } from '../listening.ts';
import { KubeletAuth, type Reviews } from './auth.ts';
import type { KubeletBackend } from './backend.ts';
import { ContainerLogs } from './logs.ts';
import type { ServerMetrics } from './metrics.ts';
import { kubeletRoutes } from './routes.ts';
import { isStreamPath } from './stream-request.ts';
import { Streams } from './streams.ts';
import { Connections } from './user.ts';

export interface KubeletServerOptions extends Basics {
  nodeName: string;
  /** Default all addresses. */
  host?: string;
  /** Default 10250; 0 takes a free one. */
  port?: number;
  backend: KubeletBackend;
  reviews: Reviews;
  servingCertificate: Source<KeyPair>;
  /** PEM bundle whose client certificates are believed; empty: none is. */
  clientAuthorities: Source<string>;
  metrics: ServerMetrics;
  /** exec, attach and portForward together; default 512. */
  maxStreams?: number;
  /** Logs being read; default 256. */
  maxLogReads?: number;
}

/** Longer than Go's clients keep idle connections (90 s), so that they close first and never lose a request. */
const KEEP_ALIVE_MS = 120_000;
const HANDSHAKE_MS = 10_000;
const HEAD_MS = 20_000;
/** Of connections on which nothing is asked. An API server keeps some tens of them; pods can come here, too. */
const ARRIVALS = { silent: 256, waiting: 512, proofMs: HEAD_MS };
/** As the kubelet, whose Go server takes so much (net/http, DefaultMaxHeaderBytes): a command of exec is in the head. */
const MAX_HEAD_BYTES = 1_048_576;

/** The kubelet API of the virtual node: HTTP/1.1 over TLS, client certificates or bearer tokens. */
export class KubeletServer implements Component {
  readonly name = 'kubelet server';
  readonly #options: KubeletServerOptions;
  readonly #connections = new Connections();
  readonly #streams: Streams;
  readonly #auth: KubeletAuth;
  readonly #routes: ReturnType<typeof kubeletRoutes>;
  #server: Server | undefined;
  readonly #subscriptions = new Subscriptions();
  readonly #arrivals: Arrivals;

  constructor(options: KubeletServerOptions) {
    const { nodeName, backend, reviews, clock, log, metrics, maxStreams = 512, maxLogReads = 256 } = options;
    this.#options = options;
    this.#arrivals = new Arrivals({ clock, limits: ARRIVALS });
    const user = (socket: TLSSocket): ReturnType<Connections['user']> =>
      this.#connections.user(socket, clock.now());
    this.#auth = new KubeletAuth({ nodeName, clock, log, reviews, certificateUser: user });
    this.#streams = new Streams({
      backend,
      auth: this.#auth,
      clock,
      log,
      metrics,
      maxStreams,
      proved: (socket) => this.#arrivals.proved(socket),
    });
    const logs = new ContainerLogs({ backend, clock, log, metrics, maxReads: maxLogReads });
    // Not when the server starts: Express takes some milliseconds for the routes, and the certificates take as many.
    this.#routes = kubeletRoutes({ backend, auth: this.#auth, logs, log, metrics });
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return portOf(this.#server);
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clientAuthorities, servingCertificate, log } = this.#options;
    this.#connections.use(clientAuthorities.current());
    const server = createServer({ ...this.#tls(), ...LIMITS }, this.#routes);
    this.#server = server;
    this.#arrivals.guardHttps(server);
    server.on('secureConnection', (socket: TLSSocket) => this.#connections.secured(socket));
    server.on('tlsClientError', (error) => log.debug('TLS handshake failed', { error: errorMessage(error) }));
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      void this.#streams.serve(request, socket, head);
    });
    const renew = (): void => this.#renew(server);
    this.#subscriptions.add(servingCertificate.subscribe(renew), clientAuthorities.subscribe(renew));
    await listen(server, this.#options.host, this.#options.port ?? 10_250, 'kubelet-port');
    log.info('kubelet API listens', { port: this.port });
  }

  async stop(): Promise<void> {
    this.#subscriptions.end();
    const server = this.#server;
    if (server === undefined) return;
    await close(server, () => {
      this.#streams.closeAll();
      server.closeAllConnections();
      // Also those in their handshake, which node:http does not know yet.
      this.#arrivals.endAll();
    });
  }

  /** For new connections; existing ones keep the certificate that they were opened with. */
  #renew(server: Server): void {
    const { clientAuthorities, log } = this.#options;
    try {
      this.#connections.use(clientAuthorities.current());
      server.setSecureContext(this.#tls());
      log.info('certificates of the kubelet API changed');
    } catch (error) {
      log.error('cannot use new certificates for the kubelet API', { error: errorMessage(error) });
    }
  }

  #tls(): SecureContextOptions {
    const { certificate, key } = this.#options.servingCertificate.current();
    return {
      cert: certificate,
      key,
      // A list even when empty: without one Node would believe every public authority.
      ca: this.#connections.authorities.map((authority) => authority.toString()),
      minVersion: 'TLSv1.2',
      // No resumption: a new connection would inherit an old decision about a client certificate.
      secureOptions: constants.SSL_OP_NO_TICKET,
    };
  }
}

const LIMITS: ServerOptions = {
  requestCert: true,
  // A caller without a certificate, or with one of unknown origin, may still have a token.
  rejectUnauthorized: false,
  ALPNProtocols: ['http/1.1'],
  // A stream's client may end its input and still wait for output.
  allowHalfOpen: true,
  handshakeTimeout: HANDSHAKE_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  headersTimeout: HEAD_MS,
  requestTimeout: 60_000,
  maxHeaderSize: MAX_HEAD_BYTES,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
  shouldUpgradeCallback: (request) => isStreamPath((request.url ?? '').split('?', 1)[0] ?? ''),
};
