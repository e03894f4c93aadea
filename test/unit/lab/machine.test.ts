import { describe, expect, test } from '@jest/globals';

import { hierarchies } from '../../../lab/cgroups.ts';
import { mountsBelow } from '../../../lab/cleanup.ts';
import { objectPath } from '../../../lab/kube-api.ts';
import { packageProgram } from '../../../lab/packages.ts';
import { labPaths, runRoot } from '../../../lab/paths.ts';
import { missing, type Machine } from '../../../lab/preflight.ts';
import { resolveSpec } from '../../../lab/spec.ts';
import { describeLab } from '../../../lab/status.ts';
import { replay } from '../../../lab/journal.ts';
import { together } from '../../../lab/together.ts';

const able: Machine = {
  platform: 'linux',
  isRoot: true,
  hasCgroups: true,
  hasProgram: () => true,
  hasCniPlugins: true,
};

describe('missing', () => {
  test('is nothing on a machine that has everything', () => {
    expect(missing(able)).toBeUndefined();
  });

  test.each<[string, Partial<Machine>, string]>([
    ['no root', { isRoot: false }, '--workload kwok'],
    ['no Linux', { platform: 'darwin' }, 'Linux'],
    ['no cgroups', { hasCgroups: false }, 'cgroups'],
    ['no nft', { hasProgram: (name) => name !== 'nft' }, 'apt-get install nftables'],
    ['no plugins', { hasCniPlugins: false }, 'apt-get install containernetworking-plugins'],
  ])('%s', (_, change, message) => {
    const said = missing({ ...able, ...change });
    expect(said).toContain(message);
    expect(said).not.toContain('\n');
  });

  test('names every package whose program is missing', () => {
    const said = missing({ ...able, hasProgram: () => false, hasCniPlugins: false }) ?? '';
    for (const name of Object.keys(packageProgram)) expect(said).toContain(name);
  });
});

test('mounts below a folder come deepest first, and only those', () => {
  const mountinfo = `22 1 8:1 / / rw - ext4 /dev/vda rw
30 22 8:1 /x /run/lab/ns rw - ext4 /dev/vda rw
31 30 0:4 mnt:[1] /run/lab/ns/home-1 rw - nsfs nsfs rw
32 22 0:4 x /run/laboratory rw - nsfs nsfs rw
33 22 0:4 x /run/lab/with\\040space rw - nsfs nsfs rw
`;
  expect(mountsBelow(mountinfo, '/run/lab')).toEqual([
    '/run/lab/with space',
    '/run/lab/ns/home-1',
    '/run/lab/ns',
  ]);
});

test('hierarchies are mount points by type', () => {
  const mounts = `tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
`;
  expect(hierarchies(mounts, ['cgroup'])).toEqual(['/sys/fs/cgroup/cpu,cpuacct']);
  expect(hierarchies(mounts, ['cgroup', 'cgroup2'])).toHaveLength(2);
});

test.each([
  ['v1', 'Node', undefined, '/api/v1/nodes/x'],
  ['v1', 'ConfigMap', 'a', '/api/v1/namespaces/a/configmaps/x'],
  ['apps/v1', 'Deployment', 'a', '/apis/apps/v1/namespaces/a/deployments/x'],
])('%s %s in %s is at %s', (apiVersion, kind, namespace, path) => {
  const metadata = { name: 'x', ...(namespace === undefined ? {} : { namespace }) };
  expect(objectPath({ apiVersion, kind, metadata })).toBe(path);
});

test('run directories are short, or refused', () => {
  expect(runRoot({}, 0)).toBe('/run/tributary-lab');
  expect(runRoot({ XDG_RUNTIME_DIR: '/run/user/7' }, 7)).toBe('/run/user/7/tributary-lab');
  expect(runRoot({}, 7)).toMatch(/tributary-lab-7$/);
  expect(runRoot({ TRIBUTARY_LAB_RUN: '/r' }, 0)).toBe('/r');
  expect(labPaths('x', '/data').dataDirectory).toBe('/data/x');
});

describe('together', () => {
  test('gives all results in order', async () => {
    expect(await together(undefined, [async () => 1, async () => 2])).toEqual([1, 2]);
  });

  test('ends with the first failure only when the others have ended', async () => {
    const events: string[] = [];
    const slow = async (signal: AbortSignal): Promise<void> => {
      await new Promise((aborted) => signal.addEventListener('abort', aborted));
      await Promise.resolve();
      events.push('slow ended');
    };
    const failing = together(undefined, [slow, async () => Promise.reject(new Error('first'))]);
    await expect(failing).rejects.toThrow('first');
    expect(events).toEqual(['slow ended']);
  });

  test('ends with the reason of its signal', async () => {
    const stop = new AbortController();
    const waiting = together(stop.signal, [
      async (signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('x')))),
    ]);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
  });
});

test('a lab without a journal is not up', () => {
  expect(describeLab('x', replay(''))).toEqual(['lab x: not up']);
});

test.each([
  [true, '    NetworkPolicies are enforced'],
  [false, '    NetworkPolicies are not enforced'],
])('status says whether policies count: %j', (networkPolicies, line) => {
  const spec = resolveSpec({
    name: 'x',
    workload: 'containers',
    clusters: [{ name: 'home', networkPolicies }],
    underlay: { subnet: 0 },
    runDirectory: '/run/x',
    dataDirectory: '/data/x',
  });
  expect(describeLab('x', replay(`${JSON.stringify({ kind: 'lab', spec })}\n`))).toContain(line);
});
