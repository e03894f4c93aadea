import { describe, expect, test } from '@jest/globals';

import type { PolicyRule } from '../../../src/api/rbac.ts';
import { lackingRules } from '../../../src/doctor/checks/access.ts';
import { examine } from '../../../src/doctor/examine.ts';
import type { Facts, Seen } from '../../../src/doctor/facts.ts';
import { exitCodeOf, type Finding, type Level } from '../../../src/doctor/finding.ts';
import { condition, facts, ID, NOW } from './support/facts.ts';

/** We use it, and it has not asked to use us. */
const LENT_TO_NOBODY = {
  outgoing: { phase: 'Established', reason: 'OK', message: 'it runs' },
  incoming: { phase: 'None', reason: 'NoPolicyMatches', message: 'no SharingPolicy selects this cluster' },
};
const cluster = (status: object, spec: object = {}): object => ({
  metadata: { name: 'm' },
  spec: { clusterID: ID, ...spec },
  status: { clusterName: 'milan', clusterID: ID, ...status },
});
const tunnel = (status: object): object => ({
  metadata: { name: ID },
  spec: { clusterID: ID, peer: { endpoints: ['10.0.0.2:51820'] } },
  status,
});
const tunnelWith = (...conditions: object[]): object => tunnel({ conditions });
const lease = (name: string, offMs: number, more: object = {}): object => ({
  metadata: { namespace: 'tributary-system', name },
  spec: {
    holderIdentity: 'n1',
    renewTime: new Date(NOW + offMs).toISOString(),
    leaseDurationSeconds: 15,
    ...more,
  },
  writtenAt: new Date(NOW).toISOString(),
});
const unread: Seen<never> = {
  problem: { message: 'no', wanted: 'list tunnels.tributary.dev', isForbidden: true, isKindUnknown: false },
};

const unknown: Seen<never> = {
  problem: { message: 'no', wanted: 'list tributary.dev', isForbidden: false, isKindUnknown: true },
};

interface Case {
  name: string;
  given: Facts;
  check: string;
  level: Level;
  says: RegExp;
  /** In the remedy or its command. */
  todo?: RegExp;
}

