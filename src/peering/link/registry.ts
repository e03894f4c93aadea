import type { WebSocket } from 'ws';
import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import type { KeyPair, Source } from '../../lib/source.ts';
import type {
  BorrowingSide,
  DialProblem,
  DialTarget,
  LendingSide,
  LinkView,
  OwnIdentity,
  PeerIdentity,
  PeerLinks,
} from '../ports.ts';
import type { CallMethod, Calls } from '../protocol/documents.ts';

/** What we say of ourselves to every peer. */
export interface SelfDescription {
  clusterName: string;
  /** Version of the program. */
  software: string;
  /** Where we can be dialled, as `host:port`; empty where we cannot. */
  endpoints: readonly string[];
}

export interface NetworkKey {
  /** Of the Secret that holds it. */
  name: string;
  key: Uint8Array;
}

export interface LinkRegistryOptions {
  identity: OwnIdentity;
  /** Leaf and identity certificate, as from PeeringCertificate. */
  certificate: Source<KeyPair>;
  self: () => SelfDescription;
  networkKeys: () => readonly NetworkKey[];
  lending: LendingSide;
  borrowing: BorrowingSide;
  /** Call `dial` of a consumer: open `/v1/streams/<stream>` there and join it to our API server. */
  dialBack: (peer: PeerIdentity, params: Calls['dial']['params'], signal: AbortSignal) => Promise<void>;
  clock: Clock;
  random: Random;
  log: Logger;
}

/** All links to peers, at most one for each; dials those that are to be dialled. */
export class LinkRegistry implements PeerLinks, Component {
  readonly name = 'peering links';
  readonly #options: LinkRegistryOptions;

  constructor(options: LinkRegistryOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    throw new Error(`not implemented: ${this.#options.identity.clusterID}`);
  }

  async stop(): Promise<void> {}

  /** Handler of `/v1/link` at the endpoint; `from` is the address that the peer came from. */
  accept(_socket: WebSocket, _peer: PeerIdentity, _from: string): void {}

  /** Where that peer was or may be reached, the most promising first. */
  endpoints(_clusterID: string): readonly string[] {
    return [];
  }

  /** What we say of ourselves, or the network keys, may have changed. */
  describe(): void {}

  view(_clusterID: string): LinkView | undefined {
    return undefined;
  }

  views(): Iterable<LinkView> {
    return [];
  }

  problem(_targetName: string): DialProblem | undefined {
    return undefined;
  }

  setTargets(_targets: readonly DialTarget[]): void {}

  publish(_clusterID: string): void {}

  async call<Method extends CallMethod>(
    _clusterID: string,
    _method: Method,
    _params: Calls[Method]['params'],
    _signal?: AbortSignal,
  ): Promise<Calls[Method]['result']> {
    throw new Error('not implemented');
  }

  onChange(_listener: (key: { clusterID?: string; target?: string }) => void): () => void {
    return () => undefined;
  }
}
