import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Finding } from '../../../src/doctor/finding.ts';
import { condition, facts, ID, NOW } from './support/facts.ts';

const NETWORK = 'tributary-network';
const metadata = { namespace: 'tributary-system', name: 'tributary-cluster' };
const labels = { 'app.kubernetes.io/name': 'tributary' };

const deployment = (readyReplicas: number, failure?: string): object => ({
  metadata: { ...metadata, labels },
  status: {
    readyReplicas,
    conditions: [
      { type: 'Available', status: 'False' },
      ...(failure === undefined
        ? []
        : [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: failure }]),
    ],
  },
});
const about = (given: ReturnType<typeof facts>, tried: string): Finding | undefined =>
  examine(given).find((one) => one.tried.startsWith(tried));

test.each([
  [
    'violates PodSecurity "restricted:latest": host namespaces',
    { remedy: /permits less than the pod needs/u, run: /^tributary upgrade$/u },
  ],
  ['exceeded quota: q', { remedy: /what the message names/u, run: /describe replicasets/u }],
  [undefined, { remedy: /its pods say why/u, run: /describe pods/u }],
] as const)('where no pod can be made, the Deployment says why: %s', (failure, { remedy, run }) => {
  const found = about(facts({ deployments: [deployment(0, failure)] }), 'Deployment');
  expect(found).toMatchObject({ level: 'problem' });
  if (failure !== undefined)
    expect(found?.cameBack).toBe(`0 of 1 ready, and no pod can be made: FailedCreate: ${failure}`);
  expect(found?.remedy).toMatch(remedy);
  expect(found?.run).toMatch(run);
});

test('one that runs, and that could not be made again, is a warning', () => {
  expect(about(facts({ deployments: [deployment(1, 'no')] }), 'Deployment')).toMatchObject({
    level: 'warning',
    cameBack: '1 of 1 ready, and no pod can be made: FailedCreate: no',
  });
});

test('what was installed and is not there is told, and nothing of what cannot be read', () => {
  const roles = [
    { kind: 'Deployment', ...metadata },
    { kind: 'Deployment', namespace: NETWORK, name: 'tributary-gateway' },
    { kind: 'DaemonSet', namespace: NETWORK, name: 'tributary-node' },
  ];
  const given = facts({ deployments: [deployment(1)] }, { installation: { roles } });
  const said = (of: typeof given): unknown[] =>
    examine(of).flatMap(({ check, level, tried, run }) =>
      check === 'installation' ? [[level, tried, run]] : [],
    );
  expect(said(given)).toEqual([
    ['problem', `Deployment ${NETWORK}/tributary-gateway`, 'tributary upgrade'],
    ['problem', `DaemonSet ${NETWORK}/tributary-node`, 'tributary upgrade'],
  ]);
  const problem = { message: 'no', wanted: 'list', isForbidden: true, isKindUnknown: false };
  const unread = { ...given.lists, deployments: { problem }, daemonSets: { problem } };
  expect(said({ ...given, lists: unread })).toEqual([
    ['ok', 'ConfigMap tributary-system/tributary-installation', undefined],
  ]);
  expect(said(facts({}))).toEqual([]);
});

test('a gateway without a Deployment cannot be scaled', () => {
  const lease = {
    metadata: { namespace: 'tributary-system', name: 'tributary-gateway' },
    spec: { holderIdentity: 'n1', renewTime: new Date(NOW - 60_000).toISOString() },
  };
  expect(about(facts({ leases: [lease] }), 'Lease tributary-gateway')).toMatchObject({
    remedy: 'no gateway runs, and there is no Deployment tributary-gateway: make it again',
    run: 'tributary upgrade',
  });
});

test('a gateway without WireGuard is the first problem, and what follows from it names it', () => {
  const tunnel = {
    metadata: { name: ID },
    spec: { clusterID: ID },
    status: {
      conditions: [
        condition('Connected', 'False', 'NoHandshake'),
        condition('HostConfigured', 'False', 'WireGuardNotRunning', 'this kernel has no WireGuard'),
      ],
    },
  };
  const having = (choice: string): unknown[] => {
    const template = { spec: { containers: [{ args: ['run', 'gateway', '--wireguard', choice] }] } };
    const gateway = { metadata: { namespace: NETWORK, name: 'tributary-gateway' }, spec: { template } };
    return examine(facts({ tunnels: [tunnel], deployments: [gateway] })).flatMap((one) =>
      one.level === 'problem'
        ? [[one.tried.slice(0, 22), one.cameBack, one.remedy ?? '', one.run ?? '']]
        : [],
    );
  };
  const because = [
    expect.stringMatching(/^packets through/u),
    expect.any(String),
    'nothing can come or go: the line "WireGuard at the gateway" says why',
    '',
  ];
  expect(having('kernel')).toEqual([
    [
      'WireGuard at the gatew',
      'this kernel has no WireGuard',
      'load the module wireguard on the node of the gateway, or let wireguard-go take its place',
      'tributary upgrade --wireguard auto',
    ],
    because,
  ]);
  expect(having('auto')).toEqual([
    [
      'WireGuard at the gatew',
      'this kernel has no WireGuard',
      'the container wireguard of the gateway must run: its log says why it does not',
      'kubectl -n tributary-network logs deployment/tributary-gateway --all-containers --tail=50',
    ],
    because,
  ]);
});
