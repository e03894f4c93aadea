import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mainModule } from '../../lab/own-program.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { announcementData } from '../../src/api/own-announcement.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { configMaps, namespaces, nodes, secrets } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { type HttpClient, createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/** The commands for people as people run them, on a real API server; the cluster role is played by the test. */

// Each command is a program of its own to start.
const NAMESPACE = 'tributary-system';
const [MILAN, HOME] = ['milan'.padEnd(26, 'a'), 'home'.padEnd(26, 'c')];
const NOW = '2026-01-01T00:00:00Z';

let lab: RightsCluster;
let client: HttpClient;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['crds']));
  client = createClient(await parseKubeconfig(readFileSync(lab.cluster.kubeconfig, 'utf8')));
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
  const own = { clusterID: HOME, clusterName: 'Home', endpoints: ['a:1'], port: 1, protocols: [1] };
  await client.create(configMaps, {
    metadata: { namespace: NAMESPACE, name: 'tributary-announcement' },
    data: announcementData(own),
  });
});
afterAll(async () => {
  await client?.close();
  await lab?.down();
});

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** The program itself, with the user's kubeconfig. */
async function tributary(line: string, input = ''): Promise<Ended> {
  const args = [mainModule(), ...line.split(' '), '--kubeconfig', lab.cluster.kubeconfig];
  const child = spawn(process.execPath, args, { stdio: 'pipe' });
  const ended: Ended = { code: null, out: '', err: '' };
  child.stdout.on('data', (text: Buffer) => (ended.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (ended.err += text.toString()));
  child.stdin.end(input);
  ended.code = await new Promise((resolve) => child.once('close', resolve));
  return ended;
}

const setStatus = async (name: string, status: object): Promise<void> => {
  const { metadata } = await client.get(foreignClusters, { name });
  const body = { status: { ...status, observedGeneration: metadata.generation } };
  await client.patch(foreignClusters, { name }, { type: 'merge', body }, { subresource: 'status' });
};
/** As the cluster role makes it of a contract, and its agent says that it is Ready, and lets pods in. */
async function virtualNode(name: string, provider: string): Promise<void> {
  await client.create(virtualNodes, {
    metadata: { name, labels: { 'tributary.dev/provider': provider } },
    spec: {
      kubeconfigSecretRef: { namespace: NAMESPACE, name: 'x' },
      resources: { cpu: '4', memory: '8Gi', pods: '10' },
    },
  });
  const ready = { type: 'Ready', status: 'True', reason: 'AsExpected', message: '', lastTransitionTime: NOW };
  const body = { status: { conditions: [ready] } };
  await client.patch(virtualNodes, { name }, { type: 'merge', body }, { subresource: 'status' });
  await client.create(nodes, { metadata: { name } });
  await client.patch(nodes, { name }, { type: 'merge', body: { spec: { taints: null } } });
}
const spec = async (name: string): Promise<unknown> => (await client.get(foreignClusters, { name })).spec;

test('a token made here is used there, peered, and ended', async () => {
  const made = await tributary('token create --ttl 10m --name door');
  expect(made).toMatchObject({ code: 0 });
  expect(made.out).toMatch(new RegExp(`^${HOME}\\.door\\.[A-Za-z0-9_-]{43}\n$`));
  expect((await tributary('token list')).out).toMatch(/\ndoor /);

  const peering = tributary('peer 10.0.0.1:7443 --token - --name there --namespaces shop', made.out);
  await eventually('the ForeignCluster', async () => (await client.list(foreignClusters)).items.length === 1);
  const { metadata, spec: wanted } = await client.get(foreignClusters, { name: 'there' });
  expect(wanted).toMatchObject({
    clusterID: HOME,
    endpoint: '10.0.0.1:7443',
    outgoing: 'Enabled',
    incoming: 'Auto',
  });
  const secret = await client.get(secrets, {
    namespace: NAMESPACE,
    name: wanted?.joinTokenSecretRef?.name ?? '',
  });
  expect(Buffer.from(secret.data?.['token'] ?? '', 'base64').toString()).toBe(made.out.trim());
  await virtualNode('lent', HOME);
  await setStatus('there', { outgoing: { phase: 'Established', since: NOW }, link: { connected: true } });
  expect(await peering).toMatchObject({ code: 0, err: '' });
  const owned = await client.get(secrets, { namespace: NAMESPACE, name: secret.metadata.name });
  expect(owned.metadata.ownerReferences).toMatchObject([{ kind: 'ForeignCluster', uid: metadata.uid }]);
  expect((await tributary('peerings')).out).toMatch(/\nthere .* Established +None\n/);

  const ending = tributary('unpeer there --force');
  await eventually('the wish to end', async () => JSON.stringify(await spec('there')).includes('Disabled'));
  await client.delete(virtualNodes, { name: 'lent' });
  await setStatus('there', { outgoing: { phase: 'None' }, incoming: { phase: 'None' } });
  expect(await ending).toMatchObject({ code: 0, err: '' });
  expect(await spec('there')).toMatchObject({ outgoing: 'Disabled', incoming: 'Disabled' });
  expect((await tributary('token delete door')).code).toBe(0);
});

test('the API server takes an ID that is confirmed later, and the status that shows who answers', async () => {
  await client.create(foreignClusters, { metadata: { name: 'asked' }, spec: { endpoint: '10.0.0.9:1' } });
  await setStatus('asked', { answeredBy: MILAN });
  expect((await client.get(foreignClusters, { name: 'asked' })).status?.answeredBy).toBe(MILAN);
  const refused = await tributary('peer 10.0.0.9:1');
  expect(refused.code).toBe(2);
  expect(refused.err).toContain('there is no terminal');
  const given = await tributary(`peer 10.0.0.9:1 --name asked --id ${MILAN} --timeout 1s`);
  expect(given.code).toBe(1);
  expect(await spec('asked')).toMatchObject({ clusterID: MILAN });
  const taken = await tributary(`peer 10.0.0.9:1 --name asked --id ${HOME} --timeout 1s`);
  expect(taken.err).toMatch(/stands for another cluster|is known already/);
});

test('approval, network keys, and who we are', async () => {
  await client.create(peeringRequests, {
    metadata: { name: MILAN },
    spec: { clusterID: MILAN, namespaces: ['shop'] },
  });
  expect(await tributary(`approve peeringrequest ${MILAN}`)).toMatchObject({ code: 0, err: '' });
  expect((await client.get(peeringRequests, { name: MILAN })).spec.approval).toBe('Approved');
  expect(await tributary('deny peeringrequest asked')).toMatchObject({ code: 0, err: '' });
  expect((await client.get(peeringRequests, { name: MILAN })).spec.approval).toBe('Denied');
  expect(await tributary('network-key create --name ours')).toMatchObject({ code: 0, err: '' });
  expect((await tributary('network-key create --name ours')).code).toBe(1);
  expect((await tributary('id')).out).toContain(HOME);
});

test('a namespace is offloaded and comes home, and the pages and policies are what the API server takes', async () => {
  const there = { namespace: 'shop', name: 'offloading' };
  await client.create(namespaces, { metadata: { name: 'shop' } });
  const unready = await tributary('offload shop');
  expect(unready).toMatchObject({ code: 1, out: '' });
  expect(unready.err).toContain('there is no virtual node');
  await virtualNode('milan', MILAN);

  const offloading = tributary(`offload shop --strategy Remote --clusters ${MILAN} --existing-pods Move`);
  await eventually(
    'the NamespaceOffloading',
    async () => (await client.list(namespaceOffloadings)).items.length === 1,
  );
  const { metadata, spec: wanted } = await client.get(namespaceOffloadings, there);
  expect(wanted).toMatchObject({ podStrategy: 'Remote', existingPods: 'Move' });
  const clusters = [
    {
      cluster: MILAN,
      virtualNodes: ['milan'],
      remoteNamespace: 'shop-x',
      phase: 'Ready',
      reason: 'AsExpected',
    },
  ];
  const status = { observedGeneration: metadata.generation, clusters };
  await client.patch(
    namespaceOffloadings,
    there,
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  );
  expect(await offloading).toMatchObject({ code: 0, err: '' });
  expect((await tributary('offload shop --strategy Local')).err).toContain(
    'podStrategy "Remote"; to change that',
  );

  const page = await tributary('status -o json');
  expect(page.err).toBe('');
  expect(JSON.parse(page.out)).toMatchObject({
    clusterID: HOME,
    unreadable: [],
    virtualNodes: [{ name: 'milan', pods: '0 of 10' }],
    namespaces: [{ name: 'shop', strategy: 'Remote', abroad: 0 }],
  });
  expect((await tributary('discover')).code).toBe(0);
  expect(JSON.parse((await tributary('top -o json')).out)).toMatchObject({
    virtualNodes: [{ name: 'milan' }],
  });
  expect((await tributary('logs')).err).toContain('no pod of Tributary is in this cluster');

  const body = { metadata: { finalizers: ['tributary.dev/offloading'] } };
  await client.patch(namespaceOffloadings, there, { type: 'merge', body });
  const returning = tributary('unoffload shop');
  await eventually(
    'the deletion',
    async () => (await client.get(namespaceOffloadings, there)).metadata.deletionTimestamp !== undefined,
  );
  const none = { metadata: { finalizers: null } };
  await client.patch(namespaceOffloadings, there, { type: 'merge', body: none });
  expect(await returning).toMatchObject({ code: 0, err: '' });
});

test('policies that options write', async () => {
  expect((await tributary('network-key create --name shared')).code).toBe(0);
  const share = `policy share friends --peers ${MILAN} --network-key shared --found-by LAN --percent 20`;
  const more = '--cpu 16 --memory 8Gi --pods 50 --storage 1Gi --approval Token --pod-security restricted';
  expect(await tributary(`${share} ${more}`)).toMatchObject({ code: 0, err: '' });
  const accept = `policy accept friends --anyone --namespaces shop --min-cpu 2 --cpu 8 --approval Automatic`;
  expect(await tributary(`${accept} --shape PerNode`)).toMatchObject({ code: 0, err: '' });
  expect((await tributary(`${share} ${more}`)).out).toBe('SharingPolicy friends is unchanged\n');
  expect((await tributary(`${share} --cpu 4`)).err).toContain('SharingPolicy friends has limits');
  expect((await tributary('policy list')).out).toMatch(/\nfriends +share .*Token .*\nfriends +accept /);
  expect(await tributary('policy delete friends --kind share --now')).toMatchObject({ code: 0, err: '' });
});
