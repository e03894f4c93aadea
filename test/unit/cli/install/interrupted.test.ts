import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { pods } from '../../../../src/api/resources.ts';
import { doctorCommand } from '../../../../src/cli/doctor/doctor.ts';
import { installCommand, upgradeCommand } from '../../../../src/cli/install/install.ts';
import { statusCommand } from '../../../../src/cli/look/status.ts';
import type { CliWorld } from '../support/cli-world.ts';
import { startCluster } from './support/cluster.ts';

/** Changes between one process and many that somebody kills: what is said of them, and that they can be repeated. */

let world: CliWorld;
let stuck: Map<string, object>;
beforeEach(() => {
  ({ world, stuck } = startCluster());
});
afterEach(async () => world.stop());

const record = (): Record<string, string> => {
  const map = world.api.storage.get('configmaps', 'tributary-system/tributary-installation');
  return (map?.['data'] ?? {}) as Record<string, string>;
};
const level = (): unknown =>
  world.api.storage.get('namespaces', 'tributary-system')?.metadata.labels?.[
    'pod-security.kubernetes.io/enforce'
  ];
const isOneProcess = (): boolean => {
  const role = world.api.storage.get('deployments.apps', 'tributary-system/tributary-cluster');
  return JSON.stringify(role?.spec).includes('"run","all"');
};
const isThere = (): boolean =>
  world.api.storage.get('deployments.apps', 'tributary-network/tributary-gateway') !== undefined;

async function installed(oneProcess: boolean): Promise<void> {
  const line = `rome --image t:1 --one-process ${String(oneProcess)} --yes`;
  expect(await world.run(installCommand, line)).toMatchObject({ code: 0, err: '' });
}

/** Runs it until it sends such a request, which nobody answers. What was to come after it never comes. */
async function killedAt(line: string, method: string, path: RegExp): Promise<void> {
  await new Promise<void>((resolve) => {
    world.api.fault({
      match: (request) => {
        const isIt = request.method === method && path.test(request.path);
        if (isIt) resolve();
        return isIt;
      },
      stall: true,
    });
    void world.run(upgradeCommand, line);
  });
}

/** As the process that is on the host network has one; it ends when it has been looked for so often. */
function podOfOneProcess(looks: number): void {
  world.seed(pods, {
    metadata: {
      namespace: 'tributary-system',
      name: 'one',
      labels: { 'app.kubernetes.io/name': 'tributary' },
    },
    spec: { hostNetwork: true, containers: [{ name: 'tributary' }] },
  });
  world.api.fault({
    match: ({ method, path }) => {
      const isLook = method === 'GET' && /namespaces\/tributary-system\/pods/.test(path);
      if (isLook && (looks -= 1) === 0) world.api.storage.remove('pods', 'tributary-system/one');
      return false;
    },
    status: 500,
  });
}

describe('from one process to many', () => {
  beforeEach(async () => installed(true));

  test('the namespace is made stricter when the last pod that needs more is gone', async () => {
    podOfOneProcess(3);
    const seen: unknown[] = [];
    world.api.storage.subscribe(({ resource, current, previous }) => {
      const name = (current ?? previous)?.metadata.name;
      if (resource === 'namespaces' && name === 'tributary-system') seen.push(level());
      if (resource === 'pods' && name === 'one') seen.push('pod gone');
      if (resource === 'deployments.apps' && name === 'tributary-cluster') seen.push('role');
    });
    expect(await world.run(upgradeCommand, '--one-process false --yes')).toMatchObject({ code: 0, err: '' });
    const order = seen.filter((one, at) => one !== seen[at - 1]);
    expect(order).toEqual(['role', 'pod gone', 'restricted']);
  });

  test('a pod that does not end is named, and the namespace stays as it is', async () => {
    podOfOneProcess(-1);
    const { code, err } = await world.run(upgradeCommand, '--one-process false --yes --timeout 5s');
    expect(code).toBe(1);
    expect(err).toMatch(/for pods that need more than tributary-system is to permit to end, .*: one\. /);
    expect(level()).toBe('privileged');
  });

  test.each([
    ['PATCH', /customresourcedefinitions/],
    ['PATCH', /clusterroles\/tributary-cluster/],
    ['PATCH', /deployments\/tributary-cluster/],
    ['PATCH', /daemonsets\/tributary-node/],
    ['DELETE', /roles\//],
  ])('killed at %s %s, it is told, and repeated without values it goes on', async (method, path) => {
    await killedAt('--one-process false --yes', method, path);
    expect([level(), record()['changeState']]).toEqual(['privileged', 'UnderWay']);
    const status = await world.run(statusCommand, '');
    expect(status.code).toBe(1);
    expect(status.out).toMatch(
      /installation: the upgrade to .* was not finished: .*repeat it.*\n +tributary upgrade\n/,
    );
    const { out } = await world.run(doctorCommand, '');
    expect(out).toMatch(/^PROBLEM installation, .* was not finished: .*\n.*\n +run: tributary upgrade\n/m);

    const again = await world.run(upgradeCommand, '--yes');
    expect(again).toMatchObject({ code: 0, err: '' });
    expect(again.out).toContain('was not finished: going on with its values\n');
    expect([level(), isOneProcess(), isThere()]).toEqual(['restricted', false, true]);
    expect(record()['changeState']).toBe('Finished');
    expect(record()['values']).toContain('oneProcess: false');
  });
});

describe('from many to one process', () => {
  beforeEach(async () => installed(false));

  test('killed when the gateway has gone, what is missing is told, and repeated it goes on', async () => {
    await killedAt('--one-process true --yes', 'PATCH', /deployments\/tributary-cluster/);
    expect([level(), isOneProcess(), isThere()]).toEqual(['privileged', false, false]);
    expect((await world.run(statusCommand, '')).out).toContain('was not finished');
    expect(await world.run(upgradeCommand, '--yes')).toMatchObject({ code: 0, err: '' });
    expect([isOneProcess(), isThere()]).toEqual([true, false]);
    const { out } = await world.run(statusCommand, '');
    expect(out).not.toContain('was not finished');
    expect(out).toMatch(/all \(one process\) +1\/1 +tributary-system/);
  });

  test('what does not become ready is no interruption: the next one goes back', async () => {
    stuck.set('tributary-cluster', {});
    expect(await world.run(upgradeCommand, '--one-process true --yes --timeout 5s')).toMatchObject({
      code: 1,
    });
    expect((await world.run(statusCommand, '')).out).toContain('has failed half-way');
    stuck.clear();
    const { code, out } = await world.run(upgradeCommand, '--yes');
    expect([code, isOneProcess(), isThere(), level()]).toEqual([0, false, true, 'restricted']);
    expect(out).toContain('has failed: going back to the values of before it');
  });

  test('a role that somebody has deleted is missing', async () => {
    world.api.storage.remove('daemonsets.apps', 'tributary-network/tributary-node');
    const { code, out } = await world.run(statusCommand, '');
    expect(code).toBe(1);
    expect(out).toMatch(/^ +node +missing +tributary-network$/m);
    expect(out).toContain('role node: it is missing: the installation has daemonset/tributary-node');
    expect((await world.run(doctorCommand, '')).out).toMatch(
      /^PROBLEM installation, .*DaemonSet tributary-network\/tributary-node: it is not there/m,
    );
  });
});
