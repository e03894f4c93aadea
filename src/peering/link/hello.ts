import { networkProof, provesNetworkKey } from '../identity/network-key.ts';
import type { Hello } from '../protocol/documents.ts';
import { PROTOCOLS } from '../protocol/documents.ts';

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

export interface HelloOptions {
  self: () => SelfDescription;
  networkKeys: () => readonly NetworkKey[];
  /** Versions that we speak; other ones in tests only. */
  protocols?: readonly number[];
}

/** As many keys as a hello has room for. */
const MAX_PROOFS = 8;
const MAX_ENDPOINTS = 8;

/** Our hello to one peer. */
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

/** The highest version that both speak. */
export function commonProtocol(ours: readonly number[], theirs: readonly number[]): number | undefined {
  const common = ours.filter((version) => theirs.includes(version));
  return common.length === 0 ? undefined : Math.max(...common);
}

/** Names of our keys that the peer has proved to hold as well. */
export function provedKeys(
  proofs: readonly string[],
  keys: readonly NetworkKey[],
  { peer, own }: { peer: string; own: string },
): string[] {
  return keys
    .filter(({ key }) => proofs.some((proof) => provesNetworkKey(proof, key, { from: peer, to: own })))
    .map(({ name }) => name);
}
