import { readFile } from 'node:fs/promises';
import { configMaps } from '../api/resources.ts';
import type { ConfigMap } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { Source } from '../lib/source.ts';
import { Variable } from '../lib/source.ts';

const NAMESPACE = 'kube-system';
const NAME = 'extension-apiserver-authentication';

/** The authorities that sign the API server's own client certificate, as every cluster publishes them. */
export class ClientAuthorities implements Component {
  readonly name = 'client-authorities';
  readonly #informer: Informer<ConfigMap>;
  readonly #bundle = new Variable('');

  constructor({ home, clock, log }: { home: KubeClient; clock: Clock; log: Logger }) {
    this.#informer = new Informer({
      client: home,
      type: configMaps,
      list: { namespace: NAMESPACE, fieldSelector: `metadata.name=${NAME}` },
      clock,
      log,
    });
  }

  get source(): Source<string> {
    return this.#bundle;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#informer.onChange((_key, current) => {
      const bundle = current?.data?.['client-ca-file'] ?? '';
      if (bundle !== this.#bundle.current()) this.#bundle.set(bundle);
    });
    await this.#informer.start(signal);
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
  }
}

/** The same from a file, for an agent outside the cluster. */
export const authoritiesFromFile = async (path: string): Promise<Source<string>> =>
  new Variable(await readFile(path, 'utf8'));
