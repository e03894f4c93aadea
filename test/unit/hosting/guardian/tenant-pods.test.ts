import { expect, test } from '@jest/globals';
import { pods } from '../../../../src/api/resources.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { KubeClient, ListOptions, ObjectList, WatchEvent } from '../../../../src/kube/client.ts';
import { PodMemory } from '../../../../src/hosting/guardian/pod-memory.ts';
import { slimPod } from '../../../../src/hosting/guardian/slim-pod.ts';
import { slimPodsClient } from '../../../../src/hosting/guardian/tenant-pods.ts';
import { Mutex } from '../../../../src/hosting/guardian/mutex.ts';
import { podOf } from './support.ts';

const SHOP = 'rome-shop';
const LARGE = { annotations: { large: 'x'.repeat(10_000) } };

interface Source {
  pages?: (options: ListOptions) => AsyncGenerator<ObjectList<Pod>>;
  events?: WatchEvent<Pod>[];
}

function world({ pages, events = [] }: Source): {
  client: KubeClient;
  memory: PodMemory;
  listed: string[][];
} {
  const memory = new PodMemory();
  memory.open(SHOP, () => undefined);
  const listed: string[][] = [];
  const none = (): void => undefined;
  const source = {
    get: none,
    list: none,
    create: none,
    replace: none,
    patch: none,
    delete: none,
    raw: none,
    close: none,
    pages: (_type: unknown, options: ListOptions) => pages?.(options),
    watch: async function* watch() {
      yield* events;
    },
  } as unknown as KubeClient;
  const client = slimPodsClient({
    client: source,
    namespace: SHOP,
    memory,
    listMutex: new Mutex(),
    bulkMutex: new Mutex(),
    isKnown: (name) => name === 'known',
    listed: (names) => listed.push([...names]),
  });
  return { client, memory, listed };
}

const read = async (client: KubeClient): Promise<Pod[]> => {
  const items: Pod[] = [];
  for await (const page of client.pages(pods, { namespace: SHOP })) items.push(...page.items);
  return items;
};
const has = (memory: PodMemory, name: string): boolean => memory.pod(SHOP, name, `uid-${name}`) !== undefined;

test('lists come in pages that can be read, as slim pods; what is gone since the last one is let go', async () => {
  const all = ['a', 'b'].map((name) => podOf({ name, ...LARGE }));
  const limits: unknown[] = [];
  const { client, memory, listed } = world({
    pages: async function* two({ limit }) {
      limits.push(limit);
      for (const pod of all) yield { items: [pod], resourceVersion: '7' };
    },
  });
  for (const name of ['known', 'unknown']) memory.listed(podOf({ name }));
  expect(await read(client)).toEqual(all.map((pod) => slimPod(pod)));
  expect(limits).toEqual([10]);
  expect(listed).toEqual([['a', 'b']]);
  const names = ['a', 'b', 'known', 'unknown'];
  expect(names.filter((name) => has(memory, name))).toEqual(['a', 'b', 'known']);
});

test('a list of a peer waits for the one before, and not for one that has failed', async () => {
  let open = 0;
  let most = 0;
  let times = 0;
  const { client } = world({
    pages: async function* slow() {
      most = Math.max(most, ++open);
      try {
        yield { items: [podOf({})], resourceVersion: '7' };
        if (++times === 2) throw new Error('broken');
      } finally {
        open--;
      }
    },
  });
  const ends = await Promise.allSettled([read(client), read(client), read(client)]);
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(most).toBe(1);
});

test('of what changes the slim pod is told, and the body is held as it was last', async () => {
  const at = (name: string, resourceVersion: string): Pod => {
    const pod = podOf({ name, ...LARGE });
    return { ...pod, metadata: { ...pod.metadata, resourceVersion } };
  };
  const changes: WatchEvent<Pod>[] = [
    { type: 'ADDED', object: at('a', '1') },
    { type: 'MODIFIED', object: at('a', '2') },
    { type: 'BOOKMARK', resourceVersion: '3' },
    { type: 'DELETED', object: at('a', '4') },
    { type: 'DELETED', object: at('b', '5') },
  ];
  const { client, memory } = world({ events: changes });
  const told: WatchEvent<Pod>[] = [];
  for await (const event of client.watch(pods, { namespace: SHOP, resourceVersion: '1' })) told.push(event);
  expect(told).toEqual(
    changes.map((it) => (it.type === 'BOOKMARK' ? it : { ...it, object: slimPod(it.object) })),
  );
  expect(memory.pod(SHOP, 'a', 'uid-a')?.metadata.resourceVersion).toBe('4');
  expect(has(memory, 'b')).toBe(false);
});
