import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import { tenantKubeconfigCommand } from '../../../src/cli/manifests-tenant-kubeconfig.ts';
import { tenantCommand } from '../../../src/cli/manifests-tenant.ts';

type Command = (args: string[], io: { out(text: string): void; err(text: string): void }) => Promise<number>;

async function run(command: Command, args: string): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const code = await command(
    args.split(' ').filter((arg) => arg !== ''),
    io,
  );
  return { code, out, err };
}

const peer = 'peer --virtual-node milan --image tributary:1 --namespaces';
test.each([
  ['crds', manifestsCommand, 7],
  ['cluster --image tributary:1', manifestsCommand, 39],
  [
    'cluster --image tributary:1 --service NodePort --node-port 30743 --advertise a:1,b:2',
    manifestsCommand,
    39,
  ],
  ['gateway --image tributary:1 --log-level debug', manifestsCommand, 7],
  [`${peer} shop`, manifestsCommand, 15],
  [`${peer} shop,web --node m --kubeconfig-secret other/name`, manifestsCommand, 17],
  ['--peer rome --namespace a', tenantCommand, 10],
  ['--peer rome --namespace a,b --quota cpu=1 --pod-security restricted', tenantCommand, 16],
])('"%s" prints YAML that holds whole objects', async (args, command, count) => {
  const { code, out, err } = await run(command, args);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const objects = parseAllDocuments(out).map((document) => document.toJS() as { kind?: string });
  expect(objects.filter(({ kind }) => kind !== undefined)).toHaveLength(count);
  expect(out).not.toMatch(/[&*]a\d/);
});

test.each([
  ['', manifestsCommand, 'say which manifests: crds, cluster, gateway, peer'],
  ['constructor', manifestsCommand, 'say which manifests'],
  ['cluster', manifestsCommand, '--image is required'],
  ['cluster --image tributary:1 --service Ingress', manifestsCommand, '--service must be one of ClusterIP'],
  ['cluster --image tributary:1 --node-port x', manifestsCommand, 'has no node port'],
  ['crds extra', manifestsCommand, 'unexpected argument "extra"'],
  [`cluster --imagine x`, manifestsCommand, "Unknown option '--imagine'"],
  [`${peer} kube-system`, manifestsCommand, 'cannot be offloaded'],
  [`${peer} shop --kubeconfig-secret a/b/c`, manifestsCommand, 'is not of the form namespace/name'],
  ['--peer rome', tenantCommand, '--namespace is required'],
  ['--peer rome --namespace a --pod-security privileged', tenantCommand, 'neither baseline nor restricted'],
  ['--peer rome --namespace a --quota cpu', tenantCommand, 'is not of the form'],
])('refuses "%s" with one line and the usage', async (args, command, message) => {
  const { code, out, err } = await run(command, args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  const [complaint, usage] = err.split('\n');
  expect(complaint).toContain(message);
  expect(usage).toMatch(/^usage: tributary /);
});

const calls: unknown[] = [];
const kubeconfigCommand: Command = async (args, io) =>
  tenantKubeconfigCommand(args, io, async (where) => ({
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

test('tenant-kubeconfig with a given token asks nobody', async () => {
  const { out } = await run(kubeconfigCommand, '--peer rome --token given --server https://milan:443');
  expect(out).toContain('token: given');
  expect(calls).toEqual([]);
});

test.each([
  ['--peer rome --ttl 1s', 'is not a duration'],
  ['--peer ROME', 'is not a DNS name'],
  ['--peer rome --token given', '--server is required'],
])('tenant-kubeconfig refuses "%s" before it calls anybody', async (args, message) => {
  const { code, err } = await run(kubeconfigCommand, args);
  expect(code).toBe(2);
  expect(err).toContain(message);
  expect(calls).toEqual([]);
});
