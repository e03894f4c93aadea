import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { namespaces, nodes, pods } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { LauncherOptions } from '../../../src/deploy/agent-objects.ts';
import { PodLauncher } from '../../../src/deploy/launcher.ts';
import { SharedLauncher } from '../../../src/deploy/shared-launcher.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { wantedAgent } from './support/wanted-agent.ts';

/** From one agent for each provider to one for all, and back. */

const [A, B] = ['a'.repeat(26), 'b'.repeat(26)];
const NAMESPACE = 'tributary-agents';
const PROVIDER = 'tributary.dev/provider';
const { signal } = new AbortController();

let clock: FakeClock;
let api: FakeApi;
let home: HttpClient;
let options: LauncherOptions;

beforeEach(() => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [virtualNodes] });
  for (const name of ['shop', NAMESPACE, 'tributary-system']) api.seed(namespaces, { metadata: { name } });
  home = api.client();
  options = { home, image: 'tributary:1', clock, log: silentLogger };
  for (const [name, clusterID] of [
    ['milan', A],
    ['paris', B],
  ] as const) {
    api.seed(virtualNodes, { metadata: { name, labels: { [PROVIDER]: clusterID } }, spec: {} });
  }
});

afterEach(async () => {
  await home.close();
  await api.stop();
});

const ensure = async (
  launcher: PodLauncher | SharedLauncher,
  ...[id, name]: [string, string]
): Promise<void> => clock.during('ensure', launcher.ensure(wantedAgent(id, name), signal), 60_000);

const deployments = (): string[] => api.storage.list('deployments.apps').map(({ metadata }) => metadata.name);
const labelOf = (name: string): string | undefined =>
  api.storage.get('virtualnodes.tributary.dev', name)?.metadata.labels?.['tributary.dev/agent'];

/** Accounts that have the rights of that provider's agent. */
function holders(clusterID: string): string[][] {
  const bindings = [
    `tributary-system/tributary-peer-${clusterID}`,
    `shop/tributary-agent-${clusterID}`,
    `shop/tributary-agent-${clusterID}-kinds`,
  ].map((key) => api.storage.get('rolebindings.rbac.authorization.k8s.io', key));
  const names = bindings.map((one) =>
    ((one as { subjects?: { name: string }[] } | undefined)?.subjects ?? []).map(({ name }) => name),
  );
  return [...new Set(names.map((one) => one.join()))].map((one) => one.split(','));
}

const podOf = (name: string, labels: Record<string, string>, ready: boolean): void => {
  const conditions = ready ? [{ type: 'Ready', status: 'True' }] : [];
  api.seed(pods, {
    metadata: { namespace: NAMESPACE, name, labels },
    status: { phase: 'Running', conditions },
  });
};
const OF_ALL = { 'app.kubernetes.io/instance': 'tributary-peers' };

describe('one agent of all', () => {
  test('is one Deployment, has the rights of each provider by a Role of its own, and loses them alone', async () => {
    const launcher = new SharedLauncher(options);
    await ensure(launcher, A, 'milan');
    await ensure(launcher, B, 'paris');
    expect(deployments()).toEqual(['tributary-peers']);
    expect(api.count(/PATCH .*deployments/u)).toBe(1);
    expect([labelOf('milan'), labelOf('paris')]).toEqual(['peers', 'peers']);
    expect([holders(A), holders(B)]).toEqual([[['tributary-peers']], [['tributary-peers']]]);
    await clock.during('remove', launcher.remove(A, signal), 60_000);
    expect([holders(A), holders(B)]).toEqual([[['']], [['tributary-peers']]]);
    expect(deployments()).toEqual(['tributary-peers']);
    await clock.during('remove', launcher.remove(B, signal), 60_000);
    expect(deployments()).toEqual([]);
  });

  test('keeps its rights until it has removed the Node of a VirtualNode that is gone', async () => {
    const launcher = new SharedLauncher(options);
    await ensure(launcher, A, 'milan');
    api.seed(nodes, { metadata: { name: 'milan', labels: { [PROVIDER]: A } } });
    await home.delete(virtualNodes, { name: 'milan' });
    clock.after(3000, () => void home.delete(nodes, { name: 'milan' }));
    const from = clock.monotonic();
    let heldMs = 0;
    clock.after(2900, () => (heldMs = holders(A).length === 1 && holders(A)[0]?.[0] !== '' ? 2900 : 0));
    await clock.during('remove', launcher.remove(A, signal), 60_000);
    expect(heldMs).toBe(2900);
    expect(clock.monotonic() - from).toBeLessThan(6000);
    expect(holders(A)).toEqual([['']]);
  });
});

describe('a change of the choice', () => {
  test('leaves the own agent in place, with its rights, until the one of all is ready', async () => {
    await ensure(new PodLauncher(options), A, 'milan');
    podOf('own', { [PROVIDER]: A }, true);
    const launcher = new SharedLauncher(options);
    await expect(ensure(launcher, A, 'milan')).rejects.toThrow('the pod of tributary-peers is ready');
    expect(deployments()).toEqual([`tributary-peer-${A}`, 'tributary-peers']);
    expect(holders(A)).toEqual([[`tributary-peer-${A}`, 'tributary-peers']]);
    podOf('peers', OF_ALL, true);
    clock.after(1000, () => void home.delete(pods, { namespace: NAMESPACE, name: 'own' }));
    await ensure(launcher, A, 'milan');
    expect(deployments()).toEqual(['tributary-peers']);
    expect(holders(A)).toEqual([['tributary-peers']]);
  });

  test('leaves the one of all in place until the own agent runs, and ends it with the last', async () => {
    const shared = new SharedLauncher(options);
    await ensure(shared, A, 'milan');
    await ensure(shared, B, 'paris');
    const launcher = new PodLauncher(options);
    await expect(ensure(launcher, A, 'milan')).rejects.toThrow('does not run yet');
    expect(labelOf('milan')).toBe('peers');
    expect(holders(A)).toEqual([[`tributary-peer-${A}`, 'tributary-peers']]);
    podOf('own-a', { [PROVIDER]: A }, true);
    await ensure(launcher, A, 'milan');
    expect([labelOf('milan'), labelOf('paris')]).toEqual([undefined, 'peers']);
    expect(holders(A)).toEqual([[`tributary-peer-${A}`]]);
    expect(deployments()).toContain('tributary-peers');
    podOf('own-b', { [PROVIDER]: B }, true);
    await ensure(launcher, B, 'paris');
    expect(deployments()).toEqual([`tributary-peer-${A}`, `tributary-peer-${B}`]);
  });
});
