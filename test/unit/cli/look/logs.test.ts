import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { pods } from '../../../../src/api/resources.ts';
import { logsCommand } from '../../../../src/cli/look/logs.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const LINE = {
  time: '2026-01-01T00:00:00.000Z',
  level: 'warn',
  logger: 'tributary.link',
  message: 'link lost',
  peer: 'mi\u001Blan',
  why: 'no answer',
  tries: 3,
};
const DEBUG = { ...LINE, level: 'debug', message: 'hello' };
const LOG = `${JSON.stringify(DEBUG)}\n${JSON.stringify(LINE)}\nnode: out of memory\n{"kind":"other"}\n`;

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  pod('cluster', 'tributary-system');
  pod('gateway', 'tributary-network');
  pod(`peer-${MILAN}`, 'tributary-agents', { 'tributary.dev/provider': MILAN });
  world.seed(foreignClusters, { metadata: { name: 'milan' }, spec: { clusterID: MILAN } });
  world.seed(foreignClusters, { metadata: { name: 'turin' }, spec: { clusterID: 'turin'.padEnd(26, 'b') } });
  world.api.fault({ match: ({ path }) => path.endsWith('/log'), times: 99, body: LOG });
});
afterEach(async () => world.stop());

function pod(role: string, namespace: string, labels: object = {}): void {
  const name = `tributary-${role}`;
  const own = { 'app.kubernetes.io/name': 'tributary', 'app.kubernetes.io/instance': name, ...labels };
  world.seed(pods, {
    metadata: { namespace, name: `${name}-x1`, labels: own },
    spec: { containers: [{ name: role }, { name: 'wireguard' }] },
  });
}

const asked = (): string[] => world.api.log.filter((line) => line.includes('/log'));

test('lines are made readable, and other text is shown as it is', async () => {
  const { code, out, err } = await world.run(logsCommand, 'cluster');
  expect([code, err]).toEqual([0, '']);
  expect(out).toBe(
    `2026-01-01T00:00:00.000Z DEBUG link: hello peer="mi\\u001blan" why="no answer" tries=3
2026-01-01T00:00:00.000Z WARN  link: link lost peer="mi\\u001blan" why="no answer" tries=3
node: out of memory
{"kind":"other"}
`.replaceAll('"mi\\u001blan"', 'mi?lan'),
  );
  expect(asked()).toEqual([
    'GET /api/v1/namespaces/tributary-system/pods/tributary-cluster-x1/log?container=cluster&tailLines=200',
  ]);
});

test('where all roles are one process, each of them is that one', async () => {
  world.seed(pods, {
    metadata: {
      namespace: 'tributary-system',
      name: 'tributary-cluster-one',
      labels: { 'app.kubernetes.io/name': 'tributary', 'app.kubernetes.io/instance': 'tributary-cluster' },
    },
    spec: { containers: [{ name: 'tributary', args: ['run', 'all'] }, { name: 'wireguard' }] },
  });
  await world.run(logsCommand, 'node');
  expect(asked()).toContainEqual(
    expect.stringContaining('/pods/tributary-cluster-one/log?container=tributary'),
  );
});

test('levels, times and numbers of lines are as asked for', async () => {
  const { out } = await world.run(logsCommand, 'cluster --level warn --since 5m --tail 7');
  expect(out).not.toContain('hello');
  expect(out).toContain('out of memory');
  expect(asked()[0]).toContain('tailLines=7&sinceSeconds=300');
});

test.each([
  [
    'cluster --level error',
    'None of the 2 lines that were read is of level error or above. To read more of them: --tail N\n',
  ],
  [
    '--level error',
    'None of the 6 lines that were read is of level error or above. To read more of them: --tail N\n',
  ],
  [
    'cluster --level error --since 5m',
    'None of the 2 lines that were read of the last 300 s is of level error or above.\n',
  ],
])('without a line of that level: %s', async (line, said) => {
  await ownLinesOnly(`${JSON.stringify(DEBUG)}\n${JSON.stringify(LINE)}\n`);
  expect(await world.run(logsCommand, line)).toEqual({ code: 0, out: '', err: said });
});

