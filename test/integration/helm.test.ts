import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

import { binaries } from '../../lab/binaries.ts';
import { uninstallCommand } from '../../src/cli/install/uninstall.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from '../support/eventually.ts';
import { allObjects, differing, withoutOurKinds } from '../support/labs/all-objects.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../src/api/tenant-labels.ts';
import type { Manifest } from '../../src/api/manifest.ts';
import { forgeInstallation, keyOf } from '../../src/deploy/installation/objects.ts';
import { forgeUninstallHook, UNINSTALL_ACCOUNT } from '../../src/deploy/installation/uninstall-hook.ts';
import { defaultValues, type InstallValues, VALUES } from '../../src/deploy/installation/values.ts';

/** The chart, with the real helm. What it renders is what the program installs. */

const run = promisify(execFile);
const CHART = join(import.meta.dirname, '..', '..', 'deploy', 'chart');
const IMAGE = 'tributary:1';
const UNINSTALL = ['uninstall', 'tributary', '--namespace', 'kube-system', '--timeout', '2m'];

let directory: string;
let program: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'helm-'));
  ({ helm: program } = await binaries(undefined, ['helm']));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const helm = async (...args: string[]): Promise<string> =>
  (await run(program, args, { env: { HOME: directory, PATH: '' }, maxBuffer: 16_000_000 })).stdout;

/** Its complaint. */
const refused = async (...args: string[]): Promise<string> =>
  helm(...args).then(
    () => 'nothing was refused',
    (error: unknown) => (error as { stderr: string }).stderr,
  );

const byKey = (objects: readonly Manifest[]): Record<string, unknown> =>
  Object.fromEntries(objects.map((object) => [keyOf(object), JSON.parse(JSON.stringify(object)) as unknown]));

async function rendered(values: Partial<InstallValues>): Promise<Manifest[]> {
  const file = join(directory, 'values.yaml');
  writeFileSync(file, JSON.stringify(values));
  return parsed(await helm('template', 'tributary', CHART, '--no-hooks', '--values', file));
}

const parsed = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null);

const EVERYTHING: Partial<InstallValues> = {
  image: IMAGE,
  clusterName: 'rome-2',
  logLevel: 'debug',
  peeringService: 'LoadBalancer',
  peeringNodePort: 30_743,
  advertise: ['192.0.2.1:30743', '[2001:db8::1]:443'],
  // Whatever a text holds must come out of the templates as it is.
  apiServer: 'https://rome.example.org:6443/: "the eternal", #1 {{ .Values.image }}',
  homeApiServer: '192.0.2.1:6443',
  clusterDns: ['10.96.0.10', '2001:db8::a'],
  clusterDomain: 'rome.local',
  podCidrs: ['10.244.0.0/16', '2001:db8:1::/48'],
  serviceCidrs: ['10.96.0.0/16'],
  externalCidr: '10.71.0.0/20',
  viewPools: ['100.64.0.0/11'],
  reservedCidrs: ['192.168.0.0/16', '172.16.0.0/12'],
  gatewayReplicas: 3,
  wireguardPort: 51_900,
  tunnelEndpoints: ['192.0.2.1:51900'],
  tunnelMtu: 1380,
  lanInterfaces: ['eth0', 'eth1'],
  dashboard: true,
  serviceMonitor: true,
  prometheusRule: true,
  monitoringRelease: 'kps',
  grafanaDashboards: true,
  clusterArgs: ['--drain-seconds', '60', '--offload-namespaces', 'team=a&b<c'],
  gatewayArgs: ['--lease-seconds', '2'],
  nodeArgs: ['--ops-port', 'yes'],
};
const SWITCHES = Object.entries(VALUES)
  .filter(([, { kind }]) => kind === 'switch')
  .map(([name]) => name);

