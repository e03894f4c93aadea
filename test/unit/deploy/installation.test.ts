import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/manifest.ts';
import { forgeInstallation, keyOf } from '../../../src/deploy/installation/objects.ts';
import { defaultValues, type InstallValues } from '../../../src/deploy/installation/values.ts';
import type { PodSpec } from '../../../src/api/wire.ts';

const values = (some: Partial<InstallValues> = {}): InstallValues => ({
  ...defaultValues(),
  image: 'tributary:1',
  ...some,
});
const installed = (some: Partial<InstallValues> = {}): Manifest[] => forgeInstallation(values(some));
const keys = (some: Partial<InstallValues> = {}): Set<string> => new Set(installed(some).map(keyOf));

function podOf(objects: readonly Manifest[], name: string): PodSpec {
  const found = objects.find(
    ({ kind, metadata }) => ['Deployment', 'DaemonSet'].includes(kind) && metadata.name === name,
  ) as { spec: { template: { spec: PodSpec } } } | undefined;
  if (found === undefined) throw new Error(`no pod of ${name}`);
  return found.spec.template.spec;
}

test('kinds come first, then namespaces, then the roles; each object once', () => {
  const objects = installed();
  const firstOf = (what: (object: Manifest) => boolean): number => objects.findIndex(what);
  const isKind =
    (kind: string) =>
    (object: Manifest): boolean =>
      object.kind === kind;
  const lastDefinition = objects.findLastIndex(isKind('CustomResourceDefinition'));
  const lastNamespace = objects.findLastIndex(isKind('Namespace'));
  expect(lastDefinition).toBeLessThan(firstOf(isKind('Namespace')));
  expect(lastNamespace).toBeLessThan(firstOf(({ metadata }) => metadata.namespace !== undefined));
  const roles = ['tributary-cluster', 'tributary-gateway', 'tributary-node'].map((name) =>
    firstOf(({ kind, metadata }) => ['Deployment', 'DaemonSet'].includes(kind) && metadata.name === name),
  );
  expect(roles).toEqual(roles.toSorted((a, b) => a - b));
  expect(new Set(objects.map(keyOf)).size).toBe(objects.length);
});

test('each bears the label by which it is found again', () => {
  for (const { metadata } of installed({
    serviceMonitor: true,
    prometheusRule: true,
    grafanaDashboards: true,
  })) {
    expect(metadata.labels).toMatchObject({
      'app.kubernetes.io/name': 'tributary',
      'tributary.dev/installation': 'tributary',
    });
  }
});

describe('switches', () => {
  const watched = { serviceMonitor: true, prometheusRule: true, grafanaDashboards: true };
  const all = keys(watched);
  test.each([
    [{ podDisruptionBudgets: false }, ['policy/v1 PodDisruptionBudget tributary-network/tributary-gateway']],
    [{ priorityClasses: false }, ['scheduling.k8s.io/v1 PriorityClass /tributary']],
    [
      { networkPolicies: false },
      [
        'networking.k8s.io/v1 NetworkPolicy tributary-system/tributary-cluster',
        'networking.k8s.io/v1 NetworkPolicy tributary-agents/tributary-strangers',
      ],
    ],
    [{ serviceMonitor: false }, ['monitoring.coreos.com/v1 PodMonitor tributary-system/tributary']],
    [{ prometheusRule: false }, ['monitoring.coreos.com/v1 PrometheusRule tributary-system/tributary']],
    [
      { grafanaDashboards: false },
      ['peerings', 'tunnels'].map((name) => `v1 ConfigMap tributary-system/tributary-dashboard-${name}`),
    ],
  ])('%j leaves out %j', (some, missing) => {
    expect([...all.difference(keys({ ...watched, ...some }))]).toEqual(missing);
  });

  test('pods have the priority that is there', () => {
    for (const priorityClasses of [true, false]) {
      const objects = installed({ priorityClasses });
      for (const name of ['tributary-cluster', 'tributary-gateway', 'tributary-node']) {
        expect(podOf(objects, name).priorityClassName).toBe(priorityClasses ? 'tributary' : undefined);
      }
    }
  });

  test('the dashboard is an argument of role cluster, and absent without it', () => {
    const argsOf = (dashboard: boolean): string =>
      podOf(installed({ dashboard }), 'tributary-cluster').containers[0]?.args?.join(' ') ?? '';
    expect(argsOf(true)).toContain('--dashboard on');
    expect(argsOf(false)).not.toContain('--dashboard');
  });

  test('without a network there is no role that changes hosts', () => {
    const objects = installed({ network: false });
    expect(objects.some(({ kind }) => kind === 'DaemonSet')).toBe(false);
    expect(podOf(objects, 'tributary-gateway').containers[0]?.securityContext?.capabilities).toEqual({
      drop: ['ALL'],
    });
  });
});

