import type { webcrypto } from 'node:crypto';
import type { Component } from '../../lib/lifecycle.ts';
import type { OwnIdentity, SignaturePurpose } from '../ports.ts';
import type { Identity } from './identity.ts';
import { loadIdentity } from './store.ts';
import type { IdentityStoreOptions } from './store.ts';

/** The identity of this cluster, for a composition that is written before anything has been read. */
export class ClusterIdentity implements OwnIdentity, Component {
  readonly name = 'identity';
  readonly #options: IdentityStoreOptions;
  #loaded: Identity | undefined;

  constructor(options: IdentityStoreOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#loaded = await loadIdentity(this.#options, signal);
  }

  get clusterID(): string {
    return this.#identity.clusterID;
  }

  get publicKey(): Uint8Array {
    return this.#identity.publicKey;
  }

  sign(purpose: SignaturePurpose, text: string): string {
    return this.#identity.sign(purpose, text);
  }

  certificateKeys(): webcrypto.CryptoKeyPair {
    return this.#identity.certificateKeys();
  }

  get #identity(): Identity {
    if (this.#loaded === undefined) throw new Error('the identity is used before it was loaded');
    return this.#loaded;
  }
}
