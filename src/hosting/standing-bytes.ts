import type { KubeObject } from '../api/wire.ts';
import { refOf } from '../kube/store.ts';
import { versionBytes } from './peer-writes.ts';

/** How large the objects are that a cache holds, over namespaces; as its watch tells. */
export class StandingBytes {
  readonly #mostBytes: number;
  readonly #sizes = new Map<string, number>();
  readonly #sums = new Map<string, number>();

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get mostBytes(): number {
    return this.#mostBytes;
  }

  /** To be called for each change of the cache. */
  note(key: string, current: KubeObject | undefined): void {
    const { namespace = '' } = refOf(key);
    const bytes = current === undefined ? 0 : versionBytes(current);
    const sum = (this.#sums.get(namespace) ?? 0) + bytes - this.#of(key);
    if (current === undefined) this.#sizes.delete(key);
    else this.#sizes.set(key, bytes);
    if (sum === 0) this.#sums.delete(namespace);
    else this.#sums.set(namespace, sum);
  }

  /** Whether there is room in these namespaces for that object to have that size. What shrinks always fits. */
  fits(namespaces: readonly string[], key: string, bytes: number): boolean {
    const more = bytes - this.#of(key);
    const sum = namespaces.reduce((all, name) => all + (this.#sums.get(name) ?? 0), 0);
    return more <= 0 || sum + more <= this.#mostBytes;
  }

  #of(key: string): number {
    return this.#sizes.get(key) ?? 0;
  }
}
