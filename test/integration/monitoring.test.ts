import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { manifestsCommand } from '../../src/cli/manifests.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { LauncherLab, SYSTEM } from '../support/labs/launcher-lab.ts';
import { printed } from '../support/labs/rights-cluster.ts';
import { RoleProcess } from '../support/labs/role-process.ts';

/** What people who watch over the program see and set: roles under their own accounts on a real API server. */

const TIMEOUT_MS = 120_000;
const AGENT = { namespace: SYSTEM, name: 'tributary-peer-milan' };
const SETTINGS = `/api/v1/namespaces/${SYSTEM}/configmaps/tributary-settings`;

let lab: LauncherLab;
let roles: { cluster: RoleProcess; peer: RoleProcess };

beforeAll(async () => {
  lab = await LauncherLab.up();
  const image = ['--image', 'tributary:1'];
  await lab.cluster.apply(
    await printed(manifestsCommand, ['peer', '--virtual-node', 'milan', '--namespaces', 'shop', ...image]),
  );
  await lab.admin('POST', '/apis/tributary.dev/v1alpha1/virtualnodes', {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'VirtualNode',
    metadata: { name: 'milan' },
    spec: {
      kubeconfigSecretRef: { namespace: SYSTEM, name: 'tributary-kubeconfig-milan' },
      resources: { cpu: '4', memory: '4Gi', pods: '10' },
    },
  });
  const local = { 'node-address': '127.0.0.1' };
  const [cluster, peer] = await Promise.all([
    RoleProcess.start('cluster', lab.cluster, {
      account: { namespace: SYSTEM, name: 'tributary-cluster' },
      options: { ...local, 'agent-image': 'tributary:1', 'peering-port': '0', 'webhook-port': '0' },
    }),
    RoleProcess.start('peer', lab.cluster, {
      account: AGENT,
      options: { ...local, 'virtual-node': 'milan', 'kubelet-port': '0' },
    }),
  ]);
  roles = { cluster, peer };
}, TIMEOUT_MS);

afterAll(async () => {
  await Promise.all(Object.values(roles ?? {}).map(async (role) => role.stop()));
  await lab?.down();
}, TIMEOUT_MS);

const levels = (): string[] => Object.values(roles).map(({ sink }) => sink.level);

/** As `kubectl patch` does it; resolves when all roles have that level, with how long it took. */
async function set(logLevel: string | null, expected: string): Promise<number> {
  const began = systemClock.monotonic();
  const { api } = lab.cluster.cluster;
  const settings = { data: { logLevel } };
  const { status, body } = await api.call('PATCH', SETTINGS, settings, 'application/merge-patch+json');
  expect({ status, body }).toMatchObject({ status: 200 });
  await eventually(`all roles log at ${expected}`, () => levels().every((level) => level === expected));
  return systemClock.monotonic() - began;
}

describe('the level of logs', () => {
  test('changes for the role and for the agent when the settings do, and back', async () => {
    expect(levels()).toEqual(['info', 'info']);
    const took = [await set('debug', 'debug'), await set('warn', 'warn'), await set(null, 'info')];
    console.log(`levels changed after ${took.map((ms) => `${Math.round(ms)} ms`).join(', ')}`);
    for (const { lines } of Object.values(roles)) {
      const said = lines.filter(({ message }) => message === 'the level of logs changes');
      expect(said.map(({ from, to, by }) => ({ from, to, by }))).toEqual([
        { from: 'info', to: 'debug', by: 'settings' },
        { from: 'debug', to: 'warn', by: 'settings' },
        { from: 'warn', to: 'info', by: 'start' },
      ]);
    }
  });

  test('a level that there is not is complained of, and the level at start counts', async () => {
    await set('error', 'error');
    await set('loud', 'info');
    for (const { lines } of Object.values(roles)) {
      const said = lines.filter(({ level, logger }) => level === 'error' && logger.endsWith('.settings'));
      expect(said).toMatchObject([{ logLevel: 'loud', levels: 'debug, info, warn, error' }]);
    }
    await set(null, 'info');
  });

  test('the agent may read the settings and no other ConfigMap there, and may not write them', async () => {
    const agent = await lab.cluster.as(AGENT);
    const all = `/api/v1/namespaces/${SYSTEM}/configmaps`;
    const only = `${all}?fieldSelector=metadata.name%3Dtributary-settings`;
    expect(await agent('GET', only)).toMatchObject({ status: 200 });
    expect(await agent('GET', all)).toMatchObject({ status: 403 });
    expect(await agent('PATCH', SETTINGS, { data: { logLevel: 'debug' } })).toMatchObject({ status: 403 });
  });
});
