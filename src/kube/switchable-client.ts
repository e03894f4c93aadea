import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';
import type {
  CallOptions,
  DeleteOptions,
  KubeClient,
  ListOptions,
  ObjectList,
  ObjectRef,
  PatchBody,
  RawRequest,
  RawResponse,
  WatchEvent,
  WatchOptions,
} from './client.ts';

type DraftOf<T extends KubeObject> = Parameters<KubeClient['create']>[1] & Omit<T, 'metadata'>;

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

  /** Hands over to another client; what still runs on the old one ends as Unreachable and is begun anew. */
  async use(next: KubeClient | undefined, absence = 'no credential'): Promise<void> {
    const before = this.#delegate;
    this.#delegate = next;
    this.#absence = absence;
    await before?.close();
  }

  get #current(): KubeClient {
    if (this.#delegate === undefined) throw new TributaryError('Unauthorized', this.#absence);
    return this.#delegate;
  }

  async get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: CallOptions): Promise<T> {
    return this.#current.get(type, ref, options);
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>> {
    return this.#current.list(type, options);
  }

  async *pages<T extends KubeObject>(
    type: ResourceType<T>,
    options?: ListOptions,
  ): AsyncGenerator<ObjectList<T>, void, undefined> {
    yield* this.#current.pages(type, options);
  }

  async create<T extends KubeObject>(
    type: ResourceType<T>,
    body: DraftOf<T>,
    options?: CallOptions,
  ): Promise<T> {
    return this.#current.create<T>(type, body, options);
  }

  async replace<T extends KubeObject>(type: ResourceType<T>, body: T, options?: CallOptions): Promise<T> {
    return this.#current.replace(type, body, options);
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    patch: PatchBody,
    options?: CallOptions,
  ): Promise<T> {
    return this.#current.patch(type, ref, patch, options);
  }

  async delete<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options?: DeleteOptions,
  ): Promise<void> {
    await this.#current.delete(type, ref, options);
  }

  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    yield* this.#current.watch(type, options);
  }

  async raw(request: RawRequest): Promise<RawResponse> {
    return this.#current.raw(request);
  }

  async close(): Promise<void> {
    await this.use(undefined, 'closed');
  }
}
