import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  CONDITION_OFFLOADED,
  LABEL_HOME_UID,
  LABEL_VIRTUAL_NODE,
  STORAGE_PROVISIONER,
  TAINT_VIRTUAL_NODE,
} from '../../src/api/names.ts';
import {
  events,
  namespaces,
  persistentVolumeClaims as claims,
  persistentVolumes as volumes,
  pods,
  resourceQuotas,
  serviceAccountTokens,
  storageClasses,
} from '../../src/api/resources.ts';
import type { PodSpec } from '../../src/api/wire.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { ignoring } from '../../src/lib/errors.ts';
import type { Claim, Volume } from '../../src/provider/storage/claims.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';
import { applyYaml, printed } from '../support/labs/rights-cluster.ts';

/** Claims here and their volumes over there, with real schedulers, volume controllers, and the rights that are printed. */

let lab: AgentLab;
let folder: string;
let kubeconfig: string;
/** With the rights of the agent, and no others. */
let agent: HttpClient;

beforeAll(async () => {
  lab = await AgentLab.up();
  folder = mkdtempSync(join(tmpdir(), 'tributary-storage-'));
  kubeconfig = join(folder, 'kubeconfig');
  const role = ['peer', '--virtual-node', NODE, '--namespaces', 'shop', '--image', 'tributary:test'];
  const metadata = { name: 'tributary-system' };
  await lab.homeCluster.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata });
  await applyYaml(lab.homeCluster, await printed(manifestsCommand, role));
  writeFileSync(kubeconfig, await agentKubeconfig());
  agent = createClient(await parseKubeconfig(readFileSync(kubeconfig, 'utf8')));
  await furnishForeign();
  const home = { provisioner: STORAGE_PROVISIONER, volumeBindingMode: 'WaitForFirstConsumer' };
  const named = (name: string, foreignClass: string): object => ({
    metadata: { name },
    ...home,
    ...(foreignClass !== '' && { parameters: { foreignClass } }),
  });
  for (const [name, there] of [
    ['foreign', 'manual'],
    ['unmapped', ''],
    ['dear', 'ssd'],
  ] as const) {
    await lab.home.create(storageClasses, named(name, there) as never);
  }
  await lab.start({ kubeconfig });
  await lab.ready();
});
afterAll(async () => {
  await agent?.close();
  await lab?.down();
  rmSync(folder, { recursive: true, force: true });
});

