import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { deploymentPath } from '../../support/e2e/api.ts';
import { BorrowLoad, WORKS } from './support/load.ts';
import { containersOf, isNodeReady, Peers, type City } from '../../support/e2e/peers.ts';
import { aDeployment, aPod, conditionOf, isReady } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { short } from '../../support/long.ts';

const NAMESPACE = 'nat';
const BYTES = 20 * 1024 * 1024;
const RENEWALS = short('renewals of a credential under load', { short: 3, long: 6 });
const onMilan = { spec: { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } } };
/** An HTTP server that becomes ready when somebody in the foreign cluster writes a file. */
const SERVER = 'mkdir -p /www; echo hello > /www/index.html; echo started; exec httpd -f -p 8080 -h /www';

let peers: Peers;
let tenant: string;

beforeAll(async () => {
  peers = await Peers.open();
  await peers.setNetwork('nat');
  await peers.peer(NAMESPACE);
  tenant = await peers.tenant(NAMESPACE);
  await peers.rome.create(deploymentPath(NAMESPACE), aDeployment('web', 2, undefined, onMilan));
  const readinessProbe = { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 1 };
  const server = aPod('server', SERVER, { ...onMilan, container: { readinessProbe } });
  await peers.runPod(NAMESPACE, server, ({ status }) => status?.phase === 'Running');
  await until(
    'the Deployment is there',
    async () => {
      const pods = await peers.rome.pods(NAMESPACE, 'app=web');
      return pods.length === 2 && pods.every(isReady);
    },
    { seconds: 60 },
  );
}, 400_000);

afterAll(async () => peers?.close(), 200_000);

const kubectl = (line: string): string => `kubectl -n ${NAMESPACE} ${line}`;
const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

test('nothing leads from rome to milan, and yet its API server is reached', async () => {
  const { address } = peers.lab.cluster('milan').node();
  const before = await peers.dropped();
  const attempt = ['timeout', '2', 'bash', '-c', `exec 3<>/dev/tcp/${address}/6443`] as const;
  await expect(
    peers.lab
      .cluster('rome')
      .node()
      .exec([...attempt]),
  ).rejects.toThrow(/dev\/tcp|Command failed/);
  expect(await peers.dropped()).toBeGreaterThan(before);
  await until('the way is told', async () => (await peers.advertisement())?.status?.access === 'DialBack', {
    seconds: 60,
    seen: async () => peers.advertisement(),
  });
  expect((await peers.cluster('rome'))?.status?.link).toMatchObject({ connected: true, dialledBy: 'Them' });
  expect((await peers.cluster('milan'))?.status?.link).toMatchObject({ connected: true, dialledBy: 'Us' });
});

test('logs, followed, and exec with its input and its exit code', async () => {
  const follow = peers.start(kubectl('logs -f server'));
  await follow.waitFor(/started/);
  await peers.ask(kubectl(`exec server -- sh -c 'echo more > /proc/1/fd/1'`));
  await follow.waitFor(/more/);
  await follow.stop();
  expect(await peers.run(kubectl('exec -i server -- cat'), { stdin: 'over and out' })).toMatchObject({
    code: 0,
    stdout: 'over and out',
  });
  const failed = await peers.run(kubectl(`exec server -- sh -c 'echo no >&2; exit 7'`));
  expect(failed).toMatchObject({ code: 7, stdout: '' });
  expect(failed.stderr).toContain('no');
});

test('20 MB by kubectl cp, there and back', async () => {
  const content = randomBytes(BYTES);
  writeFileSync(peers.file('there'), content);
  const slow = { timeoutMs: 90_000 };
  const began = performance.now();
  await peers.ask(kubectl('cp there server:/tmp/there'), slow);
  const middle = performance.now();
  const remote = await peers.ask(kubectl('exec server -- sha256sum /tmp/there'));
  expect(remote.split(' ')[0]).toBe(sha256(content));
  const later = performance.now();
  await peers.ask(kubectl('cp server:/tmp/there back'), slow);
  expect(sha256(readFileSync(peers.file('back')))).toBe(sha256(content));
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  console.info(
    `20 MB by dial-back: ${seconds(middle - began)} s there, ${seconds(performance.now() - later)} s back`,
  );
});

