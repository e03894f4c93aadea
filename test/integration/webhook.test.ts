import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { mutatingWebhookConfigurations, WEBHOOK_CONFIGURATION } from '../../src/api/admission.ts';
import { secrets } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { AUTHORITY_LIFE_MS, BACKDATED_MS, makeAuthority } from '../../src/certificates/webhook/authority.ts';
import { dataOf, renewed } from '../../src/certificates/webhook/chain.ts';
import { eventually } from '../support/eventually.ts';
import { SYSTEM, WebhookLab } from '../support/labs/webhook-lab.ts';

/** A real API server asks the webhook of this process, which has exactly the rights of the printed manifests. */

const MINUTE_MS = 60_000;
const CONFIGURATION = { name: WEBHOOK_CONFIGURATION };

let lab: WebhookLab;
beforeAll(async () => {
  lab = await WebhookLab.up(['shop', 'far', 'home', 'other']);
});
afterAll(async () => lab?.down());

const strategyOf = (pod: Pod): string | undefined => pod.metadata.annotations?.['tributary.dev/strategy'];

test('without offloaded namespaces there are only the webhooks of labels, and then exactly those of the strategies', async () => {
  expect(await lab.configuration()).toMatchObject({ metadata: { name: 'tributary' } });
  await lab.start();
  expect(await lab.lists()).toEqual({});
  lab.offload('shop', 'LocalAndRemote');
  lab.offload('far', 'Remote');
  lab.offload('home', 'Local');
  lab.offload('kube-system', 'Remote');
  const wanted = { local: ['home'], 'local-and-remote': ['shop'], remote: ['far'] };
  await eventually('three webhooks', async () => Object.keys(await lab.lists()).length === 3);
  expect(await lab.lists()).toEqual(wanted);
  await lab.untilInForce('shop');
  await lab.untilInForce('far');
  // We write the same defaults as the API server, so nothing is written twice.
  const before = (await lab.configuration())?.metadata;
  lab.offload('shop', 'LocalAndRemote');
  lab.offload('home', 'Remote');
  await eventually('home is another list', async () => (await lab.lists())['remote']?.length === 2);
  expect(await lab.lists()).toEqual({ 'local-and-remote': ['shop'], remote: ['far', 'home'] });
  expect((await lab.configuration())?.metadata.generation).toBe((before?.generation ?? 0) + 1);
  lab.offload('home', 'Local');
  await eventually('home is back', async () => (await lab.lists())['local']?.length === 1);
});

test('a pod gets what its strategy needs, and the API server takes it', async () => {
  const toleration = { key: 'tributary.dev/virtual-node', operator: 'Exists', effect: 'NoSchedule' };
  const shop = await lab.tryPod('shop');
  expect(strategyOf(shop)).toBe('LocalAndRemote');
  expect(shop.spec?.tolerations).toContainEqual(toleration);
  const far = await lab.tryPod('far');
  expect(
    far.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms,
  ).toEqual([
    {
      matchExpressions: [
        { key: 'tributary.dev/node-type', operator: 'In', values: ['virtual-node'] },
        { key: 'region', operator: 'In', values: ['eu'] },
      ],
    },
  ]);
  const everywhere = { tolerations: [{ operator: 'Exists' }] };
  expect(strategyOf(await lab.tryPod('home', everywhere))).toBe('Local');
  const untouched = await Promise.all([
    lab.tryPod('home'),
    lab.tryPod('other', everywhere),
    lab.tryPod('far', { nodeName: 'somewhere' }),
    lab.tryPod('far', {}, { labels: { 'tributary.dev/offload': 'false' } }),
    lab.tryPod(
      'far',
      {},
      {
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'log', uid: 'u', controller: true },
        ],
      },
    ),
  ]);
  expect(untouched.map(strategyOf)).toEqual([undefined, undefined, undefined, undefined, undefined]);
});