async function agentKubeconfig(): Promise<string> {
  const metadata = { namespace: 'tributary-system', name: `tributary-peer-${NODE}` };
  const spec = { audiences: [], expirationSeconds: 3600 };
  const made = await lab.home.create(serviceAccountTokens, { metadata, spec }, { subresource: 'token' });
  const token = made.status?.token;
  const { authority } = lab.homeCluster.pki;
  const ca = Buffer.from(authority.cert).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: lab.homeCluster.server, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

/** Lends two classes, has two disks of one of them, and room for volumes. */
async function furnishForeign(): Promise<void> {
  const annotations = { 'tributary.dev/storage-classes': 'manual' };
  await lab.foreign.patch(
    namespaces,
    { name: 'tenant' },
    { type: 'merge', body: { metadata: { annotations } } },
  );
  const hard = { 'requests.storage': '100Gi', persistentvolumeclaims: '10' };
  const quota = { namespace: 'tenant', name: 'tributary' };
  await lab.foreign.patch(resourceQuotas, quota, { type: 'merge', body: { spec: { hard } } });
  await lab.foreign.create(storageClasses, {
    metadata: { name: 'manual' },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  for (const name of ['disk-1', 'disk-2']) {
    await lab.foreign.create(volumes, {
      metadata: { name },
      spec: {
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'manual',
        hostPath: { path: `/tmp/${name}` },
      },
    });
  }
}

const placed: Partial<PodSpec> = {
  nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
  tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
  terminationGracePeriodSeconds: 1,
};

const ask = async (name: string, storageClassName: string): Promise<Claim> =>
  lab.home.create(claims, {
    metadata: { name, namespace: 'shop' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: '1Gi' } },
    },
  });
const mount = async (name: string, spec: Partial<PodSpec> = placed): Promise<void> => {
  await lab.home.create(pods, {
    metadata: { name, namespace: 'shop' },
    spec: {
      containers: [{ name: 'main', image: 'web:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
      ...spec,
    },
  });
};
const claim = async (name: string): Promise<Claim> => lab.home.get(claims, { namespace: 'shop', name });
const there = async (name: string): Promise<Claim | undefined> =>
  lab.foreign.get(claims, { namespace: 'tenant', name }).catch(ignoring('NotFound'));
const volume = async (name: string): Promise<Volume | undefined> =>
  lab.home.get(volumes, { name }).catch(ignoring('NotFound'));
const runs = async (name: string): Promise<void> =>
  eventually(
    `${name} runs`,
    async () => (await lab.home.get(pods, { namespace: 'shop', name })).status?.phase === 'Running',
  );
const said = async (name: string, reason: string): Promise<string | undefined> => {
  const fieldSelector = `involvedObject.name=${name},involvedObject.kind=PersistentVolumeClaim`;
  const { items } = await lab.home.list(events, { namespace: 'shop', fieldSelector });
  return items.find((event) => event.reason === reason)?.message;
};

test('a claim is bound to a volume over there, which ends with it, also while no agent looks', async () => {
  const { uid } = (await ask('data', 'foreign')).metadata;
  await mount('data');
  await eventually('the claim over there', async () => (await there('data')) !== undefined);
  // Somewhere between the writes; whatever has been done by then is found again.
  await lab.kill();
  await lab.start({ kubeconfig });
  await runs('data');
  const remote = await there('data');
  expect(remote?.metadata.labels).toMatchObject({ [LABEL_HOME_UID]: uid });
  expect(remote?.spec).toMatchObject({ storageClassName: 'manual' });
  expect(await claim('data')).toMatchObject({
    status: { phase: 'Bound' },
    spec: { volumeName: `tributary-${uid}` },
  });
  const real = async (): Promise<string | undefined> =>
    (await volume(`tributary-${uid}`))?.spec?.capacity?.['storage'];
  await eventually('its real size', async () => (await real()) === '2Gi');
  expect((await volume(`tributary-${uid}`))?.metadata.annotations).toMatchObject({
    'tributary.dev/foreign-volume': expect.stringMatching(/^disk-/u),
  });

  await lab.kill();
  await lab.home.delete(pods, { namespace: 'shop', name: 'data' }, { gracePeriodSeconds: 0 });
  await lab.home.delete(claims, { namespace: 'shop', name: 'data' });
  await lab.start({ kubeconfig });
  await eventually('gone over there', async () => (await there('data')) === undefined);
  await eventually('gone here', async () => (await volume(`tributary-${uid}`)) === undefined);
});

test.each([
  ['unmapped', 'unmapped', 'StorageClassNotMapped', /parameter foreignClass/u],
  ['not-lent', 'dear', 'Invalid', /StorageClass that this cluster lends/u],
  ['taken', 'foreign', 'NameTaken', /is not ours; it is left alone/u],
])(
  'no volume can be made: %s; the claim says why, and the scheduler may choose again',
  async (name, storageClass, reason, message) => {
    if (name === 'taken') {
      await lab.foreign.create(claims, {
        metadata: { name, namespace: 'tenant' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'manual',
          resources: { requests: { storage: '1Gi' } },
        },
      });
    }
    await ask(name, storageClass);
    await mount(name);
    await eventually('said', async () => (await said(name, reason)) !== undefined);
    expect(await said(name, reason)).toMatch(message);
    await eventually(
      'given back',
      async () =>
        (await claim(name)).metadata.annotations?.['volume.kubernetes.io/selected-node'] === undefined,
    );
    expect((await there(name))?.metadata.labels?.[LABEL_HOME_UID]).toBeUndefined();
    await lab.home.delete(pods, { namespace: 'shop', name }, { gracePeriodSeconds: 0 });
    await lab.home.delete(claims, { namespace: 'shop', name });
  },
);

test('a pod that is put here by name cannot take a volume of this cluster along', async () => {
  await ask('mine', 'nothing-of-ours');
  await mount('mine', { nodeName: NODE });
  const condition = async (): Promise<{ reason?: string; message?: string } | undefined> =>
    (await lab.home.get(pods, { namespace: 'shop', name: 'mine' })).status?.conditions?.find(
      ({ type }) => type === CONDITION_OFFLOADED,
    );
  await eventually('said', async () => (await condition())?.reason === 'VolumeNotHere');
  expect((await condition())?.message).toMatch(/cannot follow the pod/u);
});

test('the agent may write its own volumes, and of claims only that its node is not chosen', async () => {
  const local = (key: string, value: string, path: string): object => ({
    metadata: {
      name: 'evil',
      annotations: { 'pv.kubernetes.io/provisioned-by': STORAGE_PROVISIONER },
    },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      local: { path },
      claimRef: { namespace: 'shop', name: 'x' },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
      },
    },
  });
  const good = local(LABEL_VIRTUAL_NODE, NODE, '/var/lib/tributary/remote/x') as Volume;
  const bad: [object, RegExp][] = [
    [
      local('kubernetes.io/os', 'linux', '/var/lib/tributary/remote/x'),
      /has its place on the virtual nodes/u,
    ],
    [
      local(LABEL_VIRTUAL_NODE, 'other', '/var/lib/tributary/remote/x'),
      /has its place on the virtual nodes/u,
    ],
    [local(LABEL_VIRTUAL_NODE, NODE, '/etc'), /volumes of tributary.dev\/storage only/u],
    [{ ...good, spec: { ...good.spec, claimRef: { namespace: 'default', name: 'x' } } }, /offloaded to it/u],
    [{ ...good, metadata: { name: 'evil' } }, /volumes of tributary.dev\/storage only/u],
  ];
  for (const [one, message] of bad) {
    await expect(agent.create(volumes, one as never)).rejects.toThrow(message);
  }
  const made = await agent.create(volumes, good);
  await agent.delete(volumes, made.metadata);
  await expect(agent.delete(volumes, { name: 'none' })).rejects.toThrow(/not found/u);

  const mine = await claim('mine');
  const kind = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
  const chosen = (node: string): Claim => ({
    ...kind,
    ...mine,
    metadata: { ...mine.metadata, annotations: { 'volume.kubernetes.io/selected-node': node } },
  });
  await expect(agent.replace(claims, chosen(NODE))).rejects.toThrow(/may give a claim back/u);
  const labelled = { ...kind, ...mine, metadata: { ...mine.metadata, labels: { a: 'b' } } };
  await expect(agent.replace(claims, labelled)).rejects.toThrow(/changes nothing of a claim/u);
});
