import type { Clock } from '../../lib/clock.ts';

/** A link that is dialled again within this time is no news: what runs goes on. */
export const PATIENCE_MS = 60_000;

/** For how long a peer has been without a link. */
export class LinkPatience {
  readonly #clock: Clock;
  readonly #ended: (clusterID: string) => void;
  /** What ends the wait; undefined: it is over. */
  readonly #waits = new Map<string, (() => void) | undefined>();

  /** `ended` is called when the patience with a peer is over. */
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
