import type { WebSocket } from 'ws';

/** How many streams there may be, and how long things may take. */
export interface ReachLimits {
  /** Streams of one peer, in each direction of lending. */
  streamsPerPeer: number;
  /** Streams of all peers together, likewise. */
  streams: number;
  /** Streams to one peer that are made at the same time; the others wait, within `connectMs`. */
  dialsPerPeer: number;
  /** Time to make a stream on both sides; an unused dial id is void after it. Milliseconds. */
  connectMs: number;
  /** Time to dial a peer, at all its endpoints, where it could be asked to dial back instead. Milliseconds. */
  directMs: number;
  /** For this time a peer that could not be dialled is asked first to dial back. Milliseconds. */
  avoidDirectMs: number;
  /** Between two signs of life on each stream. Milliseconds. */
  beatMs: number;
  /** A stream that was silent for so many beats is dead: it is cut one beat later at the latest. */
  silentBeats: number;
}

export const DEFAULT_LIMITS: ReachLimits = {
  streamsPerPeer: 64,
  streams: 512,
  dialsPerPeer: 8,
  connectMs: 10_000,
  directMs: 4_000,
  avoidDirectMs: 60_000,
  beatMs: 7_000,
  silentBeats: 3,
};

/** Where the local listeners are, so that a NetworkPolicy can speak of them: one port for each provider in use. */
export const REACH_PORTS = { first: 17_600, last: 17_855 } as const;

/** What is needed of the links. */
export interface ReachPeers {
  isLinked(clusterID: string): boolean;
  /** `host:port` at which that peer was or may be reached, the most promising first. */
  endpoints(clusterID: string): readonly string[];
  /** The call `dial`: asks that peer to come to `/v1/streams/<id>`; resolves when it has tried. */
  askDial(clusterID: string, stream: string, signal: AbortSignal): Promise<unknown>;
  /**
   * Opens a WebSocket there, mutual TLS, pinned to the ClusterID, without compression. It is paused in its `open`
   * listener: the other side may speak at once, and a message before somebody listens would be lost.
   */
  dial(
    target: { clusterID: string; endpoint: string; path: string },
    signal: AbortSignal,
  ): Promise<WebSocket>;
}

/** Where the listeners are, and the address under which agents reach them (default: the same). */
export interface ReachAddress {
  host: string;
  advertised?: string;
}
