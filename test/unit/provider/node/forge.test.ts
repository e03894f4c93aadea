import { describe, expect, test } from '@jest/globals';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import type { Node } from '../../../../src/api/wire.ts';
import type { NodeInputs } from '../../../../src/provider/node/forge.ts';
import { forgeNode, forgeNodeStatus } from '../../../../src/provider/node/forge.ts';
import { forgeVirtualNodeStatus } from '../../../../src/provider/node/status.ts';
import { NOW } from '../support/pods.ts';

const virtualNode = (spec: Partial<VirtualNode['spec']> = {}): VirtualNode => ({
  metadata: { name: 'rome', uid: 'u', resourceVersion: '1', generation: 2, creationTimestamp: NOW },
  spec: {
    kubeconfigSecretRef: { namespace: 'n', name: 's' },
    resources: { cpu: 4 as unknown as string, memory: '8Gi' },
    ...spec,
  },
});
const OK = { ok: true, reason: 'AsExpected', message: 'answers', away: false, version: 'v1.36.3' } as const;
const inputs = (given: Partial<NodeInputs> = {}): NodeInputs => ({
  virtualNode: virtualNode(),
  contact: OK,
  notReady: undefined,
  network: { kind: 'Off' },
  room: new Map(),
  homeApiServer: { kind: 'None', reason: 'NoNetwork', message: 'no tunnel' },
  homeDns: { kind: 'NotChosen' },
  address: '192.0.2.1',
  kubeletPort: 10_250,
  version: '1.0',
  now: NOW,
  ...given,
});
const stored = (node: Node): Node => ({
  ...node,
  metadata: { ...node.metadata, uid: 'n', resourceVersion: '1', creationTimestamp: NOW },
});
const current = stored(forgeNode(undefined, virtualNode()));
const ready = (given: Partial<NodeInputs>): object | undefined =>
  forgeNodeStatus(current, inputs(given)).conditions?.find(({ type }) => type === 'Ready');

test.each([
  [
    'pods that are there run on',
    { 'tributary.dev/closed-because': 'too dear' },
    'no new pods are sent there: too dear; those that are there run on',
  ],
  [
    'or end with the peering',
    { 'tributary.dev/closed-because': 'the peering ends', 'tributary.dev/ending-since': NOW },
    'no new pods are sent there: the peering ends; those that are there end',
  ],
])('a closed node stays Ready and says why it takes no new pods: %s', (_what, annotations, message) => {
  const open = virtualNode({ taints: [{ key: 'tributary.dev/closed', effect: 'NoSchedule' }] });
  const closed = { ...open, metadata: { ...open.metadata, annotations } };
  expect(ready({ virtualNode: closed })).toMatchObject({
    status: 'True',
    reason: 'ForeignClusterClosed',
    message,
  });
  const { conditions } = forgeVirtualNodeStatus({
    ...inputs({ virtualNode: closed }),
    namespaces: [],
    stricterPolicies: [],
  });
  expect(conditions?.[0]).toMatchObject({ type: 'Ready', status: 'True', reason: 'Closed', message });
});

