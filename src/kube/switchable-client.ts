import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';
import type { KubeClient, ListOptions, ObjectList, WatchEvent, WatchOptions } from './client.ts';

/**
 * A client whose server or credential may change under its users: they keep this one for good. Without a delegate
 * every call fails as Unauthorized with the reason given, which informers survive.
 */
export class SwitchableClient implements KubeClient {
  #delegate: KubeClient | undefined;
  #absence: string;

  constructor(absence: string) {
    this.#absence = absence;
  }

  readonly get: KubeClient['get'] = async (...args) => this.#current.get(...args);
  readonly list: KubeClient['list'] = async (...args) => this.#current.list(...args);
  readonly create: KubeClient['create'] = async (...args) => this.#current.create(...args);
  readonly replace: KubeClient['replace'] = async (...args) => this.#current.replace(...args);
  readonly patch: KubeClient['patch'] = async (...args) => this.#current.patch(...args);
  readonly delete: KubeClient['delete'] = async (...args) => this.#current.delete(...args);
  readonly raw: KubeClient['raw'] = async (...args) => this.#current.raw(...args);

  async *pages<T extends KubeObject>(
    type: ResourceType<T>,
    options?: ListOptions,
  ): AsyncGenerator<ObjectList<T>, void, undefined> {
    yield* this.#current.pages(type, options);
  }

  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    yield* this.#current.watch(type, options);
  }

  /** Hands over to another client; what still runs on the old one ends as Unreachable and is begun anew. */
  async use(next: KubeClient | undefined, absence = 'no credential'): Promise<void> {
    const before = this.#delegate;
    this.#delegate = next;
    this.#absence = absence;
    await before?.close();
  }

  async close(): Promise<void> {
    await this.use(undefined, 'closed');
  }

  get #current(): KubeClient {
    if (this.#delegate === undefined) throw new TributaryError('Unauthorized', this.#absence);
    return this.#delegate;
  }
}
