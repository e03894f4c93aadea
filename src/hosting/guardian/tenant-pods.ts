import { pods } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { KubeClient, ListOptions, ObjectList, WatchEvent, WatchOptions } from '../../kube/client.ts';
import type { PodMemory } from './pod-memory.ts';
import { slimPod } from './slim-pod.ts';
import type { Mutex } from './mutex.ts';

/**
 * As JSON, a pod of a peer has up to 4 MiB: the API server takes requests of 3 MiB and adds defaults. With the default page size
 * of the client, an answer could be longer than the client accepts.
 */
const PAGE = 10;

interface TenantPodsOptions {
  client: KubeClient;
  namespace: string;
  memory: PodMemory;
  /** One page at a time, of all peers, is in memory as received. */
  bulkMutex: Mutex;
  /** One list at a time for each peer: others would only delay it, until its continue token has expired. */
  listMutex: Mutex;
  /** Whether the informer has this pod already. */
  isKnown: (name: string) => boolean;
  /** A list of these names is complete; the informer will have it in a moment. */
  listed: (names: ReadonlySet<string>) => void;
}

/**
 * A client for an informer of a tenant's pods. It returns slim pods, and gives their bodies to the memory, which keeps those for
 * which there is room. The informer's own transform would come too late: the informer first has all pages of a list in memory.
 */
export function slimPodsClient(options: TenantPodsOptions): KubeClient {
  const { client } = options;
  return {
    get: client.get.bind(client),
    list: client.list.bind(client),
    create: client.create.bind(client),
    replace: client.replace.bind(client),
    patch: client.patch.bind(client),
    delete: client.delete.bind(client),
    raw: client.raw.bind(client),
    close: client.close.bind(client),
    pages: <T extends KubeObject>(_type: ResourceType<T>, list: ListOptions = {}) =>
      pages(options, list) as unknown as AsyncIterable<ObjectList<T>>,
    watch: <T extends KubeObject>(_type: ResourceType<T>, watch: WatchOptions) =>
      events(options, watch) as unknown as AsyncIterable<WatchEvent<T>>,
  };
}

async function* pages(
  options: TenantPodsOptions,
  list: ListOptions,
): AsyncGenerator<ObjectList<Pod>, void, undefined> {
  const { client, namespace, memory, bulkMutex, listMutex, isKnown } = options;
  const { signal } = list;
  const seen = new Set<string>();
  const unlock = await listMutex.lock(signal);
  try {
    const source = client.pages(pods, { ...list, limit: PAGE })[Symbol.asyncIterator]();
    const next = async (): Promise<ObjectList<Pod> | undefined> => {
      const { value, done } = await source.next();
      if (done === true) return undefined;
      const items = value.items.map((pod) => {
        seen.add(pod.metadata.name);
        memory.listed(pod);
        return slimPod(pod);
      });
      return { ...value, items };
    };
    let page = await bulkMutex.run(next, signal);
    for (; page !== undefined; page = await bulkMutex.run(next, signal)) yield page;
    memory.onlyThose(namespace, (name) => seen.has(name) || isKnown(name));
    options.listed(seen);
  } finally {
    unlock();
  }
}

async function* events(
  { client, memory }: TenantPodsOptions,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<Pod>, void, undefined> {
  for await (const event of client.watch(pods, options)) {
    if (event.type === 'BOOKMARK') {
      yield event;
      continue;
    }
    const { type, object } = event;
    if (type === 'DELETED') memory.ended(object);
    else memory.changed(object);
    yield { type, object: slimPod(object) };
  }
}