describe('the Node', () => {
  test('set twice is set once', () => {
    expect(forgeNode(current, virtualNode())).toEqual(current);
  });

  test('what is ours follows the VirtualNode, what others put there stays', () => {
    const first = stored(
      forgeNode(
        undefined,
        virtualNode({ labels: { zone: 'a' }, taints: [{ key: 'mine', effect: 'NoSchedule' }] }),
      ),
    );
    const touched = {
      ...first,
      metadata: { ...first.metadata, labels: { ...first.metadata.labels, theirs: '1' } },
      spec: {
        ...first.spec,
        unschedulable: true,
        taints: [
          ...(first.spec?.taints ?? []),
          { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
        ],
      },
    };
    const next = forgeNode(touched, virtualNode());
    expect(next.metadata.labels).toMatchObject({ theirs: '1', 'kubernetes.io/hostname': 'rome' });
    expect(next.metadata.labels).not.toHaveProperty('zone');
    expect(next.spec).toEqual({
      unschedulable: true,
      taints: [
        { key: 'tributary.dev/virtual-node', value: 'rome', effect: 'NoSchedule' },
        { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
      ],
    });
  });

  test.each([
    [
      'PreferNoSchedule',
      { taints: [{ key: 'tributary.dev/virtual-node', value: 'rome', effect: 'PreferNoSchedule' }] },
    ],
    // An API server stores no empty list.
    ['None', {}],
  ] as const)('the effect of its taint is a choice: %s takes the place of another', (taintEffect, spec) => {
    expect(forgeNode(current, virtualNode({ taintEffect })).spec).toStrictEqual(spec);
    const chosen = stored(forgeNode(current, virtualNode({ taintEffect })));
    expect(forgeNode(chosen, virtualNode()).spec).toEqual(current.spec);
  });

  test('a label of the user cannot take ours away', () => {
    const labels = {
      'kubernetes.io/hostname': 'x',
      'tributary.dev/node-type': 'x',
      'kubernetes.io/arch': 'arm64',
    };
    const node = forgeNode(undefined, virtualNode({ labels }));
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/hostname': 'rome',
      'tributary.dev/node-type': 'virtual-node',
      'kubernetes.io/arch': 'arm64',
    });
    expect(forgeNodeStatus(stored(node), inputs()).nodeInfo?.architecture).toBe('arm64');
  });

  test('kubectl shows its role, what single nodes behind it have and what is asked; autoscalers leave it alone', () => {
    const node = forgeNode(
      undefined,
      virtualNode({
        nodeSizes: [
          { cpu: 16 as unknown as string, memory: '32Gi' },
          { cpu: '4', memory: '64Gi' },
        ],
        prices: { cpu: { amount: '0.04', currency: 'EUR' }, memory: { amount: '0.005', currency: 'EUR' } },
      }),
    );
    expect(node.metadata.labels).toMatchObject({ 'node-role.kubernetes.io/virtual': '' });
    expect(node.metadata.annotations).toMatchObject({
      'tributary.dev/node-sizes': 'cpu 16, memory 32Gi; cpu 4, memory 64Gi',
      'tributary.dev/prices': 'cpu 0.04 EUR per core and hour, memory 0.005 EUR per GiB and hour',
      'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true',
    });
    const later = forgeNode(stored(node), virtualNode()).metadata.annotations;
    expect(Object.keys(later ?? {}).toSorted()).toEqual([
      'cluster-autoscaler.kubernetes.io/scale-down-disabled',
      'tributary.dev/owned',
    ]);
    const annotations = { 'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'false' };
    expect(forgeNode(undefined, virtualNode({ annotations })).metadata.annotations).toMatchObject(
      annotations,
    );
  });

  test('its system is the foreign Kubernetes, as far as that has said anything', () => {
    const infoOf = (version: string | undefined): object | undefined =>
      forgeNodeStatus(current, inputs({ contact: { ...OK, version } })).nodeInfo;
    expect(infoOf('v1.36.3')).toMatchObject({
      osImage: 'Kubernetes v1.36.3',
      kernelVersion: 'foreign',
      operatingSystem: 'linux',
      kubeletVersion: 'v1.36.3',
    });
    expect(infoOf(undefined)).toMatchObject({ osImage: 'Kubernetes', kubeletVersion: 'unknown' });
  });

  test('an agent that starts while the foreign cluster is away shows the version of before', () => {
    const known = { ...virtualNode(), status: { foreignVersion: 'v1.36.3' } };
    const given = inputs({ virtualNode: known, contact: { ...OK, ok: false, version: undefined } });
    expect(forgeNodeStatus(current, given).nodeInfo).toMatchObject({ kubeletVersion: 'v1.36.3' });
  });

  test('what was noted as ours may be damaged', () => {
    const damaged = {
      ...current,
      metadata: { ...current.metadata, annotations: { 'tributary.dev/owned': '{' } },
    };
    expect(forgeNode(damaged, virtualNode()).metadata.labels).toMatchObject({
      'tributary.dev/virtual-node': 'rome',
    });
  });
});

describe('its status', () => {
  test('the room that a refusal has taken is not allocatable, and no more is than was agreed on', () => {
    const room = new Map([
      ['cpu', 2500n],
      ['memory', 1n << 60n],
      ['a.com/gpu', 1000n],
    ]);
    expect(forgeNodeStatus(current, inputs({ room }))).toMatchObject({
      capacity: { cpu: '4', memory: '8Gi' },
      allocatable: { cpu: '2500m', memory: '8Gi' },
    });
  });

  test.each([
    ['all is well', {}, { status: 'True', reason: 'ForeignClusterReady' }],
    [
      'out of contact',
      { contact: { ...OK, ok: false, reason: 'ForeignClusterUnreachable', message: 'refused' } },
      { status: 'False', reason: 'ForeignClusterUnreachable', message: 'refused' },
    ],
    [
      'not yet',
      { notReady: { reason: 'CachesNotSynced', message: 'm' } },
      { status: 'False', reason: 'CachesNotSynced' },
    ],
  ] as [string, Partial<NodeInputs>, object][])('%s', (_what, given, expected) => {
    expect(ready(given)).toMatchObject(expected);
  });

  test('the same a second time, later', () => {
    const status = forgeNodeStatus(current, inputs());
    expect(forgeNodeStatus({ ...current, status }, inputs({ now: '2027-01-01T00:00:00Z' }))).toEqual(status);
  });

  test('conditions of others stay, features no longer declared go', () => {
    const others = [{ type: 'NetworkUnavailable', status: 'False' }];
    const before = { ...current, status: { conditions: others, declaredFeatures: ['Old'] } } as Node;
    const status = forgeNodeStatus(before, inputs({ contact: { ...OK, version: 'v1.29.0' } }));
    expect(status.conditions).toContainEqual(others[0]);
    expect(status).not.toHaveProperty('declaredFeatures');
    expect(forgeNodeStatus(before, inputs())).toMatchObject({
      declaredFeatures: ['ExtendWebSocketsToKubelet'],
    });
  });

  test('amounts written as numbers become quantities', () => {
    expect(forgeNodeStatus(current, inputs()).capacity).toEqual({ cpu: '4', memory: '8Gi' });
  });
});

describe('the VirtualNode’s status', () => {
  const verdicts = (contact: NodeInputs['contact'], notReady?: NodeInputs['notReady']): string[] =>
    (
      forgeVirtualNodeStatus({ ...inputs({ contact }), notReady, namespaces: [], stricterPolicies: [] })
        .conditions ?? []
    )
      .filter(({ type }) => type !== 'HomeApiServerReachable')
      .map(({ type, status, reason }) => `${type} ${status} ${reason}`);
  const failed = (reason: NodeInputs['contact']['reason']): NodeInputs['contact'] => ({
    ...OK,
    ok: false,
    reason,
  });

  test.each<[NodeInputs['contact']['reason'], string, string]>([
    ['Starting', 'Unknown', 'Unknown'],
    ['KubeconfigSecretNotFound', 'False', 'Unknown'],
    ['KubeconfigInvalid', 'False', 'Unknown'],
    ['CredentialsRejected', 'False', 'True'],
    ['NotAuthorized', 'False', 'True'],
    ['ForeignClusterUnreachable', 'Unknown', 'False'],
    ['ForeignClusterUnhealthy', 'Unknown', 'False'],
  ])('%s: credentials %s, reachable %s', (reason, credentials, reachable) => {
    expect(verdicts(failed(reason))).toEqual([
      `Ready False ${reason}`,
      `CredentialsValid ${credentials} ${reason}`,
      `ForeignClusterReachable ${reachable} ${reachable === 'True' ? 'AsExpected' : reason}`,
    ]);
  });

  test.each<[NodeInputs['homeApiServer'], string, string, string]>([
    [{ kind: 'At', host: 'api.rome', port: 6443 }, 'True', 'AsExpected', 'at api.rome:6443'],
    [
      { kind: 'At', host: 'kubernetes.default.svc', port: 443, alias: '100.65.0.9' },
      'True',
      'AsExpected',
      'at kubernetes.default.svc:443, which is 100.65.0.9 over there',
    ],
    [
      { kind: 'Unknown', reason: 'PeerHasNoViewOfUs', message: 'soon' },
      'Unknown',
      'PeerHasNoViewOfUs',
      'soon',
    ],
    [
      { kind: 'None', reason: 'ForbiddenByProvider', message: 'by them' },
      'False',
      'ForbiddenByProvider',
      'no token for it: by them',
    ],
  ])('whether pods reach home, %j', (homeApiServer, status, reason, words) => {
    const { conditions } = forgeVirtualNodeStatus({
      ...inputs({ homeApiServer }),
      namespaces: [],
      stricterPolicies: [],
    });
    const found = conditions?.find(({ type }) => type === 'HomeApiServerReachable');
    expect(found).toMatchObject({ status, reason, message: expect.stringContaining(words) });
  });

  test.each<[NodeInputs['homeDns'], string, string]>([
    [
      { kind: 'At', nameservers: ['10.96.0.10'], domain: 'cluster.local' },
      'True',
      'ask 10.96.0.10, with the domain cluster.local',
    ],
    [{ kind: 'Unknown', reason: 'PrefixRefused', message: 'soon' }, 'Unknown', 'new pods wait: soon'],
    [{ kind: 'None', reason: 'SeenElsewhere', message: 'why' }, 'False', 'the DNS of their cluster: why'],
  ])('which DNS pods ask, %j', (homeDns, status, words) => {
    const { conditions } = forgeVirtualNodeStatus({
      ...inputs({ homeDns }),
      namespaces: [],
      stricterPolicies: [],
    });
    const found = conditions?.find(({ type }) => type === 'HomeDNSReachable');
    expect(found).toMatchObject({ status, message: expect.stringContaining(words) });
    const node = { ...virtualNode(), status: { conditions: conditions ?? [] } };
    const after = forgeVirtualNodeStatus({
      ...inputs({ virtualNode: node }),
      namespaces: [],
      stricterPolicies: [],
    });
    expect(after.conditions?.map(({ type }) => type)).not.toContain('HomeDNSReachable');
  });

  test('conditions of others stay, and times move with the status only', () => {
    const conditions = [
      { type: 'Ready', status: 'True', reason: 'x', message: '', lastTransitionTime: '2025-01-01T00:00:00Z' },
      { type: 'Peered', status: 'True', reason: 'x', message: '', lastTransitionTime: NOW },
    ] as const;
    const node = { ...virtualNode(), status: { conditions: [...conditions] } };
    const status = forgeVirtualNodeStatus({
      ...inputs({ virtualNode: node }),
      namespaces: [],
      stricterPolicies: [],
    });
    expect(status.conditions).toContainEqual(conditions[1]);
    expect(status.conditions?.[0]?.lastTransitionTime).toBe('2025-01-01T00:00:00Z');
  });
});

describe('NetworkUnavailable', () => {
  const DOWN = { kind: 'Down', reason: 'NoAnswer', message: 'no probe came back' } as const;
  const shown = (node: Node, network: NodeInputs['network']): object[] =>
    (forgeNodeStatus(node, inputs({ network })).conditions ?? []).filter(
      ({ type }) => type === 'NetworkUnavailable',
    );
  const having = (reason: string): Node => ({
    ...current,
    status: { conditions: [{ type: 'NetworkUnavailable', status: 'True', reason }] },
  });

  test('follows the tunnel, in its words', () => {
    expect(shown(current, { kind: 'Off' })).toEqual([]);
    expect(shown(current, DOWN)).toMatchObject([
      { status: 'True', reason: 'NoAnswer', message: 'no probe came back' },
    ]);
    expect(shown(having('NoAnswer'), { kind: 'Up' })).toMatchObject([
      { status: 'False', reason: 'TunnelReady' },
    ]);
  });

  test('goes with the network; that of a cloud stays', () => {
    expect(shown(having('NoAnswer'), { kind: 'Off' })).toEqual([]);
    expect(shown(having('NoRouteCreated'), { kind: 'Off' })).toMatchObject([{ reason: 'NoRouteCreated' }]);
  });
});
