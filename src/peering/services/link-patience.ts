import type { Clock } from '../../lib/clock.ts';

/** If a link comes back within this time, nothing changes. */
export const PATIENCE_MS = 60_000;

/** Whether a peer has been without a link for too long. */
export class LinkPatience {
  readonly #clock: Clock;
  readonly #ended: (clusterID: string) => void;
  /** By ClusterID, what ends the wait; undefined: the wait is over. */
  readonly #waits = new Map<string, (() => void) | undefined>();

  /** @param ended called when a peer has been without a link for PATIENCE_MS */
  constructor(clock: Clock, ended: (clusterID: string) => void) {
    this.#clock = clock;
    this.#ended = ended;
  }

  note(clusterID: string, isLinked: boolean): void {
    if (isLinked) {
      this.forget(clusterID);
      return;
    }
    if (this.#waits.has(clusterID)) return;
    const cancel = this.#clock.after(PATIENCE_MS, () => {
      this.#waits.set(clusterID, undefined);
      this.#ended(clusterID);
    });
    this.#waits.set(clusterID, cancel);
  }

  isOver(clusterID: string): boolean {
    return this.#waits.has(clusterID) && this.#waits.get(clusterID) === undefined;
  }

  forget(clusterID: string): void {
    this.#waits.get(clusterID)?.();
    this.#waits.delete(clusterID);
  }

  stop(): void {
    for (const clusterID of this.#waits.keys()) this.forget(clusterID);
  }
}
