import { Listeners } from '../lib/listeners.ts';
import type { KubeClient } from './client.ts';

/**
 * An etcd that is restored from a backup has lost what was written since: objects vanish or come back, versions are given out a
 * second time. No answer of the API server says so. Whoever notices it tells it here, and everybody who remembers anything of
 * that server asks anew.
 */
const listeners = new WeakMap<KubeClient, Listeners<[reason: string]>>();

/** A client that stands before another one, by the one that it stands before. */
const originals = new WeakMap<KubeClient, KubeClient>();

/** Both ask the same server: what is told of one holds for the other. */
export function sharesHistory(wrapper: KubeClient, client: KubeClient): void {
  originals.set(wrapper, client);
}

const originalOf = (client: KubeClient): KubeClient => originals.get(client) ?? client;

/** Called when the server that this client asks has lost writes; the returned function ends that. */
export function onLostHistory(client: KubeClient, listener: (reason: string) => void): () => void {
  const original = originalOf(client);
  const known = listeners.get(original) ?? new Listeners<[reason: string]>();
  listeners.set(original, known);
  return known.add(listener);
}

/** All caches that are filled through this client list again, and take what they get, also if it is older. */
export function tellLostHistory(client: KubeClient, reason: string): void {
  listeners.get(originalOf(client))?.tell(reason);
}
