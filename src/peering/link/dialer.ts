import { lookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { TributaryError, errorCode, errorMessage } from '../../lib/errors.ts';
import { firstOf } from '../../lib/first-of.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import { connectThrough, throughText } from '../../kube/connect-proxy.ts';
import { proxyFor, type Proxy, type ProxySettings } from '../../lib/proxy.ts';
import { presentedChain, verifyChain } from '../identity/verify.ts';
import { serverNameOf } from '../identity/certificate.ts';
import type { PeerIdentity } from '../ports.ts';
import { parseEndpoint } from '../../lib/endpoint.ts';
import { MAX_MESSAGE_BYTES } from './message.ts';

export interface DialerOptions {
  /**
   * Our own certificate. Each new connection uses the current one. Absent: only for `secure`, to ask who answers; in TLS 1.3 the server
   * proves itself before it knows the client, and it closes the connection then.
   */
  certificate?: Source<KeyPair>;
  clock: Clock;
  /**
   * Whether that endpoint may lead to that address. It is asked for each address that a name has, and only those that may be are
   * dialled. A name is asked for as well where a proxy would look it up: only the proxy sees its addresses then. Default: any
   * may, since people have named the endpoints.
   */
  mayDial?: (endpoint: string, address: string) => boolean;
  /** The way out; default: directly. */
  proxies?: ProxySettings;
  /** How long the DNS look-up, TCP and TLS may take together, and then again the upgrade. Default 5 s. */
  connectMs?: number;
}

export interface StreamRequest {
  /** The cluster that has to answer; any other identity is refused. */
  clusterID: string;
  /** `host:port`. */
  endpoint: string;
  /** `/v1/link`, `/v1/api` or `/v1/streams/<id>`. */
  path: string;
  signal: AbortSignal;
}

/** An encrypted connection whose other end has proved an identity. Neither side has sent anything on it yet. */
export interface Secured {
  socket: TLSSocket;
  peer: PeerIdentity;
}

const CONNECT_MS = 5_000;

/** Opens connections to peering endpoints: first TLS, then it checks the identity, and only then it opens the WebSocket. */
export class Dialer {
  readonly #options: DialerOptions;
  readonly #connectMs: number;

  constructor(options: DialerOptions) {
    this.#options = options;
    this.#connectMs = options.connectMs ?? CONNECT_MS;
  }

  /**
   * Opens a WebSocket to that cluster. Calls `adopt` as soon as it is open, before a message can have arrived; `adopt`
   * must add its listeners at once. Throws Unreachable, or Unauthorized if another cluster answered.
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

  /** The caller owns the socket. Throws Unreachable, or Unauthorized if the certificates prove no identity. */
  async secure(endpoint: string, signal: AbortSignal): Promise<Secured> {
    const { certificate, clock, proxies, mayDial = () => true } = this.#options;
    const { host, port } = parseEndpoint(endpoint);
    const isAllowed = (address: string): boolean => mayDial(endpoint, address);
    // Node does not look up an address.
    if (isIP(host) !== 0 && !isAllowed(host)) throw neverDialled(endpoint);
    const own = certificate?.current();
    const proxy = proxyFor(proxies, { host, port });
    const what = `connection to ${endpoint}${proxy === undefined ? '' : ` ${throughText(proxy)}`}`;
    using deadline = startDeadline(clock, this.#connectMs, what, signal);
    const carrier = proxy && (await throughProxy({ proxy, endpoint, isAllowed, signal: deadline.signal }));
    // No authority has to have signed the certificates: `verifyChain` below checks which identity they prove.
    const socket = connect({
      host,
      port,
      ...(carrier === undefined ? { lookup: checkedLookup(isAllowed, endpoint) } : { socket: carrier }),
      ...(own && { cert: own.certificate, key: own.key }),
      ca: [],
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
      // Proxies that forward TLS by server name need it. Our certificates do not contain that name.
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
    // Nothing resolves or dials this name, since the connection exists already.
    const webSocket = new WebSocket(`ws://${serverNameOf(peer.clusterID)}${path}`, {
      createConnection: () => socket,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: MAX_MESSAGE_BYTES,
      // Masks protect from proxies that read the traffic (RFC 6455, section 10.3). None can read it here, since all of
      // it is in TLS. With a mask of zeros neither side has to change each byte.
      generateMask: (mask) => void mask.fill(0),
    });
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    // This listener stays: an error without a listener would end the process.
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

/** Says the same of addresses and of names, and nothing of what is there. */
const neverDialled = (endpoint: string): TributaryError =>
  new TributaryError('Unreachable', `${endpoint}: no other cluster can be there, so it is not dialled`);

const unresolved = (endpoint: string, error: Error): Error =>
  errorCode(error) === 'Unreachable'
    ? error
    : new TributaryError(
        'Unreachable',
        `${endpoint}: ${errorMessage(error)}; a name that a peer has told is looked up in this cluster, and not by the proxy`,
      );

/** As the system looks names up, without the addresses that are not allowed: what was checked is what is dialled. */
const checkedLookup =
  (isAllowed: (address: string) => boolean, endpoint: string): LookupFunction =>
  (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error, []);
      const allowed = addresses.filter(({ address }) => isAllowed(address));
      const [first] = allowed;
      if (first === undefined) return done(neverDialled(endpoint), []);
      return options.all === true ? done(null, allowed) : done(null, first.address, first.family);
    });
  };

/**
 * A name of which only its addresses may be dialled is looked up here, and the proxy is given an address: what was checked is what
 * is dialled, also from there.
 */
async function throughProxy(way: {
  proxy: Proxy;
  endpoint: string;
  isAllowed: (address: string) => boolean;
  signal: AbortSignal;
}): Promise<Socket> {
  const { proxy, endpoint, isAllowed, signal } = way;
  const { host, port } = parseEndpoint(endpoint);
  if (isAllowed(host)) return connectThrough(proxy, { host, port }, { signal });
  const { promise, resolve, reject } = Promise.withResolvers<readonly LookupAddress[]>();
  checkedLookup(isAllowed, endpoint)(host, { all: true }, (error, found) => {
    if (error !== null) reject(unresolved(endpoint, error));
    else resolve(Array.isArray(found) ? found : []);
  });
  const addresses = await untilAborted(promise, signal);
  return firstOf(addresses, neverDialled(endpoint), async ({ address }) =>
    connectThrough(proxy, { host: address, port }, { signal }),
  );
}

async function established(socket: TLSSocket, endpoint: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('secureConnect', resolve);
  // This listener stays, since errors may also come later.
  socket.on('error', (error) =>
    reject(new TributaryError('Unreachable', `${endpoint}: ${messageOf(error)}`)),
  );
  socket.once('close', () =>
    reject(new TributaryError('Unreachable', `${endpoint}: the connection was closed`)),
  );
  await promise;
}

/** A peer that does not accept our certificate can only close the connection: at that point it cannot send a reason yet. */
const refusalOf = (error: Error): string =>
  (error as { code?: unknown }).code === 'ECONNRESET'
    ? 'closed by the peer after TLS; its log says why'
    : error.message;

/** An OpenSSL text begins with the number of a thread, which differs each time, and ends with a line of its source code. */
function messageOf(error: Error): string {
  const { code, reason } = error as { code?: unknown; reason?: unknown };
  return typeof code === 'string' && code.startsWith('ERR_SSL_') && typeof reason === 'string'
    ? `no TLS 1.3 with it (${reason}); is it a peering endpoint?`
    : errorMessage(error);
}