const CASES: readonly Case[] = [
  {
    name: 'no API server',
    given: facts({}, { apiServer: { url: 'https://here', error: 'connect ECONNREFUSED' } }),
    check: 'access',
    level: 'problem',
    says: /ECONNREFUSED/u,
    todo: /kubectl get --raw/u,
  },
  {
    name: 'a cluster without Tributary',
    given: facts({}, { lists: { ...facts({}).lists, foreignClusters: unknown, virtualNodes: unknown } }),
    check: 'access',
    level: 'problem',
    says: /not installed/u,
    todo: /tributary install/u,
  },
  {
    name: 'one that is only seen, without a policy',
    given: facts({ foreignClusters: [cluster({ incoming: LENT_TO_NOBODY.incoming })] }),
    check: 'policies',
    level: 'warning',
    says: /NoPolicyMatches/u,
    todo: /SharingPolicy/u,
  },
  {
    name: 'no right to read',
    given: { ...facts({}), lists: { ...facts({}).lists, tunnels: unread } },
    check: 'access',
    level: 'unknown',
    says: /no/u,
    todo: /right to list tunnels/u,
  },
  {
    name: 'an old Kubernetes',
    given: facts({}, { apiServer: { url: 'x', version: 'v1.27.3' } }),
    check: 'versions',
    level: 'problem',
    says: /v1\.27\.3/u,
    todo: /1\.30/u,
  },
  {
    name: 'an old peer',
    given: facts({ foreignClusters: [cluster({ link: { connected: true, software: '0.1.9' } })] }),
    check: 'versions',
    level: 'warning',
    says: /0\.1\.9/u,
    todo: /upgrade milan/u,
  },
  {
    name: 'no common protocol',
    given: facts({
      foreignClusters: [cluster({ conditions: [condition('Connected', 'False', 'IncompatibleProtocol')] })],
    }),
    check: 'versions',
    level: 'problem',
    says: /so/u,
    todo: /upgrade the older side/u,
  },
  {
    name: 'a clock that is ahead',
    given: facts({ leases: [lease('tributary-cluster', 600_000)] }),
    check: 'clocks',
    level: 'problem',
    says: /600 s ahead/u,
    todo: /set the clock/u,
  },
  {
    name: 'the clock here',
    given: facts({}, { apiServer: { url: 'x', version: 'v1.33.1', dateMs: NOW, hereMs: NOW - 600_000 } }),
    check: 'clocks',
    level: 'problem',
    says: /600 s behind/u,
    todo: /machine that this command runs on/u,
  },
  {
    name: 'a dead gateway',
    given: facts({
      leases: [lease('tributary-gateway', -60_000)],
      deployments: [{ metadata: { namespace: 'tributary-network', name: 'tributary-gateway' } }],
      nodes: [{ metadata: { name: 'n1' }, status: { conditions: [condition('Ready', 'Unknown', 'x')] } }],
    }),
    check: 'agents',
    level: 'problem',
    says: /60 s by node n1; node n1 is not Ready/u,
    todo: /scale deployment tributary-gateway --replicas=2/u,
  },
  {
    name: 'a role that does not run',
    given: facts({
      deployments: [
        {
          metadata: {
            namespace: 'tributary-system',
            name: 'tributary-cluster',
            labels: { 'app.kubernetes.io/name': 'tributary' },
          },
          spec: { replicas: 0 },
        },
      ],
    }),
    check: 'agents',
    level: 'problem',
    says: /0 of 0 ready/u,
    todo: /--replicas=1/u,
  },
  {
    name: 'a webhook that is away',
    given: facts(
      {},
      { webhookTrial: { namespace: 'shop', error: 'Internal error: failed calling webhook "a.b": refused' } },
    ),
    check: 'webhook',
    level: 'problem',
    says: /refused/u,
    todo: /rollout restart/u,
  },
  {
    name: 'another cluster at the endpoint',
    given: facts(
      { foreignClusters: [cluster({ link: { connected: true } }, { endpoint: 'h:1' })] },
      { dialled: new Map([['m', { endpoint: 'h:1', clusterID: 'other' }]]) },
    ),
    check: 'reachability',
    level: 'problem',
    says: /another cluster: other/u,
    todo: /kubectl patch foreigncluster m .*HOST:PORT/u,
  },
  {
    name: 'an endpoint that does not answer from here proves nothing',
    given: facts(
      { foreignClusters: [cluster({ link: { connected: true } }, { endpoint: 'h:1' })] },
      { dialled: new Map([['m', { endpoint: 'h:1', error: 'timed out' }]]) },
    ),
    check: 'reachability',
    level: 'unknown',
    says: /timed out/u,
  },
  {
    name: 'no policy for a guest',
    given: facts({
      foreignClusters: [
        cluster({ incoming: { phase: 'Denied', reason: 'NoPolicyMatches', message: 'none' } }),
      ],
    }),
    check: 'policies',
    level: 'problem',
    says: /none/u,
    todo: /SharingPolicy.*kubectl apply/u,
  },
  {
    name: 'a peering one way, on purpose',
    given: facts({ foreignClusters: [cluster(LENT_TO_NOBODY)] }),
    check: 'policies',
    level: 'ok',
    says: /NoPolicyMatches.*no SharingPolicy/u,
  },
  {
    name: 'a peering one way, although a person lets it in',
    given: facts({ foreignClusters: [cluster(LENT_TO_NOBODY, { incoming: 'Enabled' })] }),
    check: 'policies',
    level: 'problem',
    says: /NoPolicyMatches.*no SharingPolicy/u,
    todo: /SharingPolicy.*kubectl apply/u,
  },
  {
    name: 'UDP both ways',
    given: facts({ tunnels: [tunnelWith(condition('Connected', 'False', 'NoHandshake'))] }),
    check: 'tunnels',
    level: 'problem',
    says: /NoHandshake/u,
    todo: /let UDP through from our gateway to 10\.0\.0\.2:51820, and back/u,
  },
  {
    name: 'UDP one way',
    given: facts({ tunnels: [tunnelWith(condition('Connected', 'False', 'PacketsOneWay'))] }),
    check: 'tunnels',
    level: 'problem',
    says: /PacketsOneWay/u,
    todo: /ours do not/u,
  },
  {
    name: 'a narrow path',
    given: facts({ tunnels: [tunnel({ connection: { mtu: 1328, linkMtu: 1420 } })] }),
    check: 'mtu',
    level: 'warning',
    says: /1328/u,
    todo: /--tunnel-mtu 1328/u,
  },
  {
    name: 'an office network',
    given: facts({
      tunnels: [tunnel({ views: [{ prefix: '10.1.0.0/16', as: '100.64.0.0/16', use: 'Pods' }] })],
      configMaps: [
        {
          metadata: { name: 'tributary-gateway' },
          data: {
            'network.json': JSON.stringify({ publicKey: '', endpoints: [], localRoutes: ['100.64.5.0/24'] }),
          },
        },
      ],
    }),
    check: 'addresses',
    level: 'problem',
    says: /100\.64\.0\.0\/16 overlaps 100\.64\.5\.0\/24/u,
    todo: new RegExp(`--reserved-cidrs 100\\.64\\.5\\.0/24.*kubectl delete tunnel ${ID}`, 'su'),
  },
  {
    name: 'a cluster that was restored from a backup',
    given: facts({
      virtualNodes: [
        {
          metadata: { name: 'v' },
          spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } },
          status: {
            conditions: [condition('Restored', 'True', 'HomeRestored', '2 pods over there have no pod here')],
          },
        },
      ],
    }),
    check: 'restores',
    level: 'warning',
    says: /2 pods over there have no pod here/u,
    todo: /apply your manifests/u,
  },
  {
    name: 'a quota that is used up',
    given: facts({
      namespaces: [{ metadata: { name: 't', labels: { 'tributary.dev/peer': ID } } }],
      quotas: [
        {
          metadata: { namespace: 't', name: 'q' },
          status: { hard: { cpu: '2', pods: '0' }, used: { cpu: '2000m', pods: '0' } },
        },
      ],
      sharingPolicies: [{ metadata: { name: 'all' }, status: { peers: [ID] } }],
    }),
    check: 'quotas',
    level: 'problem',
    says: /used up: cpu 2000m of 2$/u,
    todo: /patch sharingpolicy all/u,
  },
  {
    name: 'the DNS of tenants',
    given: facts({
      dnsSlices: [
        { metadata: { name: 's' }, endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: false } }] },
      ],
    }),
    check: 'dns',
    level: 'problem',
    says: /none is ready/u,
    todo: /rollout restart deployment coredns/u,
  },
  {
    name: 'a pod that waits',
    given: facts({
      virtualNodes: [
        { metadata: { name: 'v' }, spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } } },
      ],
      pods: [
        {
          metadata: { namespace: 'shop', name: 'web' },
          spec: { nodeName: 'v' },
          status: {
            conditions: [condition('tributary.dev/Offloaded', 'False', 'ExceededQuota', 'exceeded')],
          },
        },
      ],
    }),
    check: 'pods',
    level: 'problem',
    says: /ExceededQuota: exceeded/u,
    todo: /ask the provider/u,
  },
];

