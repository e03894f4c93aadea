/** As much of an API server as certificate requests need: it stores them, and tells who waits. */
import type { CertificateSigningRequest } from '../../../../src/api/wire.ts';
import type { KubeClient, WatchEvent } from '../../../../src/kube/client.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';

type Csr = CertificateSigningRequest;

export class CsrStore {
  readonly objects: Map<string, Csr> = new Map();
  /** Fails the next calls with these, in turn. */
  readonly failures: Error[] = [];
  readonly #changed = new Set<() => void>();
  readonly #events: WatchEvent<Csr>[] = [];
  #version = 0;

  put(csr: Csr): Csr {
    this.#version += 1;
    const stored = structuredClone(csr);
    stored.metadata.resourceVersion = String(this.#version);
    const type = this.objects.has(csr.metadata.name) ? 'MODIFIED' : 'ADDED';
    this.objects.set(csr.metadata.name, stored);
    this.#events.push({ type, object: stored });
    this.#wake();
    return stored;
  }

  delete(name: string): void {
    this.objects.delete(name);
    this.#wake();
  }

  /** Resolves as soon as `found` finds something in the store. */
  async until<Found>(found: (store: CsrStore) => Found | undefined): Promise<Found> {
    for (;;) {
      const result = found(this);
      if (result !== undefined) return result;
      await this.change();
    }
  }

  async change(): Promise<void> {
    return new Promise<void>((resolve) => {
      const once = (): void => {
        this.#changed.delete(once);
        resolve();
      };
      this.#changed.add(once);
    });
  }

  #wake(): void {
    for (const listener of this.#changed) listener();
  }

  #fail(): void {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
  }

  /** Only what the components under test call. */
  client(): KubeClient {
    const client = {
      create: async (_type: unknown, body: Csr) => {
        this.#fail();
        const { generateName = '' } = body.metadata as { generateName?: string };
        const name = `${generateName}${this.#version}`;
        return this.put({ ...body, metadata: { ...body.metadata, name, uid: name, creationTimestamp: '' } });
      },
      get: async (_type: unknown, { name }: { name: string }) => {
        this.#fail();
        const found = this.objects.get(name);
        if (found === undefined) throw new TributaryError('NotFound', 'not found');
        return structuredClone(found);
      },
      list: async () => {
        this.#fail();
        return { resourceVersion: String(this.#version), items: [...this.objects.values()] };
      },
      replace: async (_type: unknown, body: Csr, options: { subresource?: string }) => {
        this.#fail();
        if (options.subresource !== 'approval') throw new Error('only the approval may be written');
        const current = this.objects.get(body.metadata.name);
        if (current?.metadata.resourceVersion !== body.metadata.resourceVersion) {
          throw new TributaryError('Conflict', 'changed since');
        }
        return this.put(body);
      },
      watch: (_type: unknown, options: { resourceVersion: string; signal: AbortSignal }) =>
        this.#watch(options),
    };
    return client as unknown as KubeClient;
  }

  async *#watch({
    resourceVersion,
    signal,
  }: {
    resourceVersion: string;
    signal: AbortSignal;
  }): AsyncGenerator<WatchEvent<Csr>> {
    let next = Number(resourceVersion);
    for (;;) {
      const event = this.#events[next];
      if (event !== undefined) {
        next += 1;
        yield event;
        continue;
      }
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      await Promise.race([this.change(), promise]);
    }
  }
}
