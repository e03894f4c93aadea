/** How much streams may take, and how long things may last. */
export interface ReachLimits {
  /** Streams of one peer, in each direction of lending. */
  streamsPerPeer: number;
  /** Streams of all peers together, likewise. */
  streams: number;
  /** Until a stream to the other side stands, or an unused dial id is void. Milliseconds. */
  connectMs: number;
  /** For one attempt to dial a peer while it could be asked to dial back instead. Milliseconds. */
  directMs: number;
  /** For so long a peer that could not be dialled is asked to dial back first. Milliseconds. */
  avoidDirectMs: number;
  /** Between two signs of life on each stream. Milliseconds. */
  beatMs: number;
  /** A stream from which nothing came for so long is dead. Milliseconds. */
  deadMs: number;
}

export const DEFAULT_LIMITS: ReachLimits = {
  streamsPerPeer: 64,
  streams: 1024,
  connectMs: 10_000,
  directMs: 3_000,
  avoidDirectMs: 60_000,
  beatMs: 8_000,
  deadMs: 20_000,
};
