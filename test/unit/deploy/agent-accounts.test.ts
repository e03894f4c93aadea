import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { namespaces } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import { AgentAccounts } from '../../../src/deploy/agent-accounts.ts';
import { PodLauncher } from '../../../src/deploy/launcher.ts';
import { SharedLauncher } from '../../../src/deploy/shared-launcher.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { FakeApi } from '../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { wantedAgent } from './support/wanted-agent.ts';

/** Agents that run within role `all`, and what role `cluster` has left for it. */

const ID = 'a'.repeat(26);
const OWN = `tributary-agents/tributary-peer-${ID}`;
const { signal } = new AbortController();
const WANTED = wantedAgent(ID, 'milan');

let clock: FakeClock;
let api: FakeApi;
let home: HttpClient;

beforeEach(() => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [virtualNodes] });
  for (const name of ['shop', 'tributary-agents', 'tributary-system']) {
    api.seed(namespaces, { metadata: { name } });
  }
  const labels = { 'tributary.dev/provider': ID };
  api.seed(virtualNodes, { metadata: { name: 'milan', labels }, spec: {} });
  home = api.client();
});

afterEach(async () => {
  await home.close();
  await api.stop();
});

const options = (): ConstructorParameters<typeof PodLauncher>[0] => ({
  home,
  image: 'tributary:1',
  clock,
  log: silentLogger,
});
const ensure = async (by: Pick<AgentAccounts, 'ensure'>): Promise<void> =>
  clock.during('ensure', by.ensure(WANTED, signal), 60_000);
const keys = (kind: string): string[] =>
  api.storage.list(kind).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
const isLabelled = (): boolean =>
  api.storage.get('virtualnodes.tributary.dev', 'milan')?.metadata.labels?.['tributary.dev/agent'] !==
  undefined;
/** Accounts that the Role of the agent is bound to. */
function holders(): string[] {
  const key = `tributary-system/tributary-peer-${ID}`;
  const binding = api.storage.get('rolebindings.rbac.authorization.k8s.io', key);
  return ((binding as { subjects?: { name: string }[] } | undefined)?.subjects ?? []).map(({ name }) => name);
}

test('an agent has its account with the rights of one in a pod, and no pod; all of it goes with the agent', async () => {
  const accounts = new AgentAccounts(options());
  await ensure(accounts);
  expect(keys('serviceaccounts')).toEqual([OWN]);
  expect(holders()).toEqual([`tributary-peer-${ID}`]);
  expect(keys('rolebindings.rbac.authorization.k8s.io')).toContain(`shop/tributary-agent-${ID}`);
  expect(keys('deployments.apps')).toEqual([]);
  await clock.during('remove', accounts.remove(ID, signal), 60_000);
  for (const kind of [
    'serviceaccounts',
    'roles.rbac.authorization.k8s.io',
    'rolebindings.rbac.authorization.k8s.io',
  ]) {
    expect(keys(kind)).toEqual([]);
  }
});

test('the pod of before makes way, and its account stays', async () => {
  await ensure(new PodLauncher(options()));
  expect(keys('deployments.apps')).toEqual([OWN]);
  await ensure(new AgentAccounts(options()));
  expect(keys('deployments.apps')).toEqual([]);
  expect(keys('serviceaccounts')).toEqual([OWN]);
});

test('the agent of all lets go of the virtual node while it has rights there, and loses them at the next look', async () => {
  await ensure(new SharedLauncher(options()));
  expect(holders()).toEqual(['tributary-peers']);
  expect(isLabelled()).toBe(true);
  const accounts = new AgentAccounts(options());
  await ensure(accounts);
  expect(isLabelled()).toBe(false);
  expect(holders()).toEqual([`tributary-peer-${ID}`, 'tributary-peers']);
  expect(keys('deployments.apps')).toEqual(['tributary-agents/tributary-peers']);
  await ensure(accounts);
  expect(holders()).toEqual([`tributary-peer-${ID}`]);
  expect(keys('deployments.apps')).toEqual([]);
  expect(keys('serviceaccounts')).toEqual([OWN]);
});
