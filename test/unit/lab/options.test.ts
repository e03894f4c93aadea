import { describe, expect, test } from '@jest/globals';

import { standardPrograms } from '../../../lab/binary-table.ts';
import { HARDENED_MARK, harden } from '../../../lab/hardened-runtime.ts';
import { localPathProvisioner, volumeFolders } from '../../../lab/local-path.ts';
import { containerdToml, type NodeFiles } from '../../../lab/node-config.ts';
import { resolveSpec } from '../../../lab/spec.ts';
import { linkNames, portOf } from '../../../lab/underlay.ts';

const base = {
  name: 'lab',
  workload: 'containers',
  underlay: { subnet: 0 },
  runDirectory: '/run/lab',
  dataDirectory: '/data',
} as const;
const lab = resolveSpec({
  ...base,
  clusters: [
    { name: 'rome', nodes: 2 },
    { name: 'milan', nodes: 2, storage: true },
  ],
});
const milan = lab.clusters[1];
if (!milan) throw new Error('a lab without milan');

test.each(['storage', 'hardenedRuntime', 'networkPolicies'])('pretended nodes have no %s', (option) => {
  const clusters = [{ name: 'rome', workload: 'kwok', [option]: true } as const];
  expect(() => resolveSpec({ ...base, clusters })).toThrow(/rome: pretended/);
});

test('what not every lab wants is not built for every lab', () => {
  expect(standardPrograms()).toContain('kubelet');
  expect(standardPrograms()).not.toContain('local-path-provisioner');
});

describe('storage', () => {
  test('each node has its folder, and the cluster one of its own, in what goes with the lab', () => {
    const { ofNodes, shared } = volumeFolders(lab, milan);
    expect([...ofNodes.values(), shared]).toEqual([
      '/data/milan-1/volumes',
      '/data/milan-2/volumes',
      '/data/milan/volumes',
    ]);
  });

  test('a class knows only its own folders, and nothing of it runs on other nodes', () => {
    const objects = localPathProvisioner(lab, milan);
    const data = objects.find(({ kind }) => kind === 'ConfigMap')?.['data'] as Record<string, string>;
    expect(JSON.parse(data['config.json'] ?? '')).toMatchObject({
      storageClassConfigs: {
        'local-path': {
          nodePathMap: [{ node: 'milan-1', paths: ['/data/milan-1/volumes'] }, { node: 'milan-2' }],
        },
        shared: { sharedFileSystemPath: '/data/milan/volumes' },
      },
    });
    expect(data['helperPod.yaml']).toContain('"milan-2"');
    expect(
      objects.filter(({ kind }) => kind === 'StorageClass').map(({ metadata }) => metadata.name),
    ).toEqual(['local-path', 'shared']);
  });
});

describe('the hardened runtime', () => {
  const files = { containerdRoot: '/r', containerdSocket: '/s' } as NodeFiles;

  test('is a handler only where it is asked for', () => {
    expect(containerdToml(files, 'native')).not.toContain('hardened');
    const toml = containerdToml({ ...files, hardenedSpec: '/data/spec.json' }, 'native');
    expect(toml).toMatch(
      /runtimes\.hardened\]\n +runtime_type = .*\n +base_runtime_spec = "\/data\/spec.json"\n/,
    );
    expect(toml.match(/base_runtime_spec/g)).toHaveLength(1);
  });

  test('keeps what containerd begins with', () => {
    const spec = harden({ process: { env: ['A=1'], cwd: '/' }, linux: { maskedPaths: ['/x'] } });
    expect(spec).toMatchObject({
      process: { env: ['A=1', HARDENED_MARK], cwd: '/', rlimits: [{ type: 'RLIMIT_NOFILE', hard: 999 }] },
      linux: { maskedPaths: ['/x'], seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } },
    });
  });
});

test('every node has a port of its own on the bridge', () => {
  const nodes = lab.clusters.flatMap(({ nodes }) => nodes);
  expect(nodes.map((node) => portOf(lab, node))).toEqual(['node0', 'node1', 'node2', 'node3']);
  expect(() => portOf(lab, { name: 'turin-1' })).toThrow(/turin-1/);
});

test('links are listed with their peers and by their names', () => {
  const printed = '1: lo: <LOOPBACK> mtu 65536\n2: eth0@if7: <UP> mtu 1500\n3: cni0: <UP> mtu 1420\n';
  expect(linkNames(printed)).toEqual(['lo', 'eth0', 'cni0']);
});
