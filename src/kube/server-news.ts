/** What somebody finds out about an API server, told to everybody who asks it through the same client. */
import { Listeners } from '../lib/listeners.ts';
import type { KubeClient } from './client.ts';

class News<A extends unknown[]> {
  readonly #listeners = new WeakMap<KubeClient, Listeners<A>>();

  on(client: KubeClient, listener: (...news: A) => void): () => void {
    const original = originalOf(client);
    const known = this.#listeners.get(original) ?? new Listeners<A>();
    this.#listeners.set(original, known);
    return known.add(listener);
  }

  tell(client: KubeClient, ...news: A): void {
    this.#listeners.get(originalOf(client))?.tell(...news);
  }
}

/** A client that stands before another one, by the one that it stands before. */
const originals = new WeakMap<KubeClient, KubeClient>();

const originalOf = (client: KubeClient): KubeClient => originals.get(client) ?? client;

/** Both ask the same server: what is told of one holds for the other. */
export function sharesServer(wrapper: KubeClient, client: KubeClient): void {
  originals.set(wrapper, client);
}

const lostHistory = new News<[reason: string]>();
const answers = new News<[]>();

/**
 * Called when the server that this client asks has lost writes; the returned function ends that. An etcd that is restored from
 * a backup has lost what was written since: objects vanish or come back, versions are given out a second time. No answer of the
 * API server says so.
 */
export const onLostHistory = (client: KubeClient, listener: (reason: string) => void): (() => void) =>
  lostHistory.on(client, listener);

/** All caches that are filled through this client list again, and take what they get, also if it is older. */
export const tellLostHistory = (client: KubeClient, reason: string): void => lostHistory.tell(client, reason);

/** Called when the server that this client asks answers again after it was away; the returned function ends that. */
export const onAnswers = (client: KubeClient, listener: () => void): (() => void) =>
  answers.on(client, listener);

/** All caches that are filled through this client, and wait before they ask again, ask now. */
export const tellAnswers = (client: KubeClient): void => answers.tell(client);
