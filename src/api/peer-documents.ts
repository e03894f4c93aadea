/** Documents of peers whose form two rooms share; the others are in src/peering/protocol/documents.ts. */
import type { HomeApiAddress } from './tunnel.ts';

/** One end of a tunnel, and how it sees the other. Prefixes are CIDRs without host bits. */
export interface NetworkDocument {
  /** Base64 of a Curve25519 public key (WireGuard). */
  publicKey: string;
  /** `host:port` (UDP) at which the sender's gateway can be dialled; empty where it cannot. */
  endpoints: string[];
  /** The sender's pods, in its own addresses. */
  pods: string[];
  /** The sender's external range, likewise. */
  external: string[];
  /** Prefixes of third clusters that the sender forwards for the receiver, in the sender's addresses. */
  transit: string[];
  /**
   * The prefixes of the receiver's last document, each with the prefix under which the sender sees it: `prefix` is the
   * receiver's, `as` the sender's, of the same length.
   */
  views: { prefix: string; as: string }[];
  /** Where the sender's pods at the receiver reach the sender's API server, in the sender's addresses. */
  apiServer?: HomeApiAddress;
  /** Pods of the receiver that run at the sender do not reach the receiver's API server: the sender's policy forbids it. */
  forbidsHomeApiServer?: boolean;
  /** Base64 of 32 random bytes. Where both sides send one, the preshared key is made of the two halves. */
  presharedHalf?: string;
}