test('a label decides from the first moment of a namespace, and only where namespaces may leave the cluster', async () => {
  const REMOTE = { 'tributary.dev/offload': 'Remote' };
  const made = async (name: string, labels: object = REMOTE): Promise<Pod> => {
    const metadata = { name, labels };
    await lab.cluster.cluster.api.call('POST', '/api/v1/namespaces', { metadata });
    // The first one that is possible: until then its ServiceAccount is missing.
    let pod: Pod | undefined;
    await eventually(`a pod of ${name}`, async () => {
      pod = await lab.tryPod(name).catch(() => undefined);
      return pod !== undefined;
    });
    return pod as unknown as Pod;
  };
  // Ten of them: each is the first moment of another namespace, which the program has never heard of.
  for (let index = 0; index < 10; index++) expect(strategyOf(await made(`far-${index}`))).toBe('Remote');
  for (const name of ['kube-labelled', 'tributary-labelled']) {
    expect(strategyOf(await made(name))).toBeUndefined();
  }
  expect(strategyOf(await made('kept', { 'tributary.dev/offload': 'false' }))).toBeUndefined();
  // What the operator selects, likewise, where no label of the namespace says otherwise.
  expect(strategyOf(await made('team', { team: 'far' }))).toBe('Remote');
  const others = [
    { team: 'near' },
    { team: 'far', legacy: 'yes' },
    { team: 'far', 'tributary.dev/offload': 'false' },
  ];
  for (const [index, labels] of others.entries()) {
    expect(strategyOf(await made(`team-${index}`, labels))).toBeUndefined();
  }
  expect(strategyOf(await made('unclear', { 'tributary.dev/offload': 'yes' }))).toBeUndefined();
});

test('whoever changes or deletes the configuration finds it as it was', async () => {
  const before = await lab.configuration();
  await lab.admin.patch(mutatingWebhookConfigurations, CONFIGURATION, {
    type: 'merge',
    body: { webhooks: [] },
  });
  const isBack = async (): Promise<boolean> => (await lab.configuration())?.webhooks?.length === 7;
  await eventually('it is put back', isBack);
  expect((await lab.configuration())?.webhooks).toEqual(before?.webhooks);
  await lab.admin.delete(mutatingWebhookConfigurations, CONFIGURATION);
  await eventually('it is made anew', isBack);
  const made = await lab.configuration();
  expect(made?.webhooks).toEqual(before?.webhooks);
  // It cannot be left when everything is deleted.
  expect(made?.metadata.ownerReferences).toMatchObject([{ kind: 'Namespace', name: SYSTEM }]);
  await lab.untilInForce('far');
});

test('where a taint keeps nobody away, pods that are to stay home get an affinity', async () => {
  const real = {
    matchExpressions: [{ key: 'tributary.dev/node-type', operator: 'NotIn', values: ['virtual-node'] }],
  };
  const kept = { labels: { 'tributary.dev/offload': 'false' } };
  lab.open(true);
  await eventually('asked about', async () => strategyOf(await lab.tryPod('home')) === 'Local');
  for (const pod of [await lab.tryPod('home'), await lab.tryPod('far', {}, kept)]) {
    const { nodeAffinity } = pod.spec?.affinity ?? {};
    expect(nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms).toEqual([real]);
    const keys = (pod.spec?.tolerations ?? []).map(({ key }) => key);
    expect(keys).not.toContain('tributary.dev/virtual-node');
  }
  lab.open(false);
  await eventually('no longer', async () => strategyOf(await lab.tryPod('home')) === undefined);
});

