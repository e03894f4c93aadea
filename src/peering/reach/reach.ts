import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import type { ApiReach, PeerIdentity, PeerLinks } from '../ports.ts';
import type { ReachLimits } from './limits.ts';

/**
 * Opens a WebSocket at a peer's endpoint (`host:port`), mutual TLS, pinned to the ClusterID. The socket is paused
 * in its `open` listener: the other side may speak at once, and a message before somebody listens would be lost.
 */
export type DialStream = (
  target: { clusterID: string; endpoint: string; path: string },
  signal: AbortSignal,
) => Promise<WebSocket>;

export interface ReachOptions {
  links: Pick<PeerLinks, 'view' | 'call'>;
  dial: DialStream;
  /** We as provider: whether that peer's grant is Active now. */
  mayReach: (clusterID: string) => boolean;
  /** We as provider: our own API server; nothing else is ever connected to. */
  apiServer: () => { host: string; port: number };
  /** We as consumer: where local listeners are. */
  listen: {
    /** Address to listen on. */
    host: string;
    /** Under which agents reach it; default `host`. */
    advertised?: string;
    /** Inclusive; default: free ones. */
    ports?: { first: number; last: number };
  };
  limits?: Partial<ReachLimits>;
  clock: Clock;
  log: Logger;
}

/** Streams to API servers, both sides. */
export class Reach implements ApiReach, Component {
  readonly name = 'api reach';
  readonly #options: ReachOptions;

  constructor(options: ReachOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    return Promise.resolve();
  }

  async open(clusterID: string): Promise<{ server: string }> {
    return Promise.reject(new Error(`not yet: ${clusterID} ${this.#options.listen.host}`));
  }

  async close(_clusterID: string): Promise<void> {
    return Promise.resolve();
  }

  /** Whether an upgrade at `/v1/api` by that peer should be answered at all. */
  admits(_clusterID: string): boolean {
    return false;
  }

  /** A peer came to `/v1/api`: it wants our API server. */
  acceptApi(socket: WebSocket, _peer: PeerIdentity): void {
    socket.terminate();
  }

  /** Whether that peer was asked to dial back with this id. */
  expects(_clusterID: string, _stream: string): boolean {
    return false;
  }

  /** A peer came to `/v1/streams/<id>`, as we asked it to. */
  acceptStream(socket: WebSocket, _peer: PeerIdentity, _stream: string): void {
    socket.terminate();
  }

  /** The call `dial`: a peer that cannot dial us wants our API server. */
  async dialBack(_peer: PeerIdentity, _stream: string, _signal: AbortSignal): Promise<Record<string, never>> {
    return Promise.resolve({});
  }

  /** Cuts what that peer has of us, at once. */
  revoke(_clusterID: string): void {
    return undefined;
  }
}
