import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { advertisements } from '../../../../src/api/advertisement.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../../../src/api/peering-request.ts';
import { configMaps, daemonSets, deployments, leases, nodes, pods } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import { statusCommand } from '../../../../src/cli/look/status.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const TURIN = 'turin'.padEnd(26, 'b');
const HOME = 'home'.padEnd(26, 'c');
const SYSTEM = 'tributary-system';
const SINCE = '2026-01-01T00:00:00Z';

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.seedOwn(HOME, configMaps);
  role('cluster', 1);
  const spec = { renewTime: new Date(Date.now() + 1000).toISOString() };
  world.seed(leases, { metadata: { namespace: SYSTEM, name: 'tributary-cluster' }, spec });
});
afterEach(async () => world.stop());

const labelled = (name: string, namespace = SYSTEM): object => ({
  namespace,
  name: `tributary-${name}`,
  labels: { 'app.kubernetes.io/name': 'tributary', 'app.kubernetes.io/instance': `tributary-${name}` },
});
function role(name: string, readyReplicas: number): void {
  world.seed(deployments, { metadata: labelled(name), spec: { replicas: 1 }, status: { readyReplicas } });
}

const established = { phase: 'Established', reason: 'AsExpected', since: SINCE };

function peer(name: string, id: string, status: object = {}): void {
  world.seed(foreignClusters, {
    metadata: { name },
    spec: { clusterID: id },
    status: { clusterName: 'Milan', link: { connected: true }, outgoing: established, ...status },
  });
}

function lent(name: string, id: string, ready: object = { status: 'True' }): void {
  world.seed(virtualNodes, {
    metadata: { name, labels: { 'tributary.dev/provider': id } },
    spec: { resources: {}, labels: { 'tributary.dev/cluster': name } },
    status: { conditions: [{ type: 'Ready', ...ready }] },
  });
  world.seed(nodes, {
    metadata: { name, labels: { 'tributary.dev/node-type': 'virtual-node' } },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '10' } },
  });
}

const pod = (name: string, nodeName: string | undefined, phase = 'Running'): unknown =>
  world.seed(pods, {
    metadata: { namespace: 'shop', name },
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      containers: [{ name: 'a', resources: { requests: { cpu: '250m', memory: '512Mi' } } }],
    },
    status: { phase },
  });

