import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { TributaryError, errorCode, errorMessage } from '../../lib/errors.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { presentedChain, verifyChain } from '../identity/verify.ts';
import { serverNameOf } from '../identity/certificate.ts';
import type { PeerIdentity } from '../ports.ts';
import { parseEndpoint } from '../../lib/endpoint.ts';
import { MAX_MESSAGE_BYTES } from './message.ts';

export interface DialerOptions {
  /** Ours; the current one is used for each new connection. */
  certificate: Source<KeyPair>;
  clock: Clock;
  /** For the name, TCP and TLS together, and again for the upgrade. Default 5 s. */
  connectMs?: number;
}

export interface StreamRequest {
  /** The only identity that is believed. */
  clusterID: string;
  /** `host:port`. */
  endpoint: string;
  /** `/v1/link`, `/v1/api` or `/v1/streams/<id>`. */
  path: string;
  signal: AbortSignal;
}

/** An encrypted connection whose other end has proved an identity; nothing has been said on it. */
export interface Secured {
  socket: TLSSocket;
  peer: PeerIdentity;
}

const CONNECT_MS = 5_000;

/** Opens connections to peering endpoints: TLS first, then the identity, and only then the WebSocket. */
export class Dialer {
  readonly #options: DialerOptions;
  readonly #connectMs: number;

  constructor(options: DialerOptions) {
    this.#options = options;
    this.#connectMs = options.connectMs ?? CONNECT_MS;
  }

  /**
   * A WebSocket to that cluster. `adopt` is called as soon as it is open, before anything can have arrived, and must
   * listen at once. Throws Unreachable, or Unauthorized where another cluster answered.
   */
  async open<T>(request: StreamRequest, adopt: (socket: WebSocket, peer: PeerIdentity) => T): Promise<T> {
    const { clusterID, endpoint, signal } = request;
    const secured = await this.secure(endpoint, signal);
    if (secured.peer.clusterID !== clusterID) {
      secured.socket.destroy();
      const message = `${endpoint} is ${secured.peer.clusterID}, not ${clusterID}`;
      throw new TributaryError('Unauthorized', message, { reason: 'WrongIdentity' });
    }
    return this.upgrade(secured, request, (socket) => adopt(socket, secured.peer));
  }

  /** The caller owns the socket. Throws Unreachable, or Unauthorized for a chain that proves no identity. */
  async secure(endpoint: string, signal: AbortSignal): Promise<Secured> {
    const { certificate, clock } = this.#options;
    const { host, port } = parseEndpoint(endpoint);
    const { certificate: cert, key } = certificate.current();
    using deadline = startDeadline(clock, this.#connectMs, `connection to ${endpoint}`, signal);
    // Authorities play no part: the chain is judged by what it proves, below.
    const socket = connect({
      host,
      port,
      cert,
      key,
      ca: [],
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
      // For hosts that pass TLS on by its name. Our certificates do not bear it.
      ...(isIP(host) === 0 && { servername: host }),
    });
    try {
      await untilAborted(established(socket, endpoint), deadline.signal);
      const peer = verifyChain(presentedChain(socket), clock.now());
      socket.setNoDelay(true);
      socket.setKeepAlive(true, 15_000);
      return { socket, peer };
    } catch (error) {
      socket.destroy();
      if (errorCode(error) !== 'Unauthorized') throw error;
      throw new TributaryError(
        'Unauthorized',
        `${endpoint} proves no identity: ${errorMessage(error)}; is it a peering endpoint?`,
      );
    }
  }

  async upgrade<T>(
    { socket, peer }: Secured,
    { endpoint, path, signal }: Pick<StreamRequest, 'endpoint' | 'path' | 'signal'>,
    adopt: (socket: WebSocket) => T,
  ): Promise<T> {
    const { WebSocket } = await import('ws');
    using deadline = startDeadline(this.#options.clock, this.#connectMs, `${path} at ${endpoint}`, signal);
    // Nobody resolves or dials this name: the connection is there.
    const webSocket = new WebSocket(`ws://${serverNameOf(peer.clusterID)}${path}`, {
      createConnection: () => socket,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: MAX_MESSAGE_BYTES,
      // Masks are against middleboxes that read along (RFC 6455, section 10.3). Here nobody does: all is in TLS. A
      // mask of zeros spares both sides a pass over each byte.
      generateMask: (mask) => void mask.fill(0),
    });
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    // Kept for good: an error without a listener would end the process.
    webSocket.on('error', (error) =>
      reject(new TributaryError('Unreachable', `${path} at ${endpoint}: ${refusalOf(error)}`)),
    );
    webSocket.once('open', () => {
      try {
        resolve(adopt(webSocket));
      } catch (error) {
        reject(error);
      }
    });
    try {
      return await untilAborted(promise, deadline.signal);
    } catch (error) {
      webSocket.terminate();
      socket.destroy();
      throw error;
    }
  }
}

async function established(socket: TLSSocket, endpoint: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('secureConnect', resolve);
  // Kept for good, as errors may also come later.
  socket.on('error', (error) =>
    reject(new TributaryError('Unreachable', `${endpoint}: ${messageOf(error)}`)),
  );
  socket.once('close', () =>
    reject(new TributaryError('Unreachable', `${endpoint}: the connection was closed`)),
  );
  await promise;
}

/** Whoever does not accept our certificate can only hang up: nothing has been said yet in which to tell why. */
const refusalOf = (error: Error): string =>
  (error as { code?: unknown }).code === 'ECONNRESET'
    ? 'closed by the peer after TLS; its log says why'
    : error.message;

/**
 * Of several addresses that were tried, each has its own error and the whole has no text. OpenSSL's texts begin with
 * the number of a thread, another one each time, and end with a line of its source.
 */
function messageOf(error: Error): string {
  const { errors, code, reason } = error as { errors?: unknown; code?: unknown; reason?: unknown };
  if (Array.isArray(errors)) return errors.map(errorMessage).join(', ');
  return typeof code === 'string' && code.startsWith('ERR_SSL_') && typeof reason === 'string'
    ? `no TLS 1.3 with it (${reason}); is it a peering endpoint?`
    : error.message;
}
