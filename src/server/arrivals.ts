import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';

import type { Clock } from '../lib/clock.ts';
import { parseAddress } from '../lib/prefix.ts';
import { awaitClientHello } from './client-hello.ts';
import { Crowd } from './crowd.ts';

export interface ArrivalLimits {
  /** Connections that have not said anything yet; they cost little. */
  silent: number;
  /** Connections that are in their handshake, or wait for something to do. */
  waiting: number;
  /** Of both kinds together, from addresses that are known: nobody else takes these places. */
  known: number;
  /** From the first packet until the ClientHello is there. Milliseconds. */
  helloMs: number;
  /** From the first packet until the connection has proved itself. Milliseconds. */
  proofMs: number;
}

export const ARRIVAL_LIMITS: Readonly<ArrivalLimits> = {
  silent: 512,
  waiting: 256,
  known: 256,
  helloMs: 2_000,
  proofMs: 10_000,
};

interface ArrivalsOptions {
  clock: Clock;
  limits?: Partial<ArrivalLimits>;
  /** Addresses that have places of their own; default: none. */
  isKnown?: (address: string) => boolean;
}

interface Arrival {
  readonly socket: Socket;
  readonly address: string;
  readonly isKnown: boolean;
  /** Gives the present place back. */
  leave: () => void;
  /** Ends all waits; not those of the place. */
  settle: () => void;
  /** Requests that are being answered. */
  busy: number;
}

/**
 * Stands before a listener and bounds what strangers may hold of it: connections that have not proved anything yet, and
 * those on which nothing is asked. A full house refuses nobody; it drops somebody who waits (crowd.ts).
 */
export class Arrivals {
  readonly #options: ArrivalsOptions;
  readonly #limits: ArrivalLimits;
  readonly #silent: Crowd;
  readonly #waiting: Crowd;
  readonly #known: Crowd;
  /** By address and port. */
  readonly #arrivals = new Map<string, Arrival>();

  constructor(options: ArrivalsOptions) {
    this.#options = options;
    this.#limits = { ...ARRIVAL_LIMITS, ...options.limits };
    this.#silent = new Crowd(this.#limits.silent);
    this.#waiting = new Crowd(this.#limits.waiting);
    this.#known = new Crowd(this.#limits.known);
  }

  /** All connections that are open. */
  get size(): number {
    return this.#arrivals.size;
  }

  /** Takes the place of what a TLS server itself does with a new connection, and lets it do so when a ClientHello is there. */
  guardTls(server: Server): void {
    this.#before(server, (arrival, go) => this.#awaitHello(arrival, go));
  }

  /**
   * For a server of HTTPS: a connection has a place of its own only while requests on it are answered. A server that takes upgrades says
   * itself when one has proved itself: a listener here would make every server take them.
   */
  guardHttps(server: Server): void {
    this.guardTls(server);
    this.#followRequests(server);
  }

  /** The same, of plain HTTP. */
  guardHttp(server: Server): void {
    this.#before(server, (_arrival, go) => go());
    this.#followRequests(server);
  }

  /** The connection has proved what was to be proved: others look after it from now on. */
  proved(socket: Socket): void {
    const arrival = this.#arrivals.get(endOf(socket));
    arrival?.settle();
    arrival?.leave();
  }

  /** Ends all connections. */
  endAll(): void {
    for (const { socket } of this.#arrivals.values()) socket.destroy();
  }

  #before(server: Server, arrived: (arrival: Arrival, go: () => void) => void): void {
    const theirs = server.listeners('connection') as ((socket: Socket) => void)[];
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => {
      // Before anything else: a reset in the handshake must not end the process.
      socket.on('error', () => undefined);
      const arrival = this.#enter(socket);
      if (!socket.destroyed)
        arrived(arrival, () => theirs.forEach((listener) => listener.call(server, socket)));
    });
  }

  #enter(socket: Socket): Arrival {
    const address = plainAddress(socket.remoteAddress ?? '');
    const isKnown = this.#options.isKnown?.(address) === true;
    const cancel = this.#options.clock.after(this.#limits.proofMs, () => socket.destroy());
    const arrival: Arrival = { socket, address, isKnown, leave: () => undefined, settle: cancel, busy: 0 };
    const end = endOf(socket);
    this.#arrivals.set(end, arrival);
    socket.once('close', () => {
      arrival.settle();
      arrival.leave();
      // The port may have been given to another connection in the meantime.
      if (this.#arrivals.get(end) === arrival) this.#arrivals.delete(end);
    });
    this.#place(arrival, this.#silent);
    return arrival;
  }

  /** Whoever is known stays in the crowd of those. */
  #place(arrival: Arrival, crowd: Crowd): void {
    const { socket, address, isKnown } = arrival;
    arrival.leave();
    const end = (): unknown => socket.destroy();
    arrival.leave = isKnown ? this.#known.enter(address, end) : crowd.enter(groupOf(address), end);
  }

  #awaitHello(arrival: Arrival, go: () => void): void {
    const { socket, settle } = arrival;
    const cancel = this.#options.clock.after(this.#limits.helloMs, () => socket.destroy());
    const stop = awaitClientHello(socket, (isHello) => {
      cancel();
      arrival.settle = settle;
      if (!isHello) return socket.destroy();
      this.#place(arrival, this.#waiting);
      return socket.destroyed ? undefined : go();
    });
    arrival.settle = () => {
      cancel();
      stop();
      settle();
    };
  }

  #followRequests(server: Server): void {
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      const arrival = this.#arrivals.get(endOf(socket));
      if (arrival === undefined) return;
      this.proved(socket);
      arrival.busy += 1;
      response.once('close', () => {
        arrival.busy -= 1;
        if (arrival.busy === 0 && !arrival.socket.destroyed) this.#place(arrival, this.#waiting);
      });
    });
  }
}

/** Whose places are counted together: an address, or the network of an IPv6 address, of which each host has very many. */
export function groupOf(address: string): string {
  const parsed = parseAddress(address);
  return parsed?.family === 6 ? `${parsed.value >> NETWORK_BITS}` : address;
}

const NETWORK_BITS = 64n;

/** A socket that listens for both families shows an IPv4 peer as `::ffff:10.0.0.1`; people look for the second half. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=[0-9.]+$)/iu, '');

/** The other end, as people write it. */
export function endOf({
  remoteAddress = '',
  remotePort = 0,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  const address = plainAddress(remoteAddress);
  return address.includes(':') ? `[${address}]:${remotePort}` : `${address}:${remotePort}`;
}
