/**
 * What each peer said last, by its ClusterID. `Word` has a field for each kind of document: absent while the peer has not
 * said anything of that kind, null once it has said that there is none. Further fields note what became of it.
 *
 * Kept in memory only. A restart loses it without harm: a peer says everything again on every new link, and until it
 * does, what is stored in Kubernetes objects stands.
 */
export class LastWords<Word extends object> {
  readonly #words = new Map<string, Partial<Word>>();

  of(clusterID: string): Partial<Word> {
    return this.#words.get(clusterID) ?? {};
  }

  ids(): Iterable<string> {
    return this.#words.keys();
  }

  entries(): Iterable<[string, Partial<Word>]> {
    return this.#words.entries();
  }

  /** Fields that `news` does not name stay as they were. */
  update(clusterID: string, news: Partial<Word>): void {
    this.#words.set(clusterID, { ...this.of(clusterID), ...news });
  }

  replace(clusterID: string, word: Partial<Word>): void {
    this.#words.set(clusterID, word);
  }

  forget(clusterID: string): void {
    this.#words.delete(clusterID);
  }
}
