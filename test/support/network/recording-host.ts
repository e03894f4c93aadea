/** A host that only records: what was set last, and what was removed. */
import type {
  HostConfig,
  HostNetwork,
  HostReport,
  Owner,
  WireGuardPeerState,
} from '../../../src/network/host/host-config.ts';

export class RecordingHost implements HostNetwork {
  readonly sets: HostConfig[] = [];
  readonly cleaned: Owner[] = [];
  /** State of the links, as `wg show` would print it. */
  peers: WireGuardPeerState[] = [];
  problems: HostReport['problems'] = [];
  isUnfiltered = false;
  /** Of others. */
  routes: string[] = [];
  closed = false;
  /** What each `set` waits for. */
  free: Promise<void> = Promise.resolve();
  readonly #listeners = new Set<() => void>();

  async set(config: HostConfig): Promise<HostReport> {
    this.sets.push(structuredClone(config));
    await this.free;
    return { changes: 0, problems: this.problems, ...(this.isUnfiltered && { isUnfiltered: true }) };
  }

  get last(): HostConfig | undefined {
    return this.sets.at(-1);
  }

  async cleanUp(owner: Owner): Promise<void> {
    this.cleaned.push(owner);
    return Promise.resolve();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Somebody has changed the host. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  async wireguardPeers(): Promise<WireGuardPeerState[]> {
    return Promise.resolve(this.peers);
  }

  async pathMtu(): Promise<number | undefined> {
    return Promise.resolve(undefined);
  }

  async localRoutes(): Promise<string[]> {
    return Promise.resolve(this.routes);
  }

  close(): void {
    this.closed = true;
  }
}
