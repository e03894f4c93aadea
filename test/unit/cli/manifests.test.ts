import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import type { Command } from '../../../src/cli/command.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import { tenantKubeconfigCommand } from '../../../src/cli/tenant-kubeconfig.ts';
import { tenantCommand } from '../../../src/cli/tenant.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { forgeTenantPolicies } from '../../../src/hosting/policies/policies.ts';

const POLICIES = forgeTenantPolicies().length;

async function run(command: Command, args: string): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const open = async (): Promise<never> => Promise.reject(new Error('no cluster is asked'));
  const { signal } = new AbortController();
  const code = await command.run(
    args.split(' ').filter((arg) => arg !== ''),
    { io, signal, clock: systemClock, open },
  );
  return { code, out, err };
}

const peer = 'peer --virtual-node milan --image tributary:1 --namespaces';
test.each([
  ['crds', manifestsCommand, 11],
  ['cluster --image tributary:1', manifestsCommand, 82 + POLICIES],
  [
    'cluster --image tributary:1 --service NodePort --node-port 30743 --advertise a:1,b:2',
    manifestsCommand,
    82 + POLICIES,
  ],
  [
    'cluster --image tributary:1 --cluster-dns 10.96.0.10 --cluster-domain cluster.local',
    manifestsCommand,
    82 + POLICIES,
  ],
  [`${peer} shop --cluster-dns 10.96.0.10 --cluster-domain cluster.local`, manifestsCommand, 19],
  ['gateway --image tributary:1 --log-level debug', manifestsCommand, 10],
  ['gateway --image tributary:1 --network off', manifestsCommand, 6],
  [
    'gateway --image tributary:1 --replicas 2 --wireguard-port 1 --tunnel-endpoint none',
    manifestsCommand,
    10,
  ],
  ['node --image tributary:1 --tunnel-mtu 1300', manifestsCommand, 6],
  ['clean-up --image tributary:1', manifestsCommand, 2],
  [`${peer} shop`, manifestsCommand, 19],
  [`${peer} shop,web --node m --kubeconfig-secret other/name`, manifestsCommand, 22],
  ['--peer rome --namespace a', tenantCommand, 13 + POLICIES],
  ['--peer rome --namespace a,b --quota cpu=1 --pod-security restricted', tenantCommand, 24 + POLICIES],
])('"%s" prints YAML that holds whole objects', async (args, command, count) => {
  const { code, out, err } = await run(command, args);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const objects = parseAllDocuments(out).map((document) => document.toJS() as { kind?: string });
  expect(objects.filter(({ kind }) => kind !== undefined)).toHaveLength(count);
  expect(out).not.toMatch(/[&*]a\d/);
});

test('what YAML 1.1 takes for a truth value is quoted: kubectl reads that', async () => {
  for (const args of [
    'gateway --image tributary:1 --network off',
    'cluster --image tributary:1 --preshared-keys on',
  ]) {
    const { out } = await run(manifestsCommand, args);
    const strings = parseAllDocuments(out, { version: '1.1' }).flatMap(
      (document) =>
        (document.toJS() as { spec?: { template?: { spec: { containers: { args?: unknown[] }[] } } } }).spec
          ?.template?.spec.containers[0]?.args ?? [],
    );
    expect(strings).toContain(args.split(' ').at(-1));
  }
});

type Pod = { containers: { args?: string[]; ports?: { name: string; containerPort: number }[] }[] };
const podOf = async (args: string): Promise<Pod['containers'][number]> => {
  const { out, err } = await run(manifestsCommand, args);
  expect(err).toBe('');
  const pods = parseAllDocuments(out).flatMap(
    (document) => (document.toJS() as { spec?: { template?: { spec: Pod } } }).spec?.template?.spec ?? [],
  );
  expect(pods).toHaveLength(1);
  return pods[0]?.containers[0] ?? {};
};

