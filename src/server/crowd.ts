/**
 * Connections that wait, of which there may be too many. Then the oldest one of the address with the most of them goes: the
 * newest may be the one that is meant honestly, and whoever fills the place from a few addresses crowds out only themselves.
 */
export class Crowd {
  readonly #most: number;
  /** What ends each connection, in the order of arrival, by group. */
  readonly #groups = new Map<string, Set<() => void>>();
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** The returned function leaves; leaving twice is harmless. `end` is called at most once, and not after that. */
  enter(group: string, end: () => void): () => void {
    const members = this.#groups.get(group) ?? new Set();
    this.#groups.set(group, members);
    // A function of its own, so that the same one can be here twice.
    const member = (): void => end();
    members.add(member);
    this.#size += 1;
    if (this.#size > this.#most) this.#endOne();
    return () => this.#leave(group, member);
  }

  #endOne(): void {
    let [largest, size] = ['', 0];
    for (const [group, members] of this.#groups) {
      if (members.size > size) [largest, size] = [group, members.size];
    }
    const [oldest] = this.#groups.get(largest) ?? [];
    if (oldest === undefined) return;
    this.#leave(largest, oldest);
    oldest();
  }

  #leave(group: string, member: () => void): void {
    const members = this.#groups.get(group);
    if (members?.delete(member) !== true) return;
    this.#size -= 1;
    if (members.size === 0) this.#groups.delete(group);
  }
}