describe('one process', () => {
  const one = installed({ oneProcess: true, clusterArgs: ['--drain-seconds', '60'], tunnelMtu: 1380 });
  const workloads = (objects: readonly Manifest[]): string[] =>
    objects.flatMap(({ kind, metadata }) =>
      ['Deployment', 'DaemonSet'].includes(kind) ? [`${metadata.namespace}/${metadata.name}`] : [],
    );

  test('is one pod on the host network, beside the program of the tunnel', () => {
    expect(workloads(one)).toEqual(['tributary-system/tributary-cluster']);
    const { hostNetwork, serviceAccountName, containers } = podOf(one, 'tributary-cluster');
    expect({ hostNetwork, serviceAccountName }).toEqual({
      hostNetwork: true,
      serviceAccountName: 'tributary-cluster',
    });
    expect(containers.map(({ name }) => name)).toEqual(['tributary', 'wireguard']);
    expect(containers.map(({ volumeMounts }) => volumeMounts?.map(({ name }) => name))).toEqual([
      ['wireguard', 'account'],
      ['wireguard', 'tun'],
    ]);
  });

  test('has the arguments of all roles, each once, and ports that those of the roles leave free', () => {
    const args = podOf(one, 'tributary-cluster').containers[0]?.args ?? [];
    expect(args.slice(0, 2)).toEqual(['run', 'all']);
    expect(args.filter((arg) => arg.startsWith('--')).toSorted()).toEqual(
      [...new Set(args.filter((arg) => arg.startsWith('--')))].toSorted(),
    );
    expect(args.join(' ')).toContain('--tunnel-mtu 1380 --drain-seconds 60');
    const portsOf = (objects: readonly Manifest[], name: string): number[] =>
      podOf(objects, name).containers.flatMap(
        ({ ports }) => ports?.map(({ containerPort }) => containerPort) ?? [],
      );
    expect(portsOf(one, 'tributary-cluster')).toEqual([7481, 7443, 7483, 51_820]);
    const others = ['tributary-gateway', 'tributary-node'].flatMap((name) => portsOf(installed(), name));
    // The tunnel's port stays the same: peers know it.
    expect(others.filter((port) => portsOf(one, 'tributary-cluster').includes(port))).toEqual([51_820]);
  });

  test('adds no right but that to tokens, and takes no fence away', () => {
    const rights = (some: Partial<InstallValues>): Map<string, unknown> =>
      new Map(
        installed(some)
          .filter(({ kind }) => /Role|Policy/u.test(kind))
          .map((object) => [keyOf(object), object] as const),
      );
    const [before, after] = [rights({}), rights({ oneProcess: true })];
    const fences = [...before].filter(([key]) => key.includes('AdmissionPolic'));
    expect([...after].filter(([key]) => key.includes('AdmissionPolic'))).toEqual(fences);
    const rulesIn = (all: Map<string, unknown>): Set<string> =>
      new Set(
        [...all].flatMap(([key, object]) =>
          ((object as { rules?: object[] }).rules ?? []).map(
            (rule) => `${key.replace('-node', '-gateway')} ${JSON.stringify(rule)}`,
          ),
        ),
      );
    const more = [...rulesIn(after).difference(rulesIn(before))].filter((rule) => !rule.includes('"leases"'));
    expect(more).toEqual([
      'rbac.authorization.k8s.io/v1 Role tributary-agents/tributary-cluster ' +
        '{"apiGroups":[""],"resources":["serviceaccounts/token"],"verbs":["create"]}',
      'rbac.authorization.k8s.io/v1 Role tributary-network/tributary-cluster ' +
        '{"apiGroups":[""],"resources":["serviceaccounts/token"],"resourceNames":["tributary-gateway"],"verbs":["create"]}',
    ]);
  });

  test('says whose WireGuard; the choice of pods for agents changes nothing but an argument', () => {
    const shared = installed({ oneProcess: true, agents: 'shared', wireguard: 'userspace' });
    const [first, second] = podOf(shared, 'tributary-cluster').containers;
    expect(first?.args?.join(' ')).toContain(' --wireguard userspace ');
    expect(second?.command?.at(-1)).toBe('userspace');
    expect(shared.map(keyOf)).toEqual(one.map(keyOf));
  });

  test('needs a namespace that admits it, and only then', () => {
    const levelOf = (objects: readonly Manifest[]): string | undefined =>
      objects.find(({ kind, metadata }) => kind === 'Namespace' && metadata.name === 'tributary-system')
        ?.metadata.labels?.['pod-security.kubernetes.io/enforce'];
    expect(levelOf(one)).toBe('privileged');
    expect(levelOf(installed())).toBe('restricted');
  });

  test('without tunnels it is not root', () => {
    const pod = podOf(installed({ oneProcess: true, network: false }), 'tributary-cluster');
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true });
    expect(pod.containers).toHaveLength(1);
  });
});