test('authorities are replaced while pods are made, and none is refused', async () => {
  await lab.stop();
  // The state after most of a year: an authority that must be renewed in five minutes, and a certificate that it
  // signed a moment ago.
  const now = lab.clock.now();
  const subject = { dnsNames: [], ips: ['127.0.0.1'] };
  const dueMs = ((AUTHORITY_LIFE_MS + BACKDATED_MS) * 2) / 3 - BACKDATED_MS;
  const signing = await makeAuthority(now - dueMs + 5 * MINUTE_MS);
  const leaf = (await renewed({ signing, leaf: { certificate: '', key: '' } }, subject, now)).leaf;
  await lab.admin.patch(
    secrets,
    { namespace: SYSTEM, name: 'tributary-webhook' },
    {
      type: 'merge',
      body: { data: { 'next-ca.crt': null, 'next-ca.key': null, ...dataOf({ signing, leaf }) } },
    },
  );
  await lab.start();
  await lab.untilInForce('far');
  const bundle = async (): Promise<string> =>
    Buffer.from((await lab.configuration())?.webhooks?.[0]?.clientConfig.caBundle ?? '', 'base64').toString();
  const count = (text: string): number => text.split('BEGIN CERTIFICATE').length - 1;
  const old = await bundle();
  expect(count(old)).toBe(1);
  const results: (string | undefined)[] = [];
  const over = new AbortController();
  const making = (async () => {
    while (!over.signal.aborted) {
      const result = await lab.tryPod('far').then(strategyOf, (error: unknown) => String(error));
      // The API server gives the webhook two seconds; on a busy machine that says nothing of certificates.
      if (result?.includes('context deadline exceeded') !== true) results.push(result);
    }
  })();
  await eventually('pods are made', () => results.length > 20);
  // In all less than certificates are backdated, because the API server's clock is not set forward.
  lab.clock.forward(10 * MINUTE_MS);
  await eventually('the next one is trusted', async () => count(await bundle()) === 2);
  const next = (await bundle()).slice(old.length);
  const before = results.length;
  await eventually('the old one still signs', () => results.length > before + 20);
  lab.clock.forward(31 * MINUTE_MS);
  await eventually('the next one signs', async () => (await bundle()) === next + old);
  const soFar = results.length;
  await eventually('more pods are made', () => results.length > soFar + 50);
  over.abort();
  await making;
  expect(new Set(results)).toEqual(new Set(['Remote']));
});

test('when the webhook answers nobody, only pods that must not run here are refused, and only for as long', async () => {
  const { url } = (await lab.configuration())?.webhooks?.[0]?.clientConfig ?? {};
  await lab.stop();
  expect(Object.keys(await lab.lists())).toHaveLength(3);
  // Nobody listens.
  expect(strategyOf(await lab.tryPod('shop'))).toBeUndefined();
  await expect(lab.tryPod('far')).rejects.toThrow(/remote\.offloading\.tributary\.dev.*refused/u);
  await expect(lab.tryPod('far-0')).rejects.toThrow(/remote\.label\.offloading\.tributary\.dev.*refused/u);
  // A server listens and does not answer.
  const hole = await blackHole(Number(new URL(url ?? '').port));
  try {
    const began = performance.now();
    const seconds = (): string => ((performance.now() - began) / 1000).toFixed(1);
    let isShopMade = false;
    const slow = lab.tryPod('shop').then((pod) => {
      isShopMade = true;
      return pod;
    });
    const refusal = lab.tryPod('far').then(strategyOf, (error: unknown) => String(error));
    await eventually('the API server waits for an answer', () => hole.connections() > 0);
    let meanwhile = 0;
    for (let index = 0; index < 20; index++) {
      expect(strategyOf(await lab.tryPod('other'))).toBeUndefined();
      expect(strategyOf(await lab.tryPod('home'))).toBeUndefined();
      if (!isShopMade) meanwhile++;
    }
    // Pods of other namespaces were made while one waited; how many, in two seconds, depends on the machine.
    expect(meanwhile).toBeGreaterThan(0);
    console.info(
      `no answer: 20 pods of each of two other namespaces made after ${seconds()} s, ${meanwhile} rounds meanwhile`,
    );
    expect(strategyOf(await slow)).toBeUndefined();
    console.info(`no answer: a pod of LocalAndRemote made after ${seconds()} s`);
    expect(await refusal).toMatch(/failed calling webhook .{1,2}remote\.offloading\.tributary\.dev/u);
  } finally {
    await hole.close();
  }
  await lab.start();
  await lab.untilInForce('far');
  await lab.makePod('far', 'kept');
  expect(strategyOf(await lab.tryPod('shop'))).toBe('LocalAndRemote');
});

test('the last namespace takes its webhook with it', async () => {
  for (const namespace of ['shop', 'far', 'home', 'kube-system']) lab.offload(namespace, null);
  await eventually('no webhooks but those of labels', async () => {
    return Object.keys(await lab.lists()).length === 0;
  });
  await lab.stop();
  await eventually('pods are made again', async () =>
    lab.tryPod('far').then(
      () => true,
      () => false,
    ),
  );
});

/** Takes connections and never answers. */
async function blackHole(
  port: number,
): Promise<{ connections: () => number; close: () => Promise<unknown> }> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    connections: () => sockets.length,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      return once(server, 'close');
    },
  };
}
