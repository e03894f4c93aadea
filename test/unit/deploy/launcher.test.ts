import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PodLauncher } from '../../../src/deploy/launcher.ts';
import type { Deployment } from '../../../src/deploy/program.ts';
import { namespaces, pods } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { wantedAgent } from './support/wanted-agent.ts';

const ID = 'a'.repeat(26);
const NAME = `tributary-peer-${ID}`;
const WANTED = wantedAgent(ID, 'milan');

let clock: FakeClock;
let api: FakeApi;
let home: HttpClient;
let launcher: PodLauncher;
let lines: string[];
const { signal } = new AbortController();

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [virtualNodes] });
  for (const name of ['shop', 'tributary-agents', 'tributary-system']) {
    api.seed(namespaces, { metadata: { name } });
  }
  home = api.client();
  lines = [];
  const log = createLogger({ level: 'info', now: () => 0, write: (line) => lines.push(line) });
  launcher = new PodLauncher({ home, image: 'tributary:1', clock, log });
});

afterEach(async () => {
  await home.close();
  await api.stop();
});

const deletions = (from: number): string[] =>
  api.log
    .slice(from)
    .filter((line) => line.startsWith('DELETE '))
    .map((line) => line.split('/').slice(-3).join('/'));

function seedPod(phase: string): void {
  api.seed(pods, {
    metadata: { namespace: 'tributary-agents', name: 'agent', labels: { 'tributary.dev/provider': ID } },
    status: { phase },
  });
}

test('a pod that does not go holds up its removal for a while, and loses its account all the same', async () => {
  await clock.during('ensure', launcher.ensure(WANTED, signal));
  seedPod('Running');
  const from = api.log.length;
  await clock.during('remove', launcher.remove(ID, signal));
  expect(
    api.log.slice(from).filter((line) => line.includes('/tributary-agents/pods')).length,
  ).toBeGreaterThan(3);
  expect(deletions(from)).toEqual(
    [
      `tributary-agents/deployments/${NAME}`,
      `shop/rolebindings/tributary-agent-${ID}`,
      `shop/rolebindings/tributary-agent-${ID}-kinds`,
      `tributary-system/rolebindings/${NAME}`,
      `tributary-system/roles/${NAME}`,
      `tributary-agents/serviceaccounts/${NAME}`,
    ].map((path) => expect.stringContaining(path.split('/').at(-1) ?? '')),
  );
  expect(lines.filter((line) => line.includes('does not go'))).toHaveLength(1);
});

test('a pod that has ended, or none, holds up nothing; what is not there is as good as removed', async () => {
  seedPod('Succeeded');
  await clock.during('remove', launcher.remove(ID, signal));
  expect(api.count(/\/tributary-agents\/pods/)).toBe(1);
  expect(lines).toEqual([]);
});

test('a credential that is elsewhere is refused before anything is made', async () => {
  const elsewhere = { ...WANTED, kubeconfigSecret: { namespace: 'default', name: 'x' } };
  await expect(launcher.ensure(elsewhere, signal)).rejects.toMatchObject({ code: 'Invalid' });
  expect(api.log).toEqual([]);
});

test('a namespace that refuses the binding does not keep the agent from starting', async () => {
  api.fault({ match: ({ path }) => path.includes('/namespaces/gone/'), times: Infinity, status: 403 });
  await clock.during('ensure', launcher.ensure({ ...WANTED, namespaces: ['gone', 'shop'] }, signal));
  expect(api.count(new RegExp(`PATCH .*/deployments/${NAME}`))).toBe(1);
  expect(lines.join()).toContain('no rights in a namespace');
});

test('rights in many namespaces are granted side by side: the last one does not wait for all the others', async () => {
  const many = Array.from({ length: 64 }, (_none, index) => `shop-${index}`);
  for (const name of many) api.seed(namespaces, { metadata: { name } });
  const isBinding = ({ path }: { path: string }): boolean =>
    /\/namespaces\/shop-.*\/rolebindings/u.test(path);
  api.fault({ match: isBinding, times: Infinity, delayMs: 100 });
  const before = clock.monotonic();
  await clock.during('ensure', launcher.ensure({ ...WANTED, namespaces: many }, signal), 60_000);
  const bindings = api.count(/\/namespaces\/shop-.*\/rolebindings/);
  expect(bindings).toBeGreaterThanOrEqual(64);
  // One after the other they would take 100 ms each.
  expect(clock.monotonic() - before).toBeLessThan((bindings * 100) / 4);
});

test('where one binding fails, none is still being granted when that is told', async () => {
  const many = Array.from({ length: 32 }, (_none, index) => `shop-${index}`);
  for (const name of many) api.seed(namespaces, { metadata: { name } });
  const isBinding = ({ path }: { path: string }): boolean => path.includes('/rolebindings');
  api.fault({ match: ({ path }) => isBinding({ path }) && path.includes('/shop-0/'), times: 9, status: 422 });
  api.fault({ match: isBinding, times: Infinity, delayMs: 100 });
  const ensured = launcher.ensure({ ...WANTED, namespaces: many }, signal);
  await expect(clock.during('ensure', ensured, 60_000)).rejects.toMatchObject({ code: 'Invalid' });
  const told = api.log.length;
  await clock.advance(10_000);
  // A late one could undo that the namespace was taken from the agent meanwhile.
  expect(api.log.slice(told)).toEqual([]);
});

describe('the agent is told', () => {
  type Told = Pick<ConstructorParameters<typeof PodLauncher>[0], 'dns' | 'logLevel'>;
  const argsOf = async (told: Told = {}): Promise<unknown> => {
    const log = createLogger({ level: 'info', now: () => 0, write: () => undefined });
    const telling = new PodLauncher({ home, image: 'tributary:1', ...told, clock, log });
    await clock.during('ensure', telling.ensure(WANTED, signal));
    const deployment = api.storage.get('deployments.apps', `tributary-agents/${NAME}`);
    return (deployment?.spec as Deployment['spec'] | undefined)?.template.spec?.containers[0]?.args;
  };
  const plain = ['run', 'peer', '--system-namespace', 'tributary-system', '--virtual-node', 'milan'];

  test('the DNS of this cluster where people have named it', async () => {
    expect(await argsOf()).toEqual(plain);
    expect(await argsOf({ dns: { nameservers: [], domain: undefined } })).toEqual(plain);
    const dns = { nameservers: ['10.96.0.10', 'fd00:96::a'], domain: 'cluster.local' };
    expect(await argsOf({ dns })).toEqual([
      ...plain,
      '--cluster-dns',
      '10.96.0.10,fd00:96::a',
      '--cluster-domain',
      'cluster.local',
    ]);
  });

  test('the level of logs of the role, unless that is the default', async () => {
    expect(await argsOf({ logLevel: 'debug' })).toEqual([...plain, '--log-level', 'debug']);
    expect(await argsOf({ logLevel: 'info' })).toEqual(plain);
  });
});