describe('the chart renders what the program installs', () => {
  test.each<[string, Partial<InstallValues>]>([
    ['the image alone', { image: IMAGE }],
    ['every value', EVERYTHING],
    ['every switch off', { ...EVERYTHING, ...Object.fromEntries(SWITCHES.map((name) => [name, false])) }],
    ['every switch on', { image: IMAGE, ...Object.fromEntries(SWITCHES.map((name) => [name, true])) }],
    ['node ports', { image: IMAGE, peeringService: 'NodePort' }],
    ['one node port', { image: IMAGE, peeringService: 'NodePort', peeringTrafficPolicy: 'Local' }],
    ...SWITCHES.map((name): [string, Partial<InstallValues>] => [
      `${name} the other way`,
      { image: IMAGE, [name]: VALUES[name as keyof InstallValues].default !== true },
    ]),
  ])('with %s', async (_what, some) => {
    const wanted = forgeInstallation({ ...defaultValues(), ...some });
    expect(byKey(await rendered(some))).toEqual(byKey(wanted));
  });
});

test('what it does before a release is removed is the hook of the program, and no part of the installation', async () => {
  const template = ['template', 'tributary', CHART, '--set', `image=${IMAGE}`];
  const all = parsed(await helm(...template));
  const hooks = all.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined);
  expect(byKey(hooks)).toEqual(byKey(forgeUninstallHook({ image: IMAGE, priorityClasses: true })));
  expect(byKey(all)).toEqual({ ...byKey(await rendered({ image: IMAGE })), ...byKey(hooks) });
});

test('helm lint has nothing to complain of', async () => {
  expect(await helm('lint', '--strict', CHART, '--set', `image=${IMAGE}`)).toContain('0 chart(s) failed');
});

/** Of a peer that does not answer: its object has a finalizer, and its namespace waits. */
const LEFT = [
  {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'ForeignCluster',
    metadata: { name: 'milan', finalizers: ['tributary.dev/peering'] },
    spec: { clusterID: 'milan'.padEnd(26, 'a'), endpoint: '127.0.0.1:1', outgoing: 'Enabled' },
  },
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: 'milan-shop',
      labels: { [LABEL_PEER]: 'milan', [LABEL_TENANCY]: TENANCY_CONTRACT },
    },
  },
];

