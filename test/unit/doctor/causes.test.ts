import { describe, expect, test } from '@jest/globals';

import { FOREIGN_CLUSTER_REASONS } from '../../../src/api/foreign-cluster.ts';
import { OFFLOADED_REASONS } from '../../../src/api/names.ts';
import { examine } from '../../../src/doctor/examine.ts';
import type { Facts } from '../../../src/doctor/facts.ts';
import type { Finding } from '../../../src/doctor/finding.ts';
import { condition, facts, ID, NOW } from './support/facts.ts';

/** Causes that are known are told as such, with what to do. */

const about = (given: Facts, tried: string): Finding | undefined =>
  examine(given).find((one) => one.tried.startsWith(tried));

describe('role node', () => {
  const real = (name: string, ready = 'True'): object => ({
    metadata: { name },
    status: { conditions: [condition('Ready', ready, 'x')] },
  });
  const virtual = { metadata: { name: 'v', labels: { 'tributary.dev/node-type': 'virtual-node' } } };
  const role = (status: object | undefined, nodes: readonly object[]): Finding | undefined => {
    const metadata = {
      namespace: 'tributary-network',
      name: 'tributary-node',
      labels: { 'app.kubernetes.io/name': 'tributary' },
    };
    return about(facts({ daemonSets: [{ metadata, status }], nodes }), 'DaemonSet tributary-network');
  };
  const status = (numberReady: number, desiredNumberScheduled: number): object => ({
    numberReady,
    desiredNumberScheduled,
  });

  test.each([
    ['runs everywhere', status(2, 2), [real('a'), real('b'), virtual], ['ok', undefined]],
    ['runs nowhere', status(0, 2), [real('a'), real('b')], ['problem', /its pods say why/u]],
    ['is on one of two', status(1, 2), [real('a'), real('b')], ['problem', /its pods say why/u]],
    ['is not on a node that is away', status(1, 2), [real('a'), real('b', 'Unknown')], ['warning', /pods/u]],
    ['chooses no node', status(0, 0), [real('a')], ['problem', /chooses no node/u]],
    ['was not looked at by anybody', undefined, [real('a')], ['problem', /chooses no node/u]],
    ['is in a cluster without nodes', status(0, 0), [virtual], ['ok', undefined]],
  ] as const)('that %s', (_what, given, nodes, [level, remedy]) => {
    const found = role(given, nodes);
    expect(found?.level).toBe(level);
    expect(found?.remedy ?? '').toMatch(remedy ?? /^$/u);
    const run = 'kubectl -n tributary-network describe daemonset,pods -l app.kubernetes.io/name=tributary';
    expect(found?.run).toBe(remedy === undefined ? undefined : run);
  });

  test('what came back says how many nodes there are', () => {
    expect(role(status(0, 2), [real('a'), real('b'), virtual])?.cameBack).toBe(
      '0 of 2 ready, in a cluster with 2 node(s)',
    );
  });
});

describe('a credential', () => {
  const end = new Date(NOW + 3_600_000).toISOString();
  const secret = {
    metadata: { namespace: 'a', name: 'b', annotations: { 'tributary.dev/credential-expires': end } },
  };
  const peering = {
    metadata: { name: 'm' },
    spec: { clusterID: ID },
    status: { clusterID: ID, outgoing: { phase: 'Established' } },
  };
  const credential = (
    is: object | undefined,
    { secrets = [], clusters = [] }: { secrets?: object[]; clusters?: object[] } = {},
  ): Finding | undefined => {
    const node = {
      metadata: { name: 'v', labels: { 'tributary.dev/provider': ID } },
      spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } },
      status: { conditions: is === undefined ? [] : [is] },
    };
    return about(facts({ virtualNodes: [node], secrets, foreignClusters: clusters }), 'credential of');
  };
  const bad = (reason: string): object => condition('CredentialsValid', 'False', reason);

  test.each([
    ['KubeconfigSecretNotFound', undefined, /put what it prints into FILE/u],
    ['KubeconfigInvalid', undefined, /put what it prints into FILE/u],
    ['CredentialsRejected', secret, /ask the provider for a new one/u],
    ['NotAuthorized', secret, /its rights again: over there, tributary doctor/u],
  ])('that is bad is a problem: %s', (reason, held, remedy) => {
    expect(credential(bad(reason), { secrets: held === undefined ? [] : [held] })).toMatchObject({
      level: 'problem',
      cameBack: `${reason}: so`,
      remedy: expect.stringMatching(remedy),
    });
  });

  test('that is missing comes again from the provider, where the peering has made the node', () => {
    expect(credential(bad('KubeconfigSecretNotFound'), { clusters: [peering] })).toMatchObject({
      level: 'problem',
      run: `tributary renew ${ID}`,
    });
  });

  test('that nobody could try is neither good nor bad', () => {
    const untried = condition('CredentialsValid', 'Unknown', 'ForeignClusterUnreachable');
    expect(credential(untried)?.level).toBe('unknown');
    expect(credential(untried, { secrets: [secret] })?.level).toBe('ok');
    expect(credential(undefined)?.level).toBe('ok');
  });
});