test.each([
  [
    'cluster --image x --offload-namespaces tier=batch,!legacy',
    ['--offload-namespaces', 'tier=batch,!legacy'],
  ],
  [
    'cluster --image x --offload-namespaces tier=batch --offload-strategy Remote',
    ['--offload-strategy', 'Remote'],
  ],
  ['peer --virtual-node m --image x --namespaces a --log-level debug', ['--log-level', 'debug']],
])('"%s" hands it on', async (args, wanted) => {
  expect((await podOf(args)).args?.slice(-2)).toEqual(wanted);
});

// Services, probes and policies know a port by its name.
test.each([
  ['cluster --image x --webhook-port 10250', 'webhook', 10250],
  ['gateway --image x --ops-port 9480', 'ops', 9480],
  ['gateway --image x --network off --ops-port 9480', 'ops', 9480],
  ['node --image x --ops-port 9482', 'ops', 9482],
])('"%s" opens that port, and no other of that name', async (args, name, number) => {
  const { args: given = [], ports = [] } = await podOf(args);
  const option = `--${name}-port`;
  expect(given.filter((arg) => arg === option)).toHaveLength(1);
  expect(given[given.indexOf(option) + 1]).toBe(String(number));
  expect(ports.filter((port) => port.name === name)).toEqual([{ name, containerPort: number }]);
  expect(ports.length).toBe((await podOf(args.replace(/ --\w+-port \d+/, ''))).ports?.length);
});