test('an empty log is told, too', async () => {
  await ownLinesOnly('');
  expect(await world.run(logsCommand, 'cluster')).toEqual({ code: 0, out: '', err: 'There are no lines.\n' });
});

/** Without what a crash or a library has written, which has no level and is always shown. */
async function ownLinesOnly(body: string): Promise<void> {
  await world.stop();
  world = CliWorld.start();
  pod('cluster', 'tributary-system');
  pod('gateway', 'tributary-network');
  pod('node', 'tributary-network');
  world.api.fault({ match: ({ path }) => path.endsWith('/log'), times: 99, body });
}

test('-o json prints lines as they were written', async () => {
  const { out } = await world.run(logsCommand, 'cluster --level warn -o json');
  expect(out.split('\n')[0]).toBe(JSON.stringify(LINE));
});

test('lines of several pods begin with the name of their pod, in colours on a terminal that shows them', async () => {
  const plain = (await world.run(logsCommand, '')).out;
  expect(plain).toMatch(/^tributary-cluster-x1 {25}2026/);
  expect(asked()).toHaveLength(3);
  world.hasColours = true;
  const { out } = await world.run(logsCommand, '');
  expect(out).toContain('\u001B[33mWARN \u001B[0m');
});

test.each([['milan'], [MILAN], [`peer-${MILAN}`]])('the agent of a peer, as %s', async (name) => {
  expect((await world.run(logsCommand, name)).code).toBe(0);
  expect(asked()).toEqual([expect.stringContaining(`/tributary-agents/pods/tributary-peer-${MILAN}-x1/log`)]);
});

test('a pod whose log cannot be read is named, and the others are shown', async () => {
  await world.stop();
  world = CliWorld.start();
  pod('cluster', 'tributary-system');
  pod('gateway', 'tributary-network');
  const isLog = (path: string): boolean => path.endsWith('/log');
  world.api.fault({ match: ({ path }) => isLog(path), status: 403, message: 'no right' });
  world.api.fault({ match: ({ path }) => isLog(path), times: 9, body: LOG });
  const { code, out, err } = await world.run(logsCommand, '');
  expect(code).toBe(1);
  expect(err).toMatch(/^logs of tributary-cluster-x1: .*no right\n$/);
  expect(out).toContain('tributary-gateway-x1 2026');
});

test('-f follows, and an interruption is no failure of a log', async () => {
  expect((await world.run(logsCommand, 'cluster -f')).code).toBe(0);
  expect(asked()[0]).toContain('&follow=true');
  world.api.fault({
    match: ({ path }) => (path.endsWith('/log') && world.abort.abort(new Error('Ctrl-C')), false),
  });
  const { code, err } = await world.run(logsCommand, 'gateway -f');
  expect([code, err]).toEqual([0, '']);
});

test.each([
  ['node', 1, 'no pod of the role node is in this cluster\n'],
  [
    'rome',
    1,
    '"rome" is no role (cluster, gateway, node or peers), and as a peer it cannot be found: ' +
      'no ForeignCluster has the name or ClusterID "rome"; see: tributary peerings\n',
  ],
  [
    'turin',
    1,
    'no agent of turin runs here: it lends nothing to this cluster, or its agent is in one process with the other roles: tributary logs cluster\n',
  ],
  ['cluster --tail all', 2, '--tail must be a number of lines, not "all"\n'],
  ['cluster --since yesterday', 2, '--since: "yesterday" is not a duration'],
  ['cluster --level warning', 2, '--level must be one of debug, info, warn, error, not "warning"\n'],
])('logs %s: %i', async (line, code, message) => {
  const outcome = await world.run(logsCommand, line);
  expect([outcome.code, outcome.out]).toEqual([code, '']);
  expect(outcome.err).toContain(message);
});

test('a cluster without pods of ours', async () => {
  const other = CliWorld.start();
  const { code, err } = await other.run(logsCommand, '');
  expect(code).toBe(1);
  expect(err).toContain('no pod of Tributary is in this cluster');
  await other.stop();
});