describe('on a real API server', () => {
  let lab: RightsCluster;
  let kubeconfig: string;

  beforeAll(async () => {
    lab = await RightsCluster.up();
    ({ kubeconfig } = lab.cluster);
    await withoutOurKinds(lab.cluster);
  });
  afterAll(async () => lab?.down());

  const onCluster = async (...args: string[]): Promise<string> =>
    helm(...args, '--kubeconfig', kubeconfig, '--namespace', 'kube-system');
  const replicas = async (): Promise<number | undefined> => {
    const path = '/apis/apps/v1/namespaces/tributary-network/deployments/tributary-gateway';
    return (await lab.cluster.api.get<{ spec: { replicas: number } }>(path))?.spec.replicas;
  };

  const exists = async (path: string): Promise<boolean> =>
    (await lab.cluster.api.call('GET', path)).status === 200;

  /** In the place of the pod, which is pretended: with the account that Helm has made for it. */
  async function prepared(): Promise<string> {
    const said = { out: '', err: '' };
    const code = await uninstallCommand.run(['--prepare', '--yes', '--peer-timeout', '2s'], {
      io: { out: (text) => void (said.out += text), err: (text) => void (said.err += text) },
      signal: new AbortController().signal,
      clock: systemClock,
      open: async () => lab.clientOf(UNINSTALL_ACCOUNT),
    });
    expect({ code, ...said }).toMatchObject({ code: 0 });
    return said.out + said.err;
  }

  /** Whether an object of ours could be made. */
  const probe = async (): Promise<number> => {
    const made = {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'SearchDomain',
      metadata: { name: 'probe' },
      spec: { domain: 'example.org' },
    };
    const path = '/apis/tributary.dev/v1alpha1/searchdomains?dryRun=All';
    return (await lab.cluster.api.call('POST', path, made)).status;
  };

  interface Pods {
    items: { metadata: { name: string }; status: { phase: string } }[];
  }

  /** In the place of the kubelet. */
  async function endJob(phase: 'Failed' | 'Succeeded', act?: () => Promise<void>): Promise<void> {
    const path = '/api/v1/namespaces/tributary-system/pods';
    const selector = `labelSelector=app.kubernetes.io/instance=${UNINSTALL_ACCOUNT.name}`;
    let name: string | undefined;
    await awaited(
      'the pod of the Job runs',
      async () => {
        const list = await lab.cluster.api.get<Pods>(`${path}?${selector}`);
        name = list?.items.find(({ status }) => status.phase === 'Running')?.metadata.name;
        return name !== undefined;
      },
      { deadlineMs: 60_000, seen: async () => Promise.resolve(name) },
    );
    await act?.();
    const type = 'application/merge-patch+json';
    const answer = await lab.cluster.api.call('PATCH', `${path}/${name}/status`, { status: { phase } }, type);
    expect(answer.status).toBe(200);
  }

  test('it is installed, changed, rolled back, and removed without a trace', async () => {
    await lab.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }));
    const before = await allObjects(lab.cluster);
    const set = ['--set', `image=${IMAGE}`, '--set', 'clusterName=rome'];
    expect(await onCluster('install', 'tributary', CHART, ...set)).toContain('under the name rome');
    expect(await replicas()).toBe(1);
    await onCluster('upgrade', 'tributary', CHART, '--reset-then-reuse-values', '--set', 'gatewayReplicas=2');
    expect(await replicas()).toBe(2);
    await onCluster('rollback', 'tributary', '1');
    expect(await replicas()).toBe(1);
    await lab.apply(LEFT.map((object) => JSON.stringify(object)).join('\n---\n'));
    const failing = refused(...UNINSTALL, '--kubeconfig', kubeconfig);
    await endJob('Failed', async () => {
      const said = await prepared();
      expect(said).toContain('role cluster has not finished ForeignCluster milan');
      expect(said).toContain('removing the namespaces of peers milan-shop');
    });
    expect(await failing).toContain('failed');
    // Helm has removed nothing, and the account of the Job has not stayed.
    expect(await exists('/apis/apps/v1/namespaces/tributary-system/deployments/tributary-cluster')).toBe(
      true,
    );
    expect(await exists('/api/v1/namespaces/tributary-system/serviceaccounts/tributary-uninstall')).toBe(
      false,
    );
    await onCluster('rollback', 'tributary', '3', '--force-conflicts');
    expect(await replicas()).toBe(1);
    await awaited('new objects are taken again', async () => (await probe()) === 201, { seen: probe });
    const removing = helm(...UNINSTALL, '--kubeconfig', kubeconfig);
    await endJob('Succeeded', async () => {
      await awaited(
        'only namespaces of peers may be deleted',
        async () => {
          const account = await lab.as(UNINSTALL_ACCOUNT);
          const { status, body } = await account('DELETE', '/api/v1/namespaces/shop?dryRun=All');
          return status === 422 && body.includes('only namespaces of peers');
        },
        { seen: async () => Promise.resolve('no such refusal') },
      );
      expect(await prepared()).toContain('cleaning the network of every host');
    });
    await removing;
    await awaited(
      'nothing is left',
      async () => differing(before, await allObjects(lab.cluster)).length === 0,
      { seen: async () => differing(before, await allObjects(lab.cluster)) },
    );
  });
});

describe('wrong values are refused', () => {
  test.each([
    ['image=', 'build one with'],
    ['bogus=1', "additional properties 'bogus' not allowed"],
    ['clusterName=Rome City!', "at '/clusterName'"],
    ['logLevel=loud', "at '/logLevel'"],
    ['gatewayReplicas=0', "at '/gatewayReplicas'"],
    ['wireguardPort=70000', "at '/wireguardPort'"],
    ['network=maybe', "at '/network'"],
    ['podCidrs={10.244.0.0}', "at '/podCidrs/0'"],
    ['peeringNodePort=30743', "at '/peeringNodePort'"],
    ['apiServer=http://rome', "at '/apiServer'"],
  ])('%s', async (setting, message) => {
    expect(
      await refused('template', 'tributary', CHART, '--set', `image=${IMAGE}`, '--set', setting),
    ).toContain(message);
  });

  test('a release in a namespace that it consists of', async () => {
    const complaint = await refused(
      'template',
      'tributary',
      CHART,
      '--set',
      `image=${IMAGE}`,
      '--namespace=tributary-system',
    );
    expect(complaint).toContain('the release cannot be in namespace tributary-system');
  });
});