test.each([
  ['', manifestsCommand, 'say which: crds, cluster, gateway, node, clean-up, peer'],
  ['constructor', manifestsCommand, 'unknown command "constructor"'],
  ['clustr', manifestsCommand, 'unknown command "clustr"; did you mean cluster?'],
  ['cluster', manifestsCommand, '--image is required'],
  ['crds extra', manifestsCommand, 'unexpected argument "extra"'],
  [`cluster --imagine x`, manifestsCommand, 'unknown option "--imagine"; did you mean --image?'],
  ['--peer rome', tenantCommand, '--namespace is required'],
])(
  'refuses "%s", whose form is wrong, with one line and where to read more',
  async (args, command, message) => {
    const { code, out, err } = await run(command, args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    const [complaint, see, ...more] = err.split('\n');
    expect(complaint).toContain(message);
    expect(see).toMatch(/^see: tributary .*--help$/);
    expect(more).toEqual(['']);
  },
);

test.each([
  ['cluster --image tributary:1 --service Ingress', manifestsCommand, '--service must be one of ClusterIP'],
  ['cluster --image tributary:1 --node-port x', manifestsCommand, 'has no node port'],
  ['gateway --image tributary:1 --network maybe', manifestsCommand, '--network must be on or off'],
  ['gateway --image tributary:1 --replicas 0', manifestsCommand, 'replicas must be from 1 to 16'],
  ['gateway --image tributary:1 --wireguard-port x', manifestsCommand, '--wireguard-port must be a port'],
  [`cluster --image x --pod-cidr 10.1.2.3`, manifestsCommand, '--pod-cidr: "10.1.2.3" is not a CIDR'],
  [
    `cluster --image x --offload-namespaces tier=`,
    manifestsCommand,
    '--offload-namespaces: "tier=" is not KEY',
  ],
  [
    `cluster --image x --offload-namespaces tier=batch --offload-strategy remote`,
    manifestsCommand,
    '--offload-strategy must be one of Local, LocalAndRemote, Remote, not "remote"',
  ],
  [
    `cluster --image x --offload-strategy Remote`,
    manifestsCommand,
    '--offload-strategy needs --offload-namespaces',
  ],
  [`cluster --image x --webhook-port 0`, manifestsCommand, '--webhook-port must be from 1 to 65535, not "0"'],
  [`cluster --image x --webhook-port x`, manifestsCommand, '--webhook-port must be a port, not "x"'],
  [`cluster --image x --webhook-port 7443`, manifestsCommand, 'port 7443 is taken: it is "peering"'],
  [`node --image x --ops-port 0`, manifestsCommand, '--ops-port must be from 1 to 65535'],
  [`${peer} shop --log-level loud`, manifestsCommand, '--log-level must be one of'],
  [`gateway --image x --tunnel-endpoint foo`, manifestsCommand, '--tunnel-endpoint: not HOST:PORT'],
  [`${peer} kube-system`, manifestsCommand, 'cannot be offloaded'],
  [`${peer} shop --kubeconfig-secret a/b/c`, manifestsCommand, 'is not of the form namespace/name'],
  [
    '--peer rome --namespace a --pod-security none',
    tenantCommand,
    'none of restricted, baseline, privileged',
  ],
  [
    '--peer rome --namespace a --own-tolerations node-role.kubernetes.io/control-plane',
    tenantCommand,
    'taints of node-role.kubernetes.io/ are opened to no peer',
  ],
  ['--peer rome --namespace a --own-tolerations a/b/c', tenantCommand, 'is no key of a taint, and not *'],
  ['--peer rome --namespace com', tenantCommand, 'or answer for names that are not its own'],
  ['--peer rome --namespace a --keep-for soon', tenantCommand, '--keep-for: "soon" is not a duration'],
  ['--peer rome --namespace a --quota cpu', tenantCommand, 'is not of the form'],
])(
  'refuses "%s", in which a value is wrong, with one line and where to read more',
  async (args, command, message) => {
    const { code, out, err } = await run(command, args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    const [complaint, see, ...more] = err.split('\n');
    expect(complaint).toContain(message);
    expect(see).toMatch(/^see: tributary (manifests \w+|tenant) --help$/);
    expect(more).toEqual(['']);
  },
);

test.each(['--help', 'cluster --help', 'gateway -h'])('"manifests %s" shows the usage', async (args) => {
  const { code, out, err } = await run(manifestsCommand, args);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^Usage: tributary manifests /);
});

const calls: unknown[] = [];
const kubeconfigCommand: Command = tenantKubeconfigCommand(async (where) => ({
  server: 'https://10.0.0.1:6443',
  certificateAuthorityData: 'Q0E=',
  createToken: async (account, { expirationSeconds }) => {
    calls.push({ where, account, expirationSeconds });
    return { token: 'issued', expirationTimestamp: '2030-01-01T00:00:00Z' };
  },
  close: async () => void calls.push('closed'),
}));

test('tenant-kubeconfig asks for a token of 24 hours and says until when it is valid', async () => {
  const { code, out, err } = await run(
    kubeconfigCommand,
    '--peer rome --kubeconfig f --server https://milan:443',
  );
  expect(code).toBe(0);
  expect(out).toContain('token: issued');
  expect(out).toContain('server: https://milan:443');
  expect(err).toContain('valid until 2030-01-01T00:00:00Z');
  expect(err).not.toContain('issued');
  expect(calls.splice(0)).toEqual([
    {
      where: { kubeconfig: 'f', context: undefined },
      account: { namespace: 'tributary-peers', name: 'rome' },
      expirationSeconds: 86_400,
    },
    'closed',
  ]);
});

test.each([
  ['10m', 600],
  ['90d', 7_776_000],
])('tenant-kubeconfig asks for a token of %s', async (ttl, expirationSeconds) => {
  await run(kubeconfigCommand, `--peer rome --kubeconfig f --server https://milan:443 --ttl ${ttl}`);
  expect(calls.splice(0)).toEqual([expect.objectContaining({ expirationSeconds }), 'closed']);
});

test('tenant-kubeconfig with a given token asks nobody', async () => {
  const { out } = await run(kubeconfigCommand, '--peer rome --token given --server https://milan:443');
  expect(out).toContain('token: given');
  expect(calls).toEqual([]);
});

test.each([
  ['--peer rome --ttl 9m', '--ttl: "9m" is not a duration from 600s to 90d'],
  ['--peer rome --ttl 91d', '--ttl: "91d" is not a duration'],
  ['--peer ROME', 'is not a DNS name'],
  ['--peer rome --token given', '--server is required'],
  ['--peer rome --server https://milan:443 --token -', 'reads the token from standard input, which is empty'],
])('tenant-kubeconfig refuses "%s" before it calls anybody', async (args, message) => {
  const { code, err } = await run(kubeconfigCommand, args);
  expect(code).toBe(2);
  expect(err).toContain(message);
  expect(calls).toEqual([]);
});
