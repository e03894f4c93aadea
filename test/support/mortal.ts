import type { KubeClient } from '../../src/kube/client.ts';
import { TributaryError } from '../../src/lib/errors.ts';

/** Lets a number of writes through. At the next one the process is dead, as the API server sees it. */
export function mortal(client: KubeClient, writesLeft: number): { client: KubeClient; died: () => boolean } {
  let left = writesLeft;
  const writing: ReadonlySet<string | symbol> = new Set(['create', 'replace', 'patch', 'delete']);
  const proxy = new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (writing.has(name) && left-- <= 0) {
          return Promise.reject(new TributaryError('Unreachable', 'killed'));
        }
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return { client: proxy, died: () => left < 0 };
}