test('role cluster alone knows the proxy, by a Secret that need not be there', () => {
  const objects = installed();
  const proxyOf = (name: string): unknown[] =>
    (podOf(objects, name).containers[0]?.env ?? []).filter((one) => /PROXY/u.test(one.name));
  const from = (key: string): object => ({
    name: key,
    valueFrom: { secretKeyRef: { name: 'tributary-proxy', key, optional: true } },
  });
  expect(proxyOf('tributary-cluster')).toEqual([from('HTTPS_PROXY'), from('NO_PROXY')]);
  expect(proxyOf('tributary-gateway')).toEqual([]);
});

test('values become arguments of the roles, and those that are not chosen do not', () => {
  const objects = installed({
    clusterName: 'rome',
    advertise: ['192.0.2.1:30743', 'rome.example.org:443'],
    tunnelMtu: 1380,
    clusterArgs: ['--credential-seconds', '7200'],
  });
  const argsOf = (name: string): string => podOf(objects, name).containers[0]?.args?.join(' ') ?? '';
  expect(argsOf('tributary-cluster')).toContain(
    '--cluster-name rome --log-level info --agents perPeer --advertise 192.0.2.1:30743,rome.example.org:443 --credential-seconds 7200',
  );
  expect(argsOf('tributary-gateway')).toContain('--tunnel-mtu 1380');
  expect(argsOf('tributary-node')).toMatch(/--log-level info --tunnel-mtu 1380$/);
  expect(argsOf('tributary-cluster')).not.toContain('--pod-cidr');
});

test.each([
  [{ image: '' }, 'image "" is not the name of a container image'],
  [{ peeringNodePort: 30_743 }, 'a Service of type ClusterIP has no node port 30743'],
  [{ gatewayReplicas: 0 }, 'replicas must be from 1 to 16, not 0'],
])('%j is refused', (some, message) => {
  expect(() => installed(some)).toThrow(message);
});
