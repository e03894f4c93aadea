import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

import { mainModule } from '../../lab/own-program.ts';
import { installCommand, upgradeCommand } from '../../src/cli/install/install.ts';
import { uninstallCommand } from '../../src/cli/install/uninstall.ts';
import type { Command } from '../../src/cli/command.ts';
import { ruleFile } from '../../src/deploy/monitoring/alerts.ts';
import { OPERATOR_API } from '../../src/deploy/monitoring/monitoring.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from '../support/eventually.ts';
import { allObjects, differing, withoutOurKinds } from '../support/labs/all-objects.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** Installing, changing and removing Tributary on a real API server, whose nodes pretend to run pods. */

const IMAGE = 'tributary:1';
const GROUP = '/apis/tributary.dev/v1alpha1';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const OPERATOR_KINDS = { PodMonitor: 'podmonitors', PrometheusRule: 'prometheusrules' };

/** As little of the operator's definition as an API server needs to serve the kind. */
const definitionOf = (kind: string, plural: string): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.monitoring.coreos.com` },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

let lab: RightsCluster;
let before: Map<string, string>;
/** Role `cluster`, in the place of its pretended pod. */
let role: ChildProcess | undefined;
let log = '';

interface Outcome {
  code: number;
  out: string;
  err: string;
}

async function run(command: Command, ...args: string[]): Promise<Outcome> {
  let [out, err] = ['', ''];
  const code = await command.run(args, {
    io: { out: (text) => void (out += text), err: (text) => void (err += text) },
    signal: new AbortController().signal,
    clock: systemClock,
    open: async (): Promise<HttpClient> =>
      createClient(await parseKubeconfig(readFileSync(lab.cluster.kubeconfig, 'utf8'))),
  });
  return { code, out, err };
}

const installed = async (...args: string[]): Promise<Outcome> =>
  run(installCommand, 'rome', '--image', IMAGE, '--yes', ...args);
const uninstalled = async (...args: string[]): Promise<Outcome> =>
  run(uninstallCommand, '--yes', '--peer-timeout', '2s', ...args);
const call = async (method: string, path: string, body?: object): Promise<number> => {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : undefined;
  return (await lab.cluster.api.call(method, path, body, type)).status;
};
const argumentsOf = async (name: string): Promise<string[]> => {
  const path = `/apis/apps/v1/namespaces/tributary-system/deployments/${name}`;
  const object = await lab.cluster.api.get<{
    spec: { template: { spec: { containers: { args: string[] }[] } } };
  }>(path);
  return object?.spec.template.spec.containers[0]?.args ?? [];
};

function startRole(): void {
  const options = {
    kubeconfig: lab.cluster.kubeconfig,
    'system-namespace': 'tributary-system',
    'peering-port': '0',
    'ops-port': '0',
    'webhook-port': '0',
    'drain-seconds': '1',
    'agent-image': IMAGE,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  role = spawn(process.execPath, [mainModule(), 'run', 'cluster', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  role.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text));
  role.stdout?.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-5000)));
}

async function killRole(): Promise<void> {
  const running = role;
  role = undefined;
  if (running === undefined || running.exitCode !== null) return;
  running.kill('SIGKILL');
  await once(running, 'exit');
}

beforeAll(async () => {
  lab = await RightsCluster.up();
  await withoutOurKinds(lab.cluster);
  await call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
  // Controllers give each namespace an account and the certificate of the cluster.
  for (const path of ['configmaps/kube-root-ca.crt', 'serviceaccounts/default']) {
    await awaited(
      `shop has ${path}`,
      async () => (await lab.cluster.api.get(`/api/v1/namespaces/shop/${path}`)) !== undefined,
    );
  }
  before = await allObjects(lab.cluster);
});

afterAll(async () => {
  await killRole();
  await lab?.down();
});

beforeEach(killRole);

test('with nothing but a name and an image it installs, says what it found, and waits for the roles', async () => {
  const { code, out, err } = await installed();
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const list = await lab.cluster.api.get<{ items: { status: { addresses: { address: string }[] } }[] }>(
    '/api/v1/nodes',
  );
  const address = list?.items[0]?.status.addresses[0]?.address;
  expect(out).toContain(`peers dial       ${address}:30743 (Service of type NodePort)`);
  expect(out).toMatch(/cluster {10}rome, Kubernetes v1\.\d+\.\d+, 1 node\(s\)/);
  expect(out).toMatch(/Services {9}\S+ \(ServiceCIDR objects\)/);
  expect(out).toContain('ready: Deployment tributary-system/tributary-cluster\n');
  expect(out).toContain('ready: DaemonSet tributary-network/tributary-node\n');
  expect(await argumentsOf('tributary-cluster')).toEqual(
    expect.arrayContaining(['--cluster-name', 'rome', '--advertise', `${address}:30743`]),
  );
});

test('a second time nothing changes', async () => {
  const versions = await allObjects(lab.cluster, { isWithVersions: true, only: /tributary/ });
  expect(await installed()).toMatchObject({ code: 0, err: '' });
  const again = await allObjects(lab.cluster, { isWithVersions: true, only: /tributary/ });
  // Status of pretended pods may come later. The record has said meanwhile that something is under way.
  expect(
    differing(versions, again).filter(
      (line) =>
        !/pods|replicasets|deployments|daemonsets|endpoint|configmaps \S+\/tributary-installation/.test(line),
    ),
  ).toEqual([]);
});

test('an upgrade begins with the values that are installed, and removes what they no longer have', async () => {
  const budget = '/apis/policy/v1/namespaces/tributary-network/poddisruptionbudgets/tributary-gateway';
  expect(await call('GET', budget)).toBe(200);
  const { code, out, err } = await run(
    upgradeCommand,
    '--pod-disruption-budgets',
    'false',
    '--image',
    'tributary:2',
    '--yes',
  );
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain('PodDisruptionBudget tributary-network/tributary-gateway');
  expect(await call('GET', budget)).toBe(404);
  expect(await argumentsOf('tributary-cluster')).toEqual(
    expect.arrayContaining(['--cluster-name', 'rome', 'tributary:2']),
  );
});

describe('an image that cannot be pulled', () => {
  const NAMELESS = 'tributary:cannot-be-pulled';
  const ROLES = ['deployments/tributary-gateway', 'daemonsets/tributary-node'];

  /** The roles as the API server has them: whoever changes one changes its generation. */
  const roles = async (): Promise<unknown[]> => {
    const paths = [
      'namespaces/tributary-system/deployments/tributary-cluster',
      ...ROLES.map((one) => `namespaces/tributary-network/${one}`),
    ];
    return Promise.all(
      paths.map(async (path) => {
        const object = await lab.cluster.api.get<{
          metadata: { uid: string; generation: number };
          status: { readyReplicas?: number; numberReady?: number };
        }>(`/apis/apps/v1/${path}`);
        const { metadata, status } = object ?? {};
        return [metadata?.uid, metadata?.generation, status?.readyReplicas ?? status?.numberReady];
      }),
    );
  };
  const podsOf = async (): Promise<string[]> => {
    const list = await lab.cluster.api.get<{ items: { metadata: { uid: string } }[] }>(
      '/api/v1/namespaces/tributary-system/pods',
    );
    return (list?.items ?? []).map(({ metadata }) => metadata.uid).toSorted();
  };

  test('is told by its name within a minute, and what runs runs on', async () => {
    const before = [await roles(), await podsOf()];
    const { code, err } = await run(upgradeCommand, '--image', NAMELESS, '--yes');
    expect([code, err]).toEqual([
      1,
      `image ${NAMELESS} cannot be pulled: ImagePullBackOff: Back-off pulling image "${NAMELESS}". ` +
        'Nothing was changed, and what runs here runs on. Name another one with --image\n',
    ]);
    expect([await roles(), await podsOf()]).toEqual(before);
    // The next one still begins with the values that run.
    expect(await run(upgradeCommand, '--yes')).toMatchObject({ code: 0, err: '' });
    expect(await argumentsOf('tributary-cluster')).toContain('tributary:2');
  });
});

test('nothing is installed and nothing replaced where nobody has agreed', async () => {
  const before = await argumentsOf('tributary-cluster');
  for (const command of [installCommand, upgradeCommand]) {
    const { code, out, err } = await run(command, '--image', 'tributary:3');
    expect([code, err]).toEqual([
      2,
      'there is no terminal to ask on, so nothing was changed; a script has to add --yes\n',
    ]);
    expect(out).toContain('image tributary:3');
  }
  expect(await argumentsOf('tributary-cluster')).toEqual(before);
});

test('objects of others with our name are left alone, and so is what Helm has made', async () => {
  const path = '/apis/apps/v1/namespaces/tributary-system/deployments/tributary-cluster';
  const names = ['meta.helm.sh/release-name', 'meta.helm.sh/release-namespace'];
  const mark = async (values: (string | null)[]): Promise<number> =>
    call('PATCH', path, {
      metadata: { annotations: Object.fromEntries(names.map((name, at) => [name, values[at]])) },
    });
  await mark(['ours', 'kube-system']);
  expect((await installed()).err).toContain('run helm upgrade ours --namespace kube-system');
  expect((await uninstalled()).err).toContain('run helm uninstall ours --namespace kube-system');
  await mark([null, null]);
});

test('objects that are stored in a version that this program does not know are not given up', async () => {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tunnels.tributary.dev';
  await lab.cluster.api.call(
    'PATCH',
    `${path}/status`,
    { status: { storedVersions: ['v1alpha1', 'v9'] } },
    'application/merge-patch+json',
  );
  const { code, err } = await installed();
  expect({ code, err }).toMatchObject({ code: 1 });
  expect(err).toContain('tunnels.tributary.dev v9');
  await lab.cluster.api.call(
    'PATCH',
    `${path}/status`,
    { status: { storedVersions: ['v1alpha1'] } },
    'application/merge-patch+json',
  );
});

test('kinds of the Prometheus operator that are not served are told before anything is changed', async () => {
  const versions = await allObjects(lab.cluster, {
    isWithVersions: true,
    only: /tributary-(system|network)/,
  });
  const { code, out, err } = await installed('--service-monitor', 'true', '--prometheus-rule', 'true');
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(
    'this cluster has no PodMonitor and PrometheusRule, kinds of the Prometheus operator (monitoring.coreos.com/v1): ' +
      'install that operator first, or choose --service-monitor false and --prometheus-rule false',
  );
  const again = await allObjects(lab.cluster, { isWithVersions: true, only: /tributary-(system|network)/ });
  // Status of pretended pods may come later.
  expect(
    differing(versions, again).filter(
      (line) => !/pods|replicasets|deployments|daemonsets|endpoint/.test(line),
    ),
  ).toEqual([]);
});

test('with the kinds of the operator, and as ConfigMaps for Grafana, what watches it is installed, and goes', async () => {
  for (const [kind, plural] of Object.entries(OPERATOR_KINDS)) {
    expect(await call('POST', DEFINITIONS, definitionOf(kind, plural))).toBe(201);
    await awaited(
      `${kind} is served`,
      async () => (await call('GET', `/apis/${OPERATOR_API}/${plural}`)) === 200,
      { seen: async () => Promise.resolve(plural) },
    );
  }
  const watched = ['--service-monitor', '--prometheus-rule', '--grafana-dashboards'];
  const on = watched.flatMap((option) => [option, 'true']);
  expect(await installed(...on, '--monitoring-release', 'kps')).toMatchObject({ code: 0, err: '' });
  const path = `/apis/${OPERATOR_API}/namespaces/tributary-system/prometheusrules/tributary`;
  const rule = await lab.cluster.api.get<{ metadata: { labels: object }; spec: object }>(path);
  expect(rule?.metadata.labels).toMatchObject({ release: 'kps' });
  expect(rule?.spec).toEqual(ruleFile());
  const map = '/api/v1/namespaces/tributary-system/configmaps/tributary-dashboard-tunnels';
  expect(await call('GET', map)).toBe(200);
  const { code, out } = await installed();
  expect(code).toBe(0);
  expect(out).toContain('PrometheusRule tributary-system/tributary');
  expect(await call('GET', path)).toBe(404);
  expect(await call('GET', map)).toBe(404);
  for (const plural of Object.values(OPERATOR_KINDS)) {
    expect(await call('DELETE', `${DEFINITIONS}/${plural}.monitoring.coreos.com`)).toBe(200);
  }
});

test('--dry-run prints all objects and changes nothing', async () => {
  const { code, out } = await run(installCommand, '--image', 'tributary:3', '--dry-run');
  expect(code).toBe(0);
  expect(parseAllDocuments(out).length).toBeGreaterThan(100);
  expect(await argumentsOf('tributary-cluster')).not.toContain('tributary:3');
});

describe('nothing is left', () => {
  /** What differs from the cluster before; the lab's own objects change by themselves. */
  const left = async (): Promise<string[]> => differing(before, await allObjects(lab.cluster));

  const offloadShop = async (): Promise<void> => {
    startRole();
    expect(
      await call('PATCH', '/api/v1/namespaces/shop', {
        metadata: { labels: { 'tributary.dev/offload': 'true' } },
      }),
    ).toBe(200);
    const path = `${GROUP}/namespaces/shop/namespaceoffloadings/offloading`;
    await awaited(
      'the label has made an object',
      async () => {
        const object = await lab.cluster.api.get<{ metadata: { finalizers?: string[] } }>(path);
        return (object?.metadata.finalizers ?? []).length > 0;
      },
      { deadlineMs: 60_000, seen: async () => Promise.resolve(log + String(role?.exitCode)) },
    );
  };
  const peerWith = async (name: string): Promise<void> => {
    const spec = { clusterID: name.padEnd(26, 'a'), endpoint: '127.0.0.1:1', outgoing: 'Enabled' };
    expect(
      await call('POST', `${GROUP}/foreignclusters`, {
        apiVersion: 'tributary.dev/v1alpha1',
        kind: 'ForeignCluster',
        metadata: { name, finalizers: ['tributary.dev/peering'] },
        spec,
      }),
    ).toBe(201);
  };

  test('although a label makes its object again, and a peer is dead', async () => {
    await offloadShop();
    await peerWith('milan');
    const { code, out, err } = await uninstalled();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('ending the offloading of shop');
    expect(out).toContain('nothing of Tributary is left in this cluster');
    await killRole();
    await call('PATCH', '/api/v1/namespaces/shop', {
      metadata: { labels: { 'tributary.dev/offload': null } },
    });
    expect(await left()).toEqual([]);
  });

  test('although nobody finishes objects: role cluster is dead', async () => {
    expect(await installed()).toMatchObject({ code: 0 });
    // As a role leaves them that does not come back.
    const finalizers = ['tributary.dev/offloading'];
    const metadata = {
      name: 'offloading',
      finalizers,
      labels: { 'tributary.dev/offloading-origin': 'label' },
    };
    const made = { apiVersion: 'tributary.dev/v1alpha1', kind: 'NamespaceOffloading', metadata, spec: {} };
    const path = `${GROUP}/namespaces/shop/namespaceoffloadings`;
    let body = '';
    await awaited(
      'the kind is served',
      async () => {
        const answer = await lab.cluster.api.call('POST', path, made);
        body = `${answer.status} ${answer.body}`;
        return answer.status === 201;
      },
      { deadlineMs: 30_000, seen: async () => Promise.resolve(body) },
    );
    await call('PATCH', '/api/v1/namespaces/shop', {
      metadata: { labels: { 'tributary.dev/offload': 'true' } },
    });
    await peerWith('milan');
    const { code, err } = await uninstalled('--drain-timeout', '2s');
    expect(code).toBe(0);
    expect(err).toContain('role cluster has not finished');
    await call('PATCH', '/api/v1/namespaces/shop', {
      metadata: { labels: { 'tributary.dev/offload': null } },
    });
    expect(await left()).toEqual([]);
  });

  test('a second time there is nothing to do', async () => {
    expect(await uninstalled()).toMatchObject({ code: 0, err: '' });
    expect(await left()).toEqual([]);
  });
});

test.each([
  [[], 'name the image, with --image'],
  [['--image', IMAGE, '--network', 'maybe'], '--network must be one of true, false'],
  [['--image', IMAGE, '--gateway-replicas', '0'], '--gateway-replicas: 0 is no number from 1 to 16'],
  [
    ['--image', IMAGE, '--pod-cidrs', '10.0.0.0/8', '--external-cidr', '10.70.0.0/20'],
    'overlaps with 10.0.0.0/8',
  ],
  [['--image', IMAGE, '--values', '/no/such/file'], 'there is no file /no/such/file (--values)'],
])('a mistake is told before anything is changed: %j', async (args, message) => {
  const { code, err } = await run(installCommand, 'rome', ...args);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

test('a values file is that of the chart', async () => {
  const file = join(tmpdir(), `values-${process.pid}.yaml`);
  writeFileSync(file, 'clusterName: milan\nbogus: 1\n');
  expect((await run(installCommand, '--image', IMAGE, '--values', file)).err).toContain('bogus is no value');
  writeFileSync(file, 'clusterName: milan\nnetwork: false\n');
  const { out } = await run(installCommand, '--image', IMAGE, '--values', file, '--dry-run');
  expect(out).toContain('- milan\n');
  expect(out).not.toContain('kind: DaemonSet');
});