describe('examine', () => {
  test.each(CASES)('$name', ({ given, check, level, says, todo }) => {
    const findings = examine(given).filter((finding) => finding.check === check && finding.level === level);
    const found = findings.find(({ cameBack }) => says.test(cameBack));
    expect({ found, all: examine(given) }).toMatchObject({ found: { check, level } });
    if (todo !== undefined) expect(`${found?.remedy ?? ''} ${found?.run ?? ''}`).toMatch(todo);
  });

  test('nothing is wrong with nothing', () => {
    const findings = examine(facts({}));
    expect(findings.filter(({ level }) => level === 'problem' || level === 'warning')).toEqual([]);
    expect(exitCodeOf(findings)).toBe(0);
  });

  test('of one peer: what is about it and about this cluster', () => {
    const other = {
      ...cluster({}),
      metadata: { name: 'o' },
      spec: { clusterID: 'o' },
      status: { clusterName: 'oslo' },
    };
    const given = facts({ foreignClusters: [cluster({}), other] });
    const subjects = new Set(examine(given, 'milan').map(({ subject }) => subject));
    expect([...subjects].toSorted()).toEqual(['milan', 'this cluster']);
  });

  test('only a problem makes the command fail', () => {
    const finding = (level: Level): Finding => ({
      check: 'a',
      subject: 'b',
      level,
      tried: 'c',
      cameBack: 'd',
    });
    expect(exitCodeOf([finding('ok'), finding('warning'), finding('unknown')])).toBe(0);
    expect(exitCodeOf([finding('ok'), finding('problem')])).toBe(1);
  });
});

describe('lackingRules', () => {
  const rule = (verbs: string[], more: object = {}): PolicyRule => ({
    apiGroups: [''],
    resources: ['pods'],
    verbs,
    ...more,
  });
  test.each([
    ['all is there', [rule(['get'])], [rule(['get', 'list'])], []],
    ['a verb is missing', [rule(['get', 'list'])], [rule(['get'])], [rule(['list'])]],
    ['only for a name', [rule(['get'])], [rule(['get'], { resourceNames: ['a'] })], [rule(['get'])]],
    ['for another group', [rule(['get'])], [rule(['get'], { apiGroups: ['apps'] })], [rule(['get'])]],
    ['everything', [rule(['get'])], [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }], []],
  ])('%s', (_, wanted, granted, lacking) => {
    expect(lackingRules(wanted, granted)).toEqual(lacking);
  });
});
