/**
 * Who has which WireGuard key. WireGuard knows peers by their keys alone: with the key of another, or with ours, one
 * peer would take the other's addresses away. Who comes first has it.
 */
export class KeyClaims {
  readonly #owners = new Map<string, string>();
  readonly #keys = new Map<string, string>();

  /** Whether the key is, or has become, that cluster's; what it had before is free again. */
  claim(clusterID: string, publicKey: string): boolean {
    const owner = this.#owners.get(publicKey);
    if (owner !== undefined && owner !== clusterID) return false;
    this.release(clusterID);
    this.#owners.set(publicKey, clusterID);
    this.#keys.set(clusterID, publicKey);
    return true;
  }

  release(clusterID: string): void {
    const key = this.#keys.get(clusterID);
    if (key !== undefined) this.#owners.delete(key);
    this.#keys.delete(clusterID);
  }
}
