import { networkProof, provesNetworkKey } from '../identity/network-key.ts';
import { type Hello, PROTOCOLS } from '../protocol/documents.ts';

/** What we tell every peer about ourselves. */
export interface SelfDescription {
  clusterName: string;
  /** Version of the program. */
  software: string;
  /** Where peers can dial us, as `host:port`; empty if they cannot. */
  endpoints: readonly string[];
}

export interface NetworkKey {
  /** Name of the Secret that holds the key. */
  name: string;
  key: Uint8Array;
}

export interface HelloOptions {
  self: () => SelfDescription;
  networkKeys: () => readonly NetworkKey[];
  /** Protocol versions that we speak; only tests set them. */
  protocols?: readonly number[];
}

/** A hello has room for the proofs of this many keys. */
const MAX_PROOFS = 8;
const MAX_ENDPOINTS = 8;

/** Makes our hello to one peer. */
export function helloTo(peer: string, own: string, options: HelloOptions): Hello {
  const { clusterName, software, endpoints } = options.self();
  return {
    clusterName: clusterName.slice(0, 128),
    protocols: [...(options.protocols ?? PROTOCOLS)],
    software: software.slice(0, 64),
    endpoints: endpoints.slice(0, MAX_ENDPOINTS),
    networkProofs: options
      .networkKeys()
      .slice(0, MAX_PROOFS)
      .map(({ key }) => networkProof(key, own, peer)),
  };
}

/** The highest version that both sides speak. */
export function commonProtocol(ours: readonly number[], theirs: readonly number[]): number | undefined {
  const common = ours.filter((version) => theirs.includes(version));
  return common.length === 0 ? undefined : Math.max(...common);
}

/** The names of those of our keys that the peer has proved to hold too. */
export function provedKeys(
  proofs: readonly string[],
  keys: readonly NetworkKey[],
  { peer, own }: { peer: string; own: string },
): string[] {
  return keys
    .filter(({ key }) => proofs.some((proof) => provesNetworkKey(proof, key, { from: peer, to: own })))
    .map(({ name }) => name);
}
