import type { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import type { KeyPair, Source } from '../../lib/source.ts';

/** Who is at the other end of a connection, proved by TLS. */
export interface Caller {
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

export interface PeeringEndpointOptions {
  /** Default all addresses, IPv4 and IPv6. */
  host?: string;
  /** 0 takes a free one. */
  port: number;
  certificate: Source<KeyPair>;
  /** Who presented this chain of certificates; throws what is wrong with it. */
  verify: (socket: Pick<TLSSocket, 'getPeerX509Certificate'>) => Caller;
  handlers: PeeringHandlers;
  /** Callers that we deal with. The others share a small part of the places. */
  isKnown: (clusterID: string) => boolean;
  clock: Clock;
  log: Logger;
}

/** Where peers reach this cluster: mutual TLS, then WebSockets. */
export class PeeringEndpoint implements Component {
  readonly name = 'peering endpoint';
  readonly #options: PeeringEndpointOptions;

  constructor(options: PeeringEndpointOptions) {
    this.#options = options;
  }

  /** The port that is listened on; undefined unless started. */
  get port(): number | undefined {
    return this.#options.port;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
  }

  async stop(): Promise<void> {}
}