test('port-forward, and a change over there that a watch brings home', async () => {
  const forward = peers.start(kubectl('port-forward pod/server :8080'));
  const [, port] = await forward.waitFor(/Forwarding from 127.0.0.1:(\d+)/);
  const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(60_000) });
  expect(await answer.text()).toBe('hello\n');
  await forward.stop();
  const home = await peers.rome.pod(NAMESPACE, 'server');
  expect(conditionOf(home, 'Ready')?.status).toBe('False');
  await peers.ask(`kubectl --context milan -n ${tenant} exec server -- touch /tmp/ready`);
  await peers.untilPod(NAMESPACE, 'server', isReady);
});

/** Containers of all pods, as milan's nodes report them. */
const containers = async (): Promise<string[]> => containersOf(await peers.milan.pods(tenant));

async function expectAtWork(before: readonly string[]): Promise<void> {
  await peers.untilNodes('are Ready again', (nodes) => nodes.every(isNodeReady), 120);
  await until(
    'exec works again',
    async () => (await peers.run(kubectl('exec server -- echo here'))).stdout === 'here\n',
    { seconds: 60 },
  );
  expect(await peers.ask(kubectl('logs server --tail=100'))).toContain('started');
  expect(await containers()).toEqual(before);
  const pods = await until(
    'the Deployment is Ready at home',
    async () => {
      const pods = await peers.rome.pods(NAMESPACE);
      return pods.every((pod) => isReady(pod) || pod.metadata.name === 'server') && pods;
    },
    { seconds: 60 },
  );
  expect(containersOf(pods)).toEqual(before);
}

test('a cut network is an outage of an API server: the node says so, no container is restarted', async () => {
  const before = await containers();
  expect(before).toHaveLength(3);
  await peers.setNetwork('cut');
  const [node] = await peers.untilNodes('are not Ready', (nodes) => !nodes.some(isNodeReady), 120);
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  console.info(`while cut: ${ready?.status} ${ready?.reason}: ${ready?.message}`);
  expect(await containers()).toEqual(before);
  await peers.setNetwork('nat');
  await expectAtWork(before);
});

test.each<City>(['milan', 'rome'])('the cluster pod of %s is killed: as short an outage', async (city) => {
  const before = await containers();
  const old = (await peers.cluster(city))?.status?.link?.since;
  expect(old).toBeDefined();
  await peers.killCluster(city);
  await until(
    'the link is new',
    async () => {
      const link = (await peers.cluster(city))?.status?.link;
      return link?.connected === true && link.since !== old;
    },
    { seconds: 90, seen: async () => peers.cluster(city) },
  );
  await expectAtWork(before);
});

test(`${RENEWALS} credentials and the certificates of both are renewed under load: nothing fails`, async () => {
  const before = await containers();
  const since = async (): Promise<unknown> => (await peers.cluster('rome'))?.status?.link?.since;
  const link = await since();
  const tokens = new Set<string>();
  const token = async (): Promise<string> => (await peers.secret())?.data?.['kubeconfig'] ?? '';
  tokens.add(await token());
  const leaves = async (city: City): Promise<number> =>
    (await peers.clusterLog(city)).split('peering certificate renewed').length - 1;
  const at = { rome: await leaves('rome'), milan: await leaves('milan') };
  const load = await BorrowLoad.start(peers, { namespace: NAMESPACE, tenant, pod: 'server' });
  for (let renewal = 0; renewal < RENEWALS; renewal++) {
    await peers.ask('tributary renew milan');
    await until('a new token is in the Secret', async () => !tokens.has(await token()));
    tokens.add(await token());
    await load.untilRepeated(['exec', 'logs', 'lists']);
  }
  for (const city of ['rome', 'milan'] as const) {
    await until(`${city} has a new leaf`, async () => (await leaves(city)) > at[city], { seconds: 90 });
  }
  await load.untilRepeated(WORKS);
  const { done, failures } = await load.end();
  console.info(`under load: ${JSON.stringify(done)}`);
  expect(failures).toEqual([]);
  expect(await since()).toBe(link);
  expect(await containers()).toEqual(before);
});