describe('a pod over there that does not run', () => {
  const PASSING: ReadonlySet<string> = new Set([
    'NamespaceBeingMade',
    'NetworkPolicyNotInForce',
    'RemotePodLost',
    'WriteBudgetSpent',
  ]);
  const pod = (reason: string): Finding | undefined =>
    about(
      facts({
        virtualNodes: [
          { metadata: { name: 'v' }, spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } } },
        ],
        pods: [
          {
            metadata: { namespace: 'shop', name: 'web' },
            spec: { nodeName: 'v' },
            status: { conditions: [condition('tributary.dev/Offloaded', 'False', reason)] },
          },
        ],
      }),
      'pod shop/web',
    );

  test.each(Object.values(OFFLOADED_REASONS))('%s has a remedy', (reason) => {
    const found = pod(reason);
    expect(found?.level).toBe(PASSING.has(reason) ? 'warning' : 'problem');
    expect(found?.remedy).toMatch(/^[^A-Z.][^]*[^.]$/u);
  });

  test.each(['FromAnotherVersion', 'constructor'])('%s is not known', (reason) => {
    expect(pod(reason)).toMatchObject({ level: 'unknown', cameBack: `${reason}: so` });
  });
});

describe('a peering', () => {
  const incoming = (phase: string, reason: string): Finding | undefined =>
    about(
      facts({
        foreignClusters: [
          {
            metadata: { name: 'm' },
            spec: { clusterID: ID, incoming: 'Enabled' },
            status: { clusterID: ID, clusterName: 'milan', incoming: { phase, reason, message: 'so' } },
          },
        ],
      }),
      'let milan',
    );
  const FINE: ReadonlySet<string> = new Set(['AsExpected', 'NotWanted', 'SettingUp']);

  test.each(Object.values(FOREIGN_CLUSTER_REASONS))('that does not come about has a remedy: %s', (reason) => {
    const found = incoming('Pending', reason);
    if (FINE.has(reason)) expect(found).toMatchObject({ level: 'ok' });
    else expect(found?.remedy).toMatch(/^[^A-Z.][^]*[^.]$/u);
  });

  test.each(['Suspended', 'Fenced', 'Revoked', 'TetheringForbidden', 'TetheredElsewhere'])(
    'that is %s is a problem',
    (reason) => {
      expect(incoming('Accepted', reason)?.level).toBe('problem');
    },
  );

  test.each(['Established', 'Accepted'])('that ends soon is a warning while it is %s', (phase) => {
    expect(incoming(phase, 'EndsSoon')).toMatchObject({
      level: 'warning',
      cameBack: `${phase} (EndsSoon): so`,
      run: expect.stringMatching(/^echo .*SharingPolicy.* \| kubectl apply -f -$/u),
    });
  });

  test('with a reason of another version', () => {
    expect(incoming('Pending', 'constructor')?.level).toBe('unknown');
    expect(incoming('Established', 'FromAnotherVersion')?.level).toBe('ok');
  });
});

describe('where tributary install has made the installation, remedies name it', () => {
  const installation = { roles: [] };
  const tunnel = (status: object): object => ({ metadata: { name: ID }, spec: { clusterID: ID }, status });
  const connection = { mtu: 1328, linkMtu: 1420 };
  const todo = (given: Facts, tried: string): string => {
    const found = about(given, tried);
    return `${found?.remedy} | ${found?.run}`;
  };

  test.each([
    [
      { conditions: [condition('Connected', 'False', 'NoEndpoint')] },
      'packets through',
      'tributary upgrade --tunnel-endpoints HOST:PORT',
      '`tributary manifests gateway --tunnel-endpoint HOST:PORT`',
    ],
    [
      { connection },
      'largest packet',
      'tributary upgrade --tunnel-mtu 1328',
      'apply gateway and node again with --tunnel-mtu 1328',
    ],
    [
      { conditions: [condition('AddressesAssigned', 'False', 'PoolExhausted')] },
      'addresses as which',
      'tributary upgrade --view-pools',
      'give the role cluster a larger --view-pools',
    ],
  ])('%j', (status, tried, recorded, otherwise) => {
    const rows = { tunnels: [tunnel(status)] };
    expect(todo(facts(rows, { installation }), tried)).toContain(recorded);
    expect(todo(facts(rows, { installation }), tried)).not.toMatch(/manifests|apply/u);
    expect(todo(facts(rows), tried)).toContain(otherwise);
  });

  test('of rights and kinds that are missing', () => {
    const expectedRights = [{ kind: 'ClusterRole', name: 'r', rules: [] }] as const;
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    const rights = { expectedRights: expectedRights.map((one) => ({ ...one, rules })) };
    expect(about(facts({}, { ...rights, installation }), 'compare ClusterRole r')?.run).toBe(
      'tributary upgrade',
    );
    expect(about(facts({}, rights), 'compare ClusterRole r')?.remedy).toContain('tributary manifests');
    const wanted = 'list tunnels.tributary.dev';
    const problem = { message: 'no', wanted, isForbidden: false, isKindUnknown: true };
    const lists = { ...facts({}).lists, tunnels: { problem } };
    expect(about(facts({}, { lists, installation }), wanted)?.run).toBe('tributary upgrade');
    expect(about(facts({}, { lists }), wanted)?.run).toContain('tributary manifests crds');
  });
});
