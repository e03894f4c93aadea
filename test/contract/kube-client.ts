import { expect, test } from '@jest/globals';
import { configMaps, namespaces, pods, serviceAccountTokens } from '../../src/api/resources.ts';
import type { ConfigMap, Namespace, Pod, TokenRequest } from '../../src/api/wire.ts';
import type { KubeClient, WatchEvent } from '../../src/kube/client.ts';
import type { Draft } from '../../src/api/wire.ts';

export interface KubeClientContract {
  /** A client with all rights, the same for the whole suite. */
  client: () => KubeClient;
  /** A namespace that exists and in which nothing else happens. */
  namespace: () => string;
}

const code = (name: string): object => ({ name: 'TributaryError', code: name });

/** What every KubeClient, and every API server simulator behind one, must do. */
export function describeKubeClient({ client, namespace }: KubeClientContract): void {
  const configMap = (name: string, data: Record<string, string> = {}): Draft<ConfigMap> => ({
    metadata: { name, namespace: namespace(), labels: { app: name } },
    data,
  });
  const pod = (name: string, nodeName?: string): Draft<Pod> => ({
    metadata: { name, namespace: namespace() },
    spec: {
      containers: [{ name: 'main', image: 'example.org/image' }],
      // The API server fills in a service account where it has that plugin; here it must not matter.
      automountServiceAccountToken: false,
      // No scheduler may write to it while a test does.
      schedulerName: 'nobody',
      ...(nodeName === undefined ? {} : { nodeName }),
    },
  });
  const ref = (name: string): { name: string; namespace: string } => ({ name, namespace: namespace() });

  test('an object comes back in one shape, whether created, read, listed or watched', async () => {
    const created = await client().create(configMaps, configMap('shape', { a: '1' }));
    expect(created).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } });
    expect(created.metadata).not.toHaveProperty('managedFields');
    expect(await client().get(configMaps, ref('shape'))).toEqual(created);
    const { items, resourceVersion } = await client().list(configMaps, {
      namespace: namespace(),
      labelSelector: 'app=shape',
    });
    expect(items).toEqual([created]);
    expect(resourceVersion).toMatch(/^\d+$/);
    const before = String(BigInt(created.metadata.resourceVersion) - 1n);
    const event = await firstEvent<ConfigMap>(client(), namespace(), before, 'app=shape');
    expect(event).toEqual({ type: 'ADDED', object: created });
  });

  test('create refuses a taken name and makes one up from generateName', async () => {
    await client().create(configMaps, configMap('taken'));
    await expect(client().create(configMaps, configMap('taken'))).rejects.toMatchObject(
      code('AlreadyExists'),
    );
    const made = await client().create(configMaps, {
      metadata: { generateName: 'made-', namespace: namespace() },
    });
    expect(made.metadata.name).toMatch(/^made-./);
  });

  test('what is not there is NotFound, in every verb', async () => {
    const missing = ref('missing');
    await expect(client().get(configMaps, missing)).rejects.toMatchObject(code('NotFound'));
    await expect(client().delete(configMaps, missing)).rejects.toMatchObject(code('NotFound'));
    await expect(
      client().patch(configMaps, missing, { type: 'merge', body: { data: {} } }),
    ).rejects.toMatchObject(code('NotFound'));
  });

  test('the message of the server reaches the caller', async () => {
    await expect(client().get(configMaps, ref('missing'))).rejects.toThrow(/configmaps "missing" not found/);
  });

  test('a stale replace is a Conflict, a fresh one is not', async () => {
    const first = await client().create(configMaps, configMap('stale', { a: '1' }));
    const second = await client().replace(configMaps, { ...first, data: { a: '2' } });
    expect(second.metadata.resourceVersion).not.toBe(first.metadata.resourceVersion);
    await expect(client().replace(configMaps, { ...first, data: { a: '3' } })).rejects.toMatchObject(
      code('Conflict'),
    );
  });

  test('a write that changes nothing is no change', async () => {
    const first = await client().create(configMaps, configMap('no-op', { a: '1' }));
    const again = await client().replace(configMaps, first);
    const patched = await client().patch(configMaps, ref('no-op'), {
      type: 'merge',
      body: { data: { a: '1' } },
    });
    expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    expect(patched.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test('merge and JSON patches apply; a failed test is refused and changes nothing', async () => {
    await client().create(configMaps, configMap('patched', { a: '1', b: '2' }));
    const merged = await client().patch(configMaps, ref('patched'), {
      type: 'merge',
      body: { data: { a: null, c: '3' } },
    });
    expect(merged.data).toEqual({ b: '2', c: '3' });
    await expect(
      client().patch(configMaps, ref('patched'), {
        type: 'json',
        body: [
          { op: 'test', path: '/metadata/resourceVersion', value: '1' },
          { op: 'remove', path: '/data/b' },
        ],
      }),
    ).rejects.toMatchObject({ name: 'TributaryError' });
    expect((await client().get(configMaps, ref('patched'))).data).toEqual({ b: '2', c: '3' });
  });

  test('status is written by its subresource and by nothing else', async () => {
    const made = await client().create(pods, pod('status'));
    const status = { ...made.status, phase: 'Running' };
    const written = await client().replace(pods, { ...made, status }, { subresource: 'status' });
    expect(written.status?.phase).toBe('Running');
    const main = await client().replace(pods, { ...written, status: { phase: 'Failed' } });
    expect(main.status?.phase).toBe('Running');
    await client().delete(pods, ref('status'), { gracePeriodSeconds: 0 });
  });

  test('a delete with the UID of another object is a Conflict', async () => {
    const made = await client().create(configMaps, configMap('precondition'));
    await expect(
      client().delete(configMaps, ref('precondition'), { uid: 'f0e1d2c3-0000-4000-8000-000000000000' }),
    ).rejects.toMatchObject(code('Conflict'));
    await client().delete(configMaps, ref('precondition'), { uid: made.metadata.uid });
    await expect(client().get(configMaps, ref('precondition'))).rejects.toMatchObject(code('NotFound'));
  });

  test('a scheduled pod is deleted in two steps, an unscheduled one at once', async () => {
    await client().create(pods, pod('unscheduled'));
    await client().delete(pods, ref('unscheduled'));
    await expect(client().get(pods, ref('unscheduled'))).rejects.toMatchObject(code('NotFound'));
    await client().create(pods, pod('scheduled', 'no-such-node'));
    await client().delete(pods, ref('scheduled'), { gracePeriodSeconds: 20 });
    const dying = await client().get(pods, ref('scheduled'));
    expect(dying.metadata.deletionGracePeriodSeconds).toBe(20);
    expect(dying.metadata.deletionTimestamp).toBeDefined();
    await client().delete(pods, ref('scheduled'), { gracePeriodSeconds: 0, uid: dying.metadata.uid });
    await expect(client().get(pods, ref('scheduled'))).rejects.toMatchObject(code('NotFound'));
  });

  test('a finalizer holds an object until it is removed', async () => {
    const made = await client().create(configMaps, {
      metadata: { name: 'held', namespace: namespace(), finalizers: ['example.org/hold'] },
    });
    await client().delete(configMaps, ref('held'));
    const held = await client().get(configMaps, ref('held'));
    expect(held.metadata.deletionTimestamp).toBeDefined();
    expect(held.metadata.uid).toBe(made.metadata.uid);
    await client().patch(configMaps, ref('held'), {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    await expect(client().get(configMaps, ref('held'))).rejects.toMatchObject(code('NotFound'));
  });

  test('a whole list comes in one answer, in parts, the last of which has its version', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `whole-${index}`);
    for (const name of names) {
      const map = configMap(name, { text: 'x'.repeat(10_000) });
      map.metadata.labels = { list: 'whole' };
      await client().create(configMaps, map);
    }
    const options = { namespace: namespace(), labelSelector: 'list=whole', limit: 'whole' as const };
    const parts = await Array.fromAsync(client().pages(configMaps, options));
    expect(parts.length).toBeGreaterThan(2);
    expect(parts.flatMap(({ items }) => items.map(({ metadata }) => metadata.name)).toSorted()).toEqual(
      names.toSorted(),
    );
    expect(parts.at(-1)?.resourceVersion).toMatch(/^\d+$/u);
    expect((await client().list(configMaps, options)).resourceVersion).toBe(parts.at(-1)?.resourceVersion);
  });

  test('a list comes in pages of one snapshot', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `page-${index}`);
    for (const name of names) {
      const { metadata, data } = configMap(name);
      await client().create(configMaps, {
        metadata: { ...metadata, labels: { list: 'paged' } },
        ...(data && { data }),
      });
    }
    const options = { namespace: namespace(), labelSelector: 'list=paged', limit: 3 };
    const sizes: number[] = [];
    const versions = new Set<string>();
    for await (const page of client().pages(configMaps, options)) {
      sizes.push(page.items.length);
      versions.add(page.resourceVersion);
    }
    expect(sizes).toEqual([3, 3, 1]);
    expect(versions.size).toBe(1);
    const all = await client().list(configMaps, options);
    expect(all.items.map(({ metadata }) => metadata.name).sort()).toEqual(names);
  });

  test('metadata alone comes where only metadata is asked for', async () => {
    await client().create(configMaps, configMap('bare', { big: 'x'.repeat(1000) }));
    const { items } = await client().list(configMaps, {
      namespace: namespace(),
      labelSelector: 'app=bare',
      metadataOnly: true,
    });
    expect(items).toHaveLength(1);
    expect(items[0]).not.toHaveProperty('data');
    expect(items[0]).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'bare' } });
  });

  test('a write answers with metadata alone where only metadata is asked for', async () => {
    const only = { metadataOnly: true };
    const made = await client().create(configMaps, configMap('written', { a: '1' }), only);
    expect(made).not.toHaveProperty('data');
    expect(made).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'written' } });
    const current = await client().get(configMaps, ref('written'));
    expect(current).toMatchObject({ data: { a: '1' }, metadata: made.metadata });
    const replaced = await client().replace(configMaps, { ...current, data: { a: '2' } }, only);
    expect(replaced).not.toHaveProperty('data');
    expect(replaced.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    const patch = { type: 'merge', body: { data: { a: '3' } } } as const;
    expect(await client().patch(configMaps, ref('written'), patch, only)).not.toHaveProperty('data');
    expect(await client().get(configMaps, ref('written'))).toMatchObject({ data: { a: '3' } });
    // What went wrong is said as ever.
    await expect(client().create(configMaps, configMap('written'), only)).rejects.toMatchObject(
      code('AlreadyExists'),
    );
    await expect(client().replace(configMaps, current, only)).rejects.toMatchObject(code('Conflict'));
  });

  test('pods are found by the name of their node', async () => {
    await client().create(pods, pod('here', 'node-a'));
    await client().create(pods, pod('there', 'node-b'));
    const { items } = await client().list(pods, {
      namespace: namespace(),
      fieldSelector: 'spec.nodeName=node-a',
    });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['here']);
  });

  test('a watch tells of everything since its version, in order, and ends with its signal', async () => {
    const { resourceVersion } = await client().list(configMaps, { namespace: namespace() });
    const made = await client().create(configMaps, configMap('watched', { a: '1' }));
    await client().replace(configMaps, { ...made, data: { a: '2' } });
    await client().delete(configMaps, ref('watched'));
    const abort = new AbortController();
    const seen: string[] = [];
    const watch = async (): Promise<void> => {
      const options = { namespace: namespace(), labelSelector: 'app=watched', resourceVersion };
      for await (const event of client().watch(configMaps, { ...options, signal: abort.signal })) {
        if (event.type === 'BOOKMARK') continue;
        seen.push(`${event.type} ${event.object.data?.['a']}`);
        if (seen.length === 3) abort.abort();
      }
    };
    await expect(watch()).rejects.toMatchObject(code('Aborted'));
    expect(seen).toEqual(['ADDED 1', 'MODIFIED 2', 'DELETED 2']);
  });

  test('an object that leaves a selector is DELETED for the watcher', async () => {
    const { resourceVersion } = await client().list(configMaps, { namespace: namespace() });
    await client().create(configMaps, configMap('leaves'));
    const body = { metadata: { labels: { app: 'elsewhere' } } };
    await client().patch(configMaps, ref('leaves'), { type: 'merge', body });
    const seen: string[] = [];
    const options = { namespace: namespace(), labelSelector: 'app=leaves', resourceVersion };
    for await (const event of client().watch(configMaps, options)) {
      seen.push(event.type);
      if (event.type === 'DELETED') break;
    }
    expect(seen).toEqual(['ADDED', 'DELETED']);
  });

  test('the server ends a watch after timeoutSeconds, without an error', async () => {
    const { resourceVersion } = await client().list(configMaps, { namespace: namespace() });
    const options = {
      namespace: namespace(),
      labelSelector: 'app=nobody',
      resourceVersion,
      timeoutSeconds: 1,
    };
    let opened = false;
    for await (const event of client().watch(configMaps, { ...options, onOpen: () => (opened = true) })) {
      expect(event.type).toBe('BOOKMARK');
    }
    expect(opened).toBe(true);
  });

  test('a name that would leave its place in the path is refused before anything is sent', async () => {
    for (const name of ['..', '.', 'a/b', 'a%2fb', '']) {
      await expect(client().get(configMaps, ref(name))).rejects.toMatchObject(code('Invalid'));
    }
  });

  test('a namespace is an object without a namespace', async () => {
    const found: Namespace = await client().get(namespaces, { name: namespace() });
    expect(found.metadata.name).toBe(namespace());
    expect(found.metadata).not.toHaveProperty('namespace');
  });

  test('what nobody knows how to do is Invalid or NotFound, not Unavailable', async () => {
    const strange = { ...configMaps, plural: 'strangethings' };
    await expect(client().list(strange, { namespace: namespace() })).rejects.toMatchObject(code('NotFound'));
  });

  test('a token is asked of a service account by its subresource', async () => {
    const asked = client().create<TokenRequest>(
      serviceAccountTokens,
      {
        metadata: { name: 'default', namespace: namespace() },
        spec: { audiences: [], expirationSeconds: 600 },
      },
      { subresource: 'token' },
    );
    const token = await asked.catch((error: { code: string }) => error);
    // Where no controller makes accounts, the account is what is missing.
    if ('code' in token) expect(token.code).toBe('NotFound');
    else expect(token.status?.token).toMatch(/./);
  });

  test('a raw request streams the answer as it comes', async () => {
    const { status, body } = await client().raw({ method: 'GET', path: `/api/v1/namespaces/${namespace()}` });
    expect(status).toBe(200);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ kind: 'Namespace' });
  });
}

async function firstEvent<T extends ConfigMap>(
  client: KubeClient,
  namespace: string,
  resourceVersion: string,
  labelSelector: string,
): Promise<WatchEvent<T> | undefined> {
  for await (const event of client.watch(configMaps, { namespace, resourceVersion, labelSelector })) {
    return event as WatchEvent<T>;
  }
  return undefined;
}
