import { readFile } from 'node:fs/promises';
import { configMaps } from '../api/resources.ts';
import type { ConfigMap } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Source } from '../lib/source.ts';
import { Variable } from '../lib/source.ts';

const NAMESPACE = 'kube-system';
const NAME = 'extension-apiserver-authentication';

/** The authorities that sign the API server's own client certificate, as every cluster publishes them. */
export class ClientAuthorities implements Component {
  readonly name = 'client-authorities';
  readonly #cache: Cache<ConfigMap>;
  readonly #bundle = new Variable('');

  constructor(caches: Caches) {
    const list = { namespace: NAMESPACE, fieldSelector: `metadata.name=${NAME}` };
    this.#cache = caches.of(configMaps, { list });
  }

  get source(): Source<string> {
    return this.#bundle;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#cache.onChange((_key, current) => {
      const bundle = current?.data?.['client-ca-file'] ?? '';
      if (bundle !== this.#bundle.current()) this.#bundle.set(bundle);
    });
    await this.#cache.start(signal);
  }

  async stop(): Promise<void> {
    await this.#cache.stop();
  }
}

/** The same from a file, for an agent outside the cluster. */
export const authoritiesFromFile = async (path: string): Promise<Source<string>> =>
  new Variable(await readFile(path, 'utf8'));
