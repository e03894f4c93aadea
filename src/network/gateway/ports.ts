/** What the gateway wants of others; src/agent/gateway.ts hands it over. */
import type { ProbeResult, ProbeTarget } from '../probe/peer-probe.ts';

/** src/network/probe/prober.ts. */
export interface TunnelProber {
  setTargets(targets: readonly ProbeTarget[]): void;
  results(): ReadonlyMap<string, ProbeResult>;
  onChange(listener: (clusterID: string) => void): () => void;
}

/** src/network/probe/responder.ts. */
export interface ProbeResponder {
  setAddress(address: string | undefined): void;
}

/** One peer, as it is measured; what is absent is not known. */
export interface TunnelSample {
  up: boolean;
  receivedBytes?: number;
  sentBytes?: number;
  /** Seconds since 1970. */
  handshake?: number;
  rttSeconds?: number;
  /** From 0 to 1. */
  loss?: number;
  /** Bytes. */
  mtu?: number;
  /** Since the host's rules for the peer changed last. */
  refusedPackets?: number;
}

/** Where measurements are shown; an adapter to a metrics library lives elsewhere. */
export interface TunnelMetrics {
  /** By ClusterID; who is not in it any more is forgotten. */
  show(samples: ReadonlyMap<string, TunnelSample>): void;
}