function healthy(): void {
  world.seed(daemonSets, {
    metadata: labelled('gateway', 'tributary-network'),
    status: { numberReady: 2, desiredNumberScheduled: 2 },
  });
  peer('milan', MILAN);
  world.seed(foreignClusters, { metadata: { name: TURIN }, spec: {}, status: {} });
  world.seed(tunnels, {
    metadata: { name: MILAN },
    spec: { clusterID: MILAN },
    status: { connection: { rttMs: 12.3, lossPercent: 0 }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  lent('milan', MILAN);
  world.seed(namespaceOffloadings, {
    metadata: { namespace: 'shop', name: 'offloading' },
    spec: { podStrategy: 'LocalAndRemote' },
    status: {
      clusters: [
        {
          cluster: MILAN,
          clusterName: 'milan',
          virtualNodes: ['milan'],
          phase: 'Ready',
          reason: 'AsExpected',
        },
      ],
      conditions: [{ type: 'Ready', status: 'True', reason: 'AsExpected', message: 'in milan' }],
    },
  });
  pod('there', 'milan');
  pod('here', 'worker-1');
  pod('waits', undefined, 'Pending');
  pod('done', 'milan', 'Succeeded');
}

test('one page says how the cluster is', async () => {
  healthy();
  const { code, out, err } = await world.run(statusCommand, '');
  expect([code, err]).toEqual([0, '']);
  expect(out).toBe(`Home (${HOME}): healthy; tributary 0.1.0

Roles
  ROLE      READY   NAMESPACE
  cluster   1/1     tributary-system
  gateway   2/2     tributary-network

Peers
  NAME    CLUSTER   OUTGOING      INCOMING   LINK   RTT       LOSS
  milan   Milan     Established   None       up     12.3 ms   0 %
  1 more known: tributary discover

Virtual nodes
  NAME    CLUSTER   READY   PODS      CPU        MEMORY
  milan   milan     yes     1 of 10   0.2 of 4   512Mi of 8Gi

Offloaded namespaces
  NAME   STRATEGY         READY   IN      AT HOME   ABROAD   WAITING
  shop   LocalAndRemote   yes     milan   1         1        1
`);
});

test('a cluster to which no new pods are sent is closed everywhere, and the page says why', async () => {
  const why = 'no new pods are sent there: cpu: 0.03 EUR asked, at most 0.01 EUR wanted';
  peer('milan', MILAN, { outgoing: { ...established, reason: 'OfferRefused', message: why } });
  lent('milan', MILAN, { status: 'True', reason: 'Closed', message: why });
  const clusters = [
    { cluster: MILAN, clusterName: 'milan', virtualNodes: [], phase: 'Ready', reason: 'VirtualNodeClosed' },
  ];
  const message = `in milan (${why})`;
  world.seed(namespaceOffloadings, {
    metadata: { namespace: 'shop', name: 'offloading' },
    spec: {},
    status: {
      clusters,
      conditions: [{ type: 'Ready', status: 'True', reason: 'VirtualNodeClosed', message }],
    },
  });
  const { out } = await world.run(statusCommand, '');
  expect(out).toMatch(/^Home \(.*\): 2 problem/);
  expect(out).toMatch(/ milan +Milan +closed +None/);
  expect(out).toMatch(/ milan +milan +closed +0 of 10/);
  expect(out).toMatch(/ shop .* milan \(closed\) /);
  expect(out).toContain(`peer milan: outgoing closed: OfferRefused: ${why}\n`);
  expect(out).toContain(`namespace shop: VirtualNodeClosed: in milan (${why})\n`);
});

test('-o json and yaml print the page as data', async () => {
  healthy();
  const json = JSON.parse((await world.run(statusCommand, '-o json')).out);
  expect(json).toMatchObject({ isHealthy: true, clusterID: HOME, others: 1, problems: [], unreadable: [] });
  expect(parse((await world.run(statusCommand, '-o yaml')).out)).toEqual(json);
  expect((await world.run(statusCommand, '-o wide')).out).toMatch(
    new RegExp(`CLUSTER ID\\n.*milan.* ${MILAN}\\n`),
  );
});

test('an empty cluster is healthy, and says how to go on', async () => {
  const { code, out } = await world.run(statusCommand, '');
  expect(code).toBe(0);
  expect(out).toContain('none; peer with a cluster: tributary peer --help');
  expect(out).toContain('none; offload one: tributary offload NAMESPACE');
});

const PROBLEMS: [string, () => void, string][] = [
  [
    'a role that is not ready',
    () => role('gateway', 0),
    'role gateway: 0 of 1 pods are ready\n    kubectl -n tributary-system describe deployment/tributary-gateway',
  ],
  [
    'a peer without a link',
    () => peer('milan', MILAN, { link: { connected: false } }),
    'peer milan: no link: the other cluster does not answer\n    kubectl describe foreigncluster milan',
  ],
  [
    'a peering that is wanted and impossible',
    () =>
      peer('milan', MILAN, {
        outgoing: { phase: 'Pending', reason: 'EndpointUnreachable', message: 'refused' },
      }),
    'peer milan: outgoing Pending: EndpointUnreachable: refused',
  ],
  [
    'a tunnel that is down',
    () =>
      world.seed(tunnels, {
        metadata: { name: MILAN },
        spec: { clusterID: MILAN, clusterName: 'milan' },
        status: {
          conditions: [{ type: 'Ready', status: 'False', reason: 'NoHandshake', message: 'never heard' }],
        },
      }),
    `tunnel to milan: NoHandshake: never heard\n    kubectl describe tunnel ${MILAN}`,
  ],
  [
    'a virtual node that is not ready',
    () => lent('milan', MILAN, { status: 'False', reason: 'AgentNotRunning', message: 'no Lease' }),
    'virtual node milan: AgentNotRunning: no Lease\n    kubectl describe virtualnode milan',
  ],
  [
    'a namespace that no cluster takes',
    () =>
      world.seed(namespaceOffloadings, {
        metadata: { namespace: 'shop', name: 'offloading' },
        spec: {},
        status: {
          conditions: [{ type: 'Ready', status: 'False', reason: 'AllClustersFailed', message: 'x: y' }],
        },
      }),
    'namespace shop: AllClustersFailed: x: y\n    kubectl -n shop describe namespaceoffloading',
  ],
  [
    'a role that has gone silent',
    () => {
      world.api.storage.remove('leases.coordination.k8s.io', `${SYSTEM}/tributary-cluster`);
      const spec = { renewTime: new Date(Date.now() - 600_000).toISOString() };
      world.seed(leases, { metadata: { namespace: SYSTEM, name: 'tributary-cluster' }, spec });
    },
    'role cluster: it has not renewed its Lease tributary-cluster for 60',
  ],
];

test.each(PROBLEMS)('a problem is told with its cause and a command: %s', async (_name, arrange, told) => {
  arrange();
  const { code, out } = await world.run(statusCommand, '');
  expect(code).toBe(1);
  expect(out).toContain('1 problem(s), below');
  expect(out).toContain(`\nProblems\n  ${told}`);
});

test('what waits for a person is no problem, and is told with the command that decides', async () => {
  const waits = { phase: 'Pending', reason: 'WaitingForApproval' };
  peer('turin', TURIN, { outgoing: { ...waits, phase: 'Pending' }, incoming: waits });
  world.seed(peeringRequests, {
    metadata: { name: TURIN },
    spec: { clusterID: TURIN, clusterName: 'turin', namespaces: ['shop'] },
    status: waits,
  });
  world.seed(advertisements, {
    metadata: { name: MILAN },
    spec: { clusterID: MILAN, clusterName: 'mi\u001Blan', offer: { resources: { cpu: '2', memory: '4Gi' } } },
    status: { decision: 'Pending', reason: 'WaitingForApproval' },
  });
  const { code, out } = await world.run(statusCommand, '');
  expect(code).toBe(0);
  expect(out).toContain(`
Waits for you
  request of turin: wants to run pods here, for namespaces shop
    tributary approve peeringrequest ${TURIN}
  offer of mi?lan: lends 2 CPU and 4Gi of memory
    tributary approve advertisement ${MILAN}

Waits for Milan
  peer turin: Its administrator has to approve, over there: tributary approve peeringrequest ${HOME}
    kubectl describe foreigncluster turin
`);
  const { out: json } = await world.run(statusCommand, '-o json');
  expect(JSON.parse(json)).toMatchObject({
    waiting: [{ about: 'request of turin' }, { about: 'offer of mi\u001Blan' }],
    waitingForOthers: [{ about: 'peer turin', waitsFor: 'Milan' }],
  });
});

test('what a restored backup has lost waits for somebody who makes it anew', async () => {
  lent('milan', MILAN);
  const restored = { type: 'Restored', status: 'True', reason: 'HomeRestored', message: '1 pod (shop/web)' };
  world.seed(virtualNodes, {
    metadata: { name: 'lost', labels: { 'tributary.dev/provider': TURIN } },
    spec: { resources: {}, labels: { 'tributary.dev/cluster': 'lost' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }, restored] },
  });
  const { code, out } = await world.run(statusCommand, '');
  expect(code).toBe(0);
  expect(out).toContain(`
Waits for you
  virtual node lost: HomeRestored: 1 pod (shop/web)
    kubectl describe virtualnode lost
`);
});

test('a join token is waited for from the other cluster, and then brought here', async () => {
  peer('turin', TURIN, { outgoing: { phase: 'Pending', reason: 'TokenRequired' } });
  const { out } = await world.run(statusCommand, '');
  expect(out).not.toContain('Waits for you');
  expect(out).toContain(`
Waits for Milan
  peer turin: Its administrator has to make a join token, over there: tributary token create. Then bring it here
    tributary peer `);
});

test('commands that it names speak to the cluster that was asked', async () => {
  const waits = { phase: 'Pending', reason: 'WaitingForApproval' };
  peer('turin', TURIN, { outgoing: waits, incoming: waits });
  world.seed(peeringRequests, {
    metadata: { name: TURIN },
    spec: { clusterID: TURIN, clusterName: 'turin', namespaces: [] },
    status: waits,
  });
  world.others.set('rome', world.api);
  const { out } = await world.run(statusCommand, ['--context', 'rome', '--kubeconfig', '/a b/k']);
  const where = `--kubeconfig '/a b/k' --context rome`;
  expect(out).toContain(`\n    tributary ${where} approve peeringrequest ${TURIN}\n`);
  expect(out).toContain(
    `over there: tributary approve peeringrequest ${HOME}\n    kubectl ${where} describe`,
  );
  expect(out).toContain(`none; offload one: tributary ${where} offload NAMESPACE`);
  const { out: json } = await world.run(statusCommand, '--context rome -o json');
  expect(JSON.parse(json)).toMatchObject({
    waiting: [{ see: `tributary --context rome approve peeringrequest ${TURIN}` }],
  });
});

test('what may not be read is said, and the rest is shown', async () => {
  healthy();
  world.api.fault({
    match: ({ path }) => /\/(pods|tunnels)$/.test(path),
    times: 99,
    status: 403,
    message: 'no right',
  });
  const { code, out } = await world.run(statusCommand, '');
  expect(code).toBe(0);
  expect(out).toMatch(/ {2}milan {3}Milan {5}Established .* - +-\n/);
  expect(out).toMatch(/\nNot shown, since it cannot be read\n {2}pods of shop: .*no right/);
  expect(out).toMatch(/ {2}tunnels: .*no right/);
  expect(out).toMatch(/ {2}use of virtual nodes: .*no right/);
  expect(out).toMatch(/^Home .*: no problem in what can be read; 4 part\(s\) cannot, below; /);
});

test('what may not be read is not said to be none', async () => {
  healthy();
  world.api.fault({
    match: ({ path }) =>
      /\/(deployments|daemonsets|foreignclusters|virtualnodes|namespaceoffloadings)$/.test(path),
    times: 99,
    status: 403,
    message: 'no right',
  });
  const { out } = await world.run(statusCommand, '');
  expect(out).not.toMatch(/^ {2}none/m);
  expect(out.match(/^ {2}unknown: they cannot be read, see below$/gm)).toHaveLength(4);
});

test('a cluster without Tributary is told as such', async () => {
  world.api.fault({ match: ({ path }) => path.includes('tributary.dev'), times: 99, status: 404 });
  const { code, out, err } = await world.run(statusCommand, '');
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(
    /^Tributary is not in this cluster, or an older version of it \(.*\): is it the cluster that you mean\? If so: tributary install\n$/,
  );
});

test('lists are read at once: a page of 20 peers takes no longer than the slowest few of them', async () => {
  for (let i = 0; i < 20; i++) {
    const id = `peer${String.fromCharCode(97 + i)}`.padEnd(26, 'z');
    peer(`p${i}`, id);
    lent(`p${i}`, id);
  }
  let [now, most] = [0, 0];
  world.api.fault({
    match: () => {
      most = Math.max(most, ++now);
      setTimeout(() => now--, 20);
      return true;
    },
    times: 999,
    delayMs: 20,
  });
  expect((await world.run(statusCommand, '')).code).toBe(0);
  expect(most).toBeGreaterThanOrEqual(20);
});

test('--watch draws again what has changed, in place on a terminal, and ends in order', async () => {
  peer('milan', MILAN);
  world.columns = 100;
  world.hasColours = true;
  let looks = 0;
  world.api.fault({
    match: ({ path }) => {
      if (!path.endsWith('/foreignclusters')) return false;
      looks += 1;
      if (looks === 3) peer('turin', TURIN, { link: { connected: false } });
      if (looks === 5) world.abort.abort(new Error('Ctrl-C'));
      return false;
    },
    times: 99,
  });
  const { code, out } = await world.run(statusCommand, '--watch');
  const pages = out.split('\u001B[H\u001B[J').slice(1);
  expect(pages).toHaveLength(2);
  expect(pages[0]).toContain('\u001B[32mhealthy\u001B[0m');
  expect(pages[1]).toContain('\u001B[31mProblems\u001B[0m');
  expect(code).toBe(1);
});

test('a pod that its own template keeps away from home is a problem', async () => {
  healthy();
  const kept = (name: string, spec: object, status: object): unknown =>
    world.seed(pods, {
      metadata: { namespace: 'api', name },
      spec: { containers: [], ...spec },
      status: { phase: 'Pending', ...status },
    });
  const refusal = { type: 'tributary.dev/Offloaded', status: 'False', reason: 'NamespaceNotOffloaded' };
  const nodeSelector = { 'tributary.dev/virtual-node': 'milan' };
  kept('bound', { nodeName: 'milan', nodeSelector }, { conditions: [refusal] });
  kept('unbound', { nodeSelector }, {});
  kept('other', {}, {});
  const { out } = await world.run(statusCommand, '');
  expect(out).toMatch(/^Home \(.*\): 1 problem/);
  expect(out).toContain(
    'namespace api: it is not offloaded: 2 pod(s) wait for a virtual node and do not run, since their own template sends them there. To run them here: bound, unbound: take the nodeSelector tributary.dev/virtual-node out of it, and make it anew\n' +
      '    kubectl -n api describe pod bound\n',
  );
});
