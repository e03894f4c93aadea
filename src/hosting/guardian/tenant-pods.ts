import { pods } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { KubeClient, ListOptions, ObjectList, WatchEvent, WatchOptions } from '../../kube/client.ts';
import type { PodMemory } from './pod-memory.ts';
import { slimPod } from './slim-pod.ts';
import type { Mutex } from './mutex.ts';

/**
 * As JSON, a pod of a peer has 4 MiB at most: the API server takes requests of 3 MiB and adds defaults. A page of the
 * client's own size would be longer than any answer that it reads.
 */
const PAGE = 10;

export interface TenantPodsOptions {
  client: KubeClient;
  namespace: string;
  holdings: PodMemory;
  /** Of all peers, one page at a time is in memory as it came. */
  bulkTurns: Mutex;
  /** One list at a time of each peer: its others would only keep it from its end, before what it continues from has expired. */
  listTurns: Mutex;
  /** Whether an Informer has it already. */
  isKnown: (name: string) => boolean;
  /** A list is complete, of these names; the Informer has it in a moment. */
  listed: (names: ReadonlySet<string>) => void;
}

/**
 * For an Informer of a tenant's pods: it is given outlines; bodies go to the holdings, which may not keep them. An
 * Informer's own transform would come too late: it has all pages of a list in memory first.
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
  const { client, namespace, holdings, bulkTurns, listTurns, isKnown } = options;
  const { signal } = list;
  const seen = new Set<string>();
  const end = await listTurns.take(signal);
  try {
    const source = client.pages(pods, { ...list, limit: PAGE })[Symbol.asyncIterator]();
    const next = async (): Promise<ObjectList<Pod> | undefined> => {
      const { value, done } = await source.next();
      if (done === true) return undefined;
      const items = value.items.map((pod) => {
        seen.add(pod.metadata.name);
        holdings.listed(pod);
        return slimPod(pod);
      });
      return { ...value, items };
    };
    let page = await bulkTurns.run(next, signal);
    for (; page !== undefined; page = await bulkTurns.run(next, signal)) yield page;
    holdings.onlyThose(namespace, (name) => seen.has(name) || isKnown(name));
    options.listed(seen);
  } finally {
    end();
  }
}

async function* events(
  { client, holdings }: TenantPodsOptions,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<Pod>, void, undefined> {
  for await (const event of client.watch(pods, options)) {
    if (event.type === 'BOOKMARK') {
      yield event;
      continue;
    }
    const { type, object } = event;
    if (type === 'DELETED') holdings.ended(object);
    else holdings.changed(object);
    yield { type, object: slimPod(object) };
  }
}
