import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptancePolicies } from '../../src/api/acceptance-policy.ts';
import { advertisements } from '../../src/api/advertisement.ts';
import { LABEL_CLUSTER, LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import {
  namespaceOffloadings,
  type NamespaceOffloadingSpec,
  type OffloadedCluster,
} from '../../src/api/namespace-offloading.ts';
import { events, namespaces, nodes, pods } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { virtualNodes, type NamespaceMapping } from '../../src/api/virtual-node.ts';
import type { Namespace, Pod } from '../../src/api/wire.ts';
import { hasCode } from '../../src/lib/errors.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';

/** Namespaces that stretch to a cluster and back, as whole processes over real API servers. */

const VERSION = 'tributary.dev/v1alpha1';
const SLOW = 'example.com/slow';

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`offloaded namespaces are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a namespace in a peering', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
  });
  afterAll(async () => lab?.down());

  const offload = async (namespace: string, spec: NamespaceOffloadingSpec = {}): Promise<void> => {
    const metadata = { name: 'offloading', namespace };
    const body = { apiVersion: VERSION, kind: 'NamespaceOffloading', metadata, spec };
    await rome.client.create(namespaceOffloadings, body);
  };
  const bringHome = async (namespace: string): Promise<void> => {
    await rome.client.delete(namespaceOffloadings, { namespace, name: 'offloading' });
  };
  const mappings = async (): Promise<NamespaceMapping[]> =>
    (await rome.client.get(virtualNodes, { name: 'milan' })).spec.namespaces ?? [];
  const mappedAs = async (home: string): Promise<string | undefined> =>
    (await mappings()).find(({ homeNamespace }) => homeNamespace === home)?.tenantNamespace;
  const stands = async (namespace: string): Promise<OffloadedCluster | undefined> => {
    const { status } = await rome.client.get(namespaceOffloadings, { namespace, name: 'offloading' });
    return status?.clusters?.[0];
  };
  const standsAs = async (namespace: string, reason: string): Promise<OffloadedCluster> => {
    let last: OffloadedCluster | undefined;
    try {
      return await until(`${namespace} stands as ${reason}`, async () => {
        last = await stands(namespace);
        return last?.reason === reason ? last : undefined;
      });
    } catch (cause) {
      throw new Error(`${String(cause)}; last ${JSON.stringify(last)}`, { cause });
    }
  };
  const there = async (name: string): Promise<Namespace | undefined> =>
    milan.client.get(namespaces, { name }).catch((error: unknown) => {
      if (hasCode(error, 'NotFound')) return undefined;
      throw error;
    });
  const hold = async (name: string, finalizers: string[] | null): Promise<void> => {
    const body = { metadata: { finalizers } };
    await milan.client.patch(namespaces, { name }, { type: 'merge', body });
  };
  /** When the Node last turned Ready or not: it must not flap. */
  const readySince = async (): Promise<string | undefined> => {
    const { status } = await rome.client.get(nodes, { name: 'milan' });
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready?.status).toBe('True');
    return ready?.lastTransitionTime;
  };
  const makePod = async (namespace: string, name: string): Promise<Pod> =>
    rome.client.create(pods, {
      metadata: { name, namespace },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: 'milan' },
        tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
        containers: [{ name: 'main', image: 'example/none:1' }],
      },
    });
  const runPod = async (namespace: string): Promise<string> => {
    const { metadata } = await makePod(namespace, 'web');
    await until(`the pod of ${namespace} runs`, async () => {
      const { status } = await rome.client.get(pods, { namespace, name: 'web' });
      return status?.phase === 'Running';
    });
    return metadata.uid;
  };
  const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    const from = performance.now();
    await work();
    say(`${what}: ${((performance.now() - from) / 1000).toFixed(2)} s`);
  };

  test('without any there is a virtual node, which is Ready', async () => {
    const spec = { peers: { anyone: true }, approval: 'Automatic' as const };
    const metadata = { name: 'all' };
    await rome.client.create(acceptancePolicies, {
      apiVersion: VERSION,
      kind: 'AcceptancePolicy',
      metadata,
      spec,
    });
    await milan.lend({ namespaceNaming: 'SameIfFree', namespaceNames: ['shop', 'store', 'data', 'web'] });
    for (const name of ['shop', 'web', 'data']) await rome.client.create(namespaces, { metadata: { name } });
    await Promise.all([rome.run(), milan.run()]);
    await until('milan is a node of rome', async () => rome.nodeReady(milan.id));
    await rome.inPhase(milan.id, 'outgoing', 'Established');
    expect(await mappings()).toEqual([]);
    expect((await milan.made(rome.id))['tenants']).toEqual([]);
    const { metadata: node } = await rome.client.get(nodes, { name: 'milan' });
    expect(node.labels?.[LABEL_CLUSTER]).toBe('milan');
  });

  let shop = '';
  test('one that is offloaded gets a tenant, and pods run there', async () => {
    await timed('from NamespaceOffloading to Ready', async () => {
      await offload('shop');
      await standsAs('shop', 'AsExpected');
    });
    expect(await mappedAs('shop')).toBe('shop');
    await runPod('shop');
    shop = (await there('shop'))?.metadata.uid ?? '';
    expect(shop).not.toBe('');
  });

  test('rules for its objects change nothing but the rules', async () => {
    const contract = async (): Promise<string | undefined> =>
      (await rome.client.get(advertisements, { name: milan.id })).status?.contract?.text;
    const before = { contract: await contract(), ready: await readySince() };
    const body = { spec: { reflection: [{ resource: 'configmaps', policy: 'All' }] } };
    const ref = { namespace: 'shop', name: 'offloading' };
    await rome.client.patch(namespaceOffloadings, ref, { type: 'merge', body });
    await until('the rules are there', async () => (await mappings())[0]?.reflection?.length === 1);
    await rome.client.patch(namespaceOffloadings, ref, {
      type: 'merge',
      body: { spec: { reflection: null } },
    });
    await until('the rules are gone', async () => (await mappings())[0]?.reflection === undefined);
    expect({ contract: await contract(), ready: await readySince() }).toEqual(before);
  });

  test('a name that is taken is told of, and given when it is free', async () => {
    const since = await readySince();
    await milan.client.create(namespaces, { metadata: { name: 'store' } });
    await offload('web', { naming: 'Selected', remoteName: 'store' });
    const { message } = await standsAs('web', 'NameTaken');
    expect(message).toContain('store is another namespace here');
    expect(await mappedAs('web')).toBeUndefined();
    const taken = await there('store');
    expect(taken?.metadata.labels?.['tributary.dev/peer']).toBeUndefined();
    await timed('from the name being free to Ready', async () => {
      await milan.client.delete(namespaces, { name: 'store' });
      await standsAs('web', 'AsExpected');
    });
    expect(await mappedAs('web')).toBe('store');
    expect((await there('store'))?.metadata.labels?.['tributary.dev/peer']).toBe(rome.id);
    expect(await readySince()).toBe(since);
  });

  test('one that is taken out goes with all that is in it, and no other is disturbed', async () => {
    const [since, uid] = [await readySince(), await runPod('web')];
    const isGone = async (): Promise<boolean> =>
      stands('web').then(
        () => false,
        (error: unknown) => hasCode(error, 'NotFound'),
      );
    await timed('from the end of the NamespaceOffloading to that of the tenant', async () => {
      await bringHome('web');
      // As its controller makes the next one: its own template sends it there again.
      await makePod('web', 'next');
      await until('the tenant is gone', async () => (await there('store')) === undefined);
      await until('the NamespaceOffloading is gone', isGone);
    });
    const next = await until('the next one says what to change', async () => {
      const { status } = await rome.client.get(pods, { namespace: 'web', name: 'next' });
      return status?.conditions?.find(({ reason }) => reason === 'NamespaceNotOffloaded');
    });
    expect(next.message).toContain(`take the nodeSelector ${LABEL_VIRTUAL_NODE}`);
    const { items } = await rome.client.list(events, { namespace: 'web' });
    expect(items.map(({ reason }) => reason)).not.toContain('LeftBehind');
    expect(await mappedAs('web')).toBeUndefined();
    expect(uid).not.toBe('');
    expect((await there('shop'))?.metadata).toMatchObject({ uid: shop });
    expect((await rome.client.get(pods, { namespace: 'shop', name: 'web' })).status?.phase).toBe('Running');
    expect(await readySince()).toBe(since);
  });

  test('one that is put back while its tenant still ends waits for that', async () => {
    await offload('data');
    await standsAs('data', 'AsExpected');
    const before = (await there('data'))?.metadata.uid;
    await hold('data', [SLOW]);
    await bringHome('data');
    await until(
      'the tenant ends',
      async () => (await there('data'))?.metadata.deletionTimestamp !== undefined,
    );
    await until('the NamespaceOffloading is gone', async () =>
      stands('data').then(
        () => false,
        (error: unknown) => hasCode(error, 'NotFound'),
      ),
    );
    const since = await readySince();
    await offload('data', { naming: 'Same' });
    const { message } = await standsAs('data', 'NameTaken');
    expect(message).toContain('has not ended yet');
    expect(await rome.phaseOf(milan.id, 'outgoing')).toBe('Established');
    await hold('data', null);
    await standsAs('data', 'AsExpected');
    expect(await mappedAs('data')).toBe('data');
    expect((await there('data'))?.metadata.uid).not.toBe(before);
    await runPod('data');
    expect(await readySince()).toBe(since);
    expect((await there('shop'))?.metadata).toMatchObject({ uid: shop });
  });

  test('a provider that chooses names itself gives no other', async () => {
    await milan.client.patch(
      sharingPolicies,
      { name: 'all' },
      { type: 'merge', body: { spec: { namespaceNaming: 'Suffixed' } } },
    );
    await offload('web', { naming: 'Same' });
    await standsAs('web', 'NamingNotAllowed');
    expect(await there('web')).toBeUndefined();
    // What is there keeps its name.
    expect(await mappedAs('shop')).toBe('shop');
  });
});
