import { describe, expect, test } from '@jest/globals';
import type { NamespaceOffloading, PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import type { LabelSelector } from '../../../../src/api/label-selector.ts';
import { matchesSelector } from '../../../../src/api/label-selector.ts';
import type { Pod, PodSpec } from '../../../../src/api/wire.ts';
import { type AdmissionFacts, admit } from '../../../../src/offloading/admission/decide.ts';
import { fits, patched, toleratesNode, wantsNode, type TestNode } from './scheduler.ts';

const NOW = Date.UTC(2026, 0, 1);
const TYPE = 'tributary.dev/node-type';
const NAME = 'tributary.dev/virtual-node';
const virtual = (name: string, labels: Record<string, string> = {}): TestNode => ({
  name,
  labels: { [TYPE]: 'virtual-node', [NAME]: name, ...labels },
  taints: [{ key: NAME, value: name, effect: 'NoSchedule' }],
});
const real = (name: string, labels: Record<string, string> = {}): TestNode => ({ name, labels, taints: [] });
const NODES: readonly TestNode[] = [
  real('n1', { zone: 'a', cores: '4' }),
  real('n2', { zone: 'b', cores: '16', disk: 'ssd' }),
  virtual('milan', { zone: 'a', region: 'eu', cores: '64' }),
  virtual('rome', { zone: 'b', region: 'eu', disk: 'ssd' }),
  virtual('oslo', { region: 'no' }),
];

function offloading(
  podStrategy: PodStrategy | undefined,
  clusterSelector?: LabelSelector,
  status: NamespaceOffloading['status'] = {},
): NamespaceOffloading {
  const metadata = {
    name: 'offloading',
    namespace: 'shop',
    uid: 'o',
    resourceVersion: '1',
    creationTimestamp: '',
  };
  const spec = { ...(podStrategy && { podStrategy }), ...(clusterSelector && { clusterSelector }) };
  return { metadata, spec, status };
}

const pod = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'web', uid: 'p', resourceVersion: '', creationTimestamp: '', ...metadata },
  spec: { containers: [], ...spec },
});
const facts = (
  one: NamespaceOffloading | undefined,
  failedNodes: readonly string[] = [],
): AdmissionFacts => ({ offloading: one, failedNodes, isOpen: false, nowMs: NOW });
type Terms = NonNullable<
  NonNullable<
    NonNullable<PodSpec['affinity']>['nodeAffinity']
  >['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'];
const requiring = (nodeSelectorTerms: Terms): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

/** The nodes that the scheduler may choose, after the decision; which must be the same when it is asked again. */
function places(one: Pod, situation: AdmissionFacts): string[] {
  const after = patched(one, admit(one, situation).patch);
  expect(admit(after, situation).patch).toEqual([]);
  return NODES.filter((node) => fits(after, node)).map(({ name }) => name);
}

const EU = { matchLabels: { region: 'eu' } };
const ALL = ['n1', 'n2', 'milan', 'rome', 'oslo'];

describe('a pod may go to', () => {
  test.each<[string, PodStrategy | undefined, LabelSelector | undefined, Partial<PodSpec>, string[]]>([
    ['anywhere', undefined, undefined, {}, ALL],
    ['anywhere that is selected', 'LocalAndRemote', EU, {}, ['n1', 'n2', 'milan', 'rome']],
    ['virtual nodes', 'Remote', {}, {}, ['milan', 'rome', 'oslo']],
    ['selected virtual nodes', 'Remote', EU, {}, ['milan', 'rome']],
    [
      'those that are not excluded',
      'Remote',
      { matchExpressions: [{ key: 'region', operator: 'NotIn', values: ['eu'] }] },
      {},
      ['oslo'],
    ],
    [
      'those with a label',
      'LocalAndRemote',
      { matchExpressions: [{ key: 'disk', operator: 'Exists' }] },
      {},
      ['n1', 'n2', 'rome'],
    ],
    [
      'those without',
      'Remote',
      { matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] },
      {},
      ['oslo'],
    ],
    ['real nodes', 'Local', undefined, {}, ['n1', 'n2']],
    [
      'real nodes, whatever it tolerates',
      'Local',
      EU,
      { tolerations: [{ operator: 'Exists' }] },
      ['n1', 'n2'],
    ],
    [
      'real nodes, though it names one',
      'Local',
      EU,
      { tolerations: [{ key: NAME, value: 'milan', effect: 'NoSchedule' }] },
      ['n1', 'n2'],
    ],
    [
      'what it wants and is selected',
      'LocalAndRemote',
      EU,
      requiring([{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] }]),
      ['n2', 'rome'],
    ],
    [
      'either of its wishes',
      'LocalAndRemote',
      EU,
      requiring([
        { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['8'] }] },
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] },
      ]),
      ['n1', 'n2', 'milan'],
    ],
    ['nowhere, since an empty term matches nothing', 'Remote', EU, requiring([{}]), []],
    [
      'only where the term that is not empty says',
      'Remote',
      EU,
      requiring([{}, { matchExpressions: [{ key: 'zone', operator: 'Exists' }] }]),
      ['milan', 'rome'],
    ],
    [
      'nowhere, where its wish and the strategy exclude each other',
      'Remote',
      {},
      requiring([{ matchExpressions: [{ key: TYPE, operator: 'DoesNotExist' }] }]),
      [],
    ],
    [
      'where it tolerates one virtual node already',
      'LocalAndRemote',
      EU,
      { tolerations: [{ key: NAME, value: 'oslo', effect: 'NoSchedule' }] },
      ['n1', 'n2', 'milan', 'rome'],
    ],
  ])('%s', (...[, strategy, selector, spec, expected]) => {
    expect(places(pod(spec), facts(offloading(strategy, selector)))).toEqual(expected);
  });

  test('no virtual node that has failed, or holds its owner off, until that is over', () => {
    const until = (ms: number): string => new Date(NOW + ms).toISOString();
    const heldOff = [
      { owner: 'ReplicaSet/web-1', virtualNode: 'milan', until: until(1000) },
      { owner: 'ReplicaSet/web-1', virtualNode: 'oslo', until: until(0) },
      { owner: 'ReplicaSet/api-1', virtualNode: 'rome', until: until(1000) },
      { owner: 'Pod/web', virtualNode: 'oslo', until: until(1000) },
      { owner: 'ReplicaSet/web-1', virtualNode: 'rome', until: 'whenever' },
    ];
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r', controller: true };
    const owned = pod({}, { ownerReferences: [owner] });
    const all = offloading('LocalAndRemote', undefined, { heldOff });
    expect(places(owned, facts(all))).toEqual(['n1', 'n2', 'rome', 'oslo']);
    expect(places(owned, facts(all, ['rome']))).toEqual(['n1', 'n2', 'oslo']);
    expect(places(pod(), facts(all))).toEqual(['n1', 'n2', 'milan', 'rome']);
    const eu = offloading('LocalAndRemote', EU, { heldOff });
    expect(places(owned, facts(eu))).toEqual(['n1', 'n2', 'rome']);
    expect(places(owned, facts(eu, ['rome', 'milan']))).toEqual(['n1', 'n2']);
  });

  test('the virtual node of its data, which is away for a while: an affinity would be for good', () => {
    const clusters = (
      [
        ['milan', 'VirtualNodeNotReady'],
        ['rome', 'NameTaken'],
      ] as const
    ).map(([name, reason]) => ({
      cluster: name,
      virtualNodes: [name],
      phase: 'Failed' as const,
      reason,
    }));
    const failed = facts(offloading('LocalAndRemote', undefined, { clusters }), ['milan', 'rome']);
    const mounting = (volume: object): Pod => pod({ volumes: [{ name: 'data', ...volume }] });
    const claimed = mounting({ persistentVolumeClaim: { claimName: 'data-db-0' } });
    expect(places(claimed, failed)).toEqual(['n1', 'n2', 'milan', 'oslo']);
    // Made anew with the pod, wherever that is.
    expect(places(mounting({ ephemeral: {} }), failed)).toEqual(['n1', 'n2', 'oslo']);
    expect(places(pod(), failed)).toEqual(['n1', 'n2', 'oslo']);
  });

  test('one that may run on virtual nodes only is not kept off all of them for good', () => {
    const cluster = (name: string): object => ({
      cluster: name,
      virtualNodes: [name],
      phase: 'Ready',
      reason: '',
    });
    const clusters = [cluster('milan'), cluster('rome')] as NonNullable<
      NamespaceOffloading['status']
    >['clusters'];
    const remote = offloading('Remote', EU, { ...(clusters && { clusters }) });
    expect(places(pod(), facts(remote, ['rome']))).toEqual(['milan']);
    expect(places(pod(), facts(remote, ['rome', 'milan']))).toEqual(['milan', 'rome']);
    expect(admit(pod(), facts(remote, ['rome', 'milan'])).warnings).toEqual([
      expect.stringContaining('no virtual node of this namespace can take the pod now'),
    ]);
  });
});

describe('left alone', () => {
  const everywhere: Partial<PodSpec> = { tolerations: [{ operator: 'Exists' }] };
  const daemonSet = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'log', uid: 'd' };
  test.each<[string, Pod, NamespaceOffloading | undefined]>([
    ['not offloaded', pod(everywhere), undefined],
    ['bound', pod({ ...everywhere, nodeName: 'n1' }), offloading('Remote')],
    [
      'of a DaemonSet',
      pod(everywhere, { ownerReferences: [{ ...daemonSet, controller: true }] }),
      offloading('Local'),
    ],
    [
      'a mirror',
      pod(everywhere, { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      offloading('Remote'),
    ],
    [
      'static',
      pod(everywhere, { annotations: { 'kubernetes.io/config.source': 'file' } }),
      offloading('Remote'),
    ],
    [
      'kept home by its label',
      pod({}, { labels: { 'tributary.dev/offload': 'false' } }),
      offloading('Remote'),
    ],
    ['local without a toleration', pod(), offloading('Local')],
    [
      'local with tolerations of other things',
      pod({
        tolerations: [
          { operator: 'Exists', effect: 'NoExecute' },
          { key: 'gpu', operator: 'Exists' },
        ],
      }),
      offloading('Local'),
    ],
    [
      'of an offloading that is being removed',
      pod(),
      {
        ...offloading('Remote'),
        metadata: { ...offloading('Remote').metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      },
    ],
  ])('%s', (_what, one, over) => {
    expect(admit(one, facts(over))).toEqual({ patch: [], warnings: [] });
  });

  test('what belongs to a DaemonSet in another way is not', () => {
    const one = pod({}, { ownerReferences: [{ ...daemonSet, controller: false }] });
    expect(admit(one, facts(offloading('Remote'))).patch).not.toEqual([]);
  });

  test('kept home by its label, even where it would tolerate virtual nodes', () => {
    const one = pod(everywhere, { labels: { 'tributary.dev/offload': 'false' } });
    expect(places(one, facts(offloading('Remote')))).toEqual(['n1', 'n2']);
  });
});

describe('the patch', () => {
  const remote = facts(offloading('Remote'));
  const paths = (one: Pod): string[] => admit(one, remote).patch.map(({ path }) => path);

  test('adds the innermost thing that is missing', () => {
    expect(paths(pod())).toEqual(['/spec/tolerations', '/spec/affinity', '/metadata/annotations']);
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [] };
    expect(
      paths(pod({ tolerations: [], affinity: { podAntiAffinity } }, { annotations: { a: 'b' } })),
    ).toEqual([
      '/spec/tolerations/-',
      '/spec/affinity/nodeAffinity',
      '/metadata/annotations/tributary.dev~1strategy',
    ]);
    const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [] };
    expect(paths(pod({ affinity: { nodeAffinity: preferred } }))[1]).toBe(
      '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution',
    );
  });

  test('touches nothing else that the scheduler reads', () => {
    const spec: Partial<PodSpec> = {
      nodeSelector: { zone: 'a' },
      tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', tolerationSeconds: 5 }],
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'tributary.dev/cluster', whenUnsatisfiable: 'DoNotSchedule' },
      ],
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: 'zone', operator: 'Exists' }] } },
          ],
        },
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'example.com/rack' }],
        },
      },
    };
    const before = pod(spec);
    const after = patched(before, admit(before, remote).patch);
    expect(after.spec).toMatchObject(
      spec.affinity === undefined ? {} : { ...spec, tolerations: expect.anything() },
    );
    expect(after.spec?.tolerations?.[0]).toEqual(spec.tolerations?.[0]);
  });

  test('needs a toleration only, where all nodes are permitted', () => {
    expect(admit(pod(), facts(offloading('LocalAndRemote'))).patch).toEqual([
      {
        op: 'add',
        path: '/spec/tolerations',
        value: [{ key: NAME, operator: 'Exists', effect: 'NoSchedule' }],
      },
      { op: 'add', path: '/metadata/annotations', value: { 'tributary.dev/strategy': 'LocalAndRemote' } },
    ]);
  });

  test('says what was done, whatever the annotation claimed', () => {
    const one = pod({}, { annotations: { 'tributary.dev/strategy': 'Local' } });
    expect(patched(one, admit(one, remote).patch).metadata.annotations).toEqual({
      'tributary.dev/strategy': 'Remote',
    });
  });
});

test('more terms than are permitted become fewer nodes, never more', () => {
  const terms = Array.from({ length: 40 }, (_, index) => ({
    matchExpressions: [{ key: 'cores', operator: 'Gt', values: [String(index)] }],
  }));
  const one = pod(requiring(terms));
  const situation = facts(offloading('LocalAndRemote', EU));
  expect(places(one, situation)).toEqual(['n1', 'n2']);
  const after = patched(one, admit(one, situation).patch);
  expect(
    after.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms,
  ).toHaveLength(40);
  expect(admit(one, situation).warnings).toEqual([expect.stringContaining('too many terms')]);
});

/** mulberry32, so that a failure can be had again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

test('for any pod: what the strategy permits AND what the pod permits, no more and no less', () => {
  const random = seeded(6);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const some = <T>(most: number, make: () => T): T[] =>
    Array.from({ length: Math.floor(random() * (most + 1)) }, make);
  const expression = (): {
    key: string;
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    values?: string[];
  } => {
    const key = pick(['zone', 'region', 'disk', TYPE, NAME]);
    const operator = pick(['In', 'NotIn', 'Exists', 'DoesNotExist'] as const);
    if (operator === 'Exists' || operator === 'DoesNotExist') return { key, operator };
    return {
      key,
      operator,
      values: [pick(['a', 'b', 'eu', 'virtual-node', 'milan', 'rome']), pick(['no', 'ssd'])],
    };
  };
  let narrowedPods = 0;
  for (let round = 0; round < 3000; round++) {
    const terms = some(4, () => ({
      ...(random() < 0.8 && { matchExpressions: some(3, expression) }),
      ...(random() < 0.2 && {
        matchFields: [{ key: 'metadata.name', operator: 'In', values: [pick(ALL)] }],
      }),
    }));
    const tolerations = some(2, () =>
      pick([{ operator: 'Exists' }, { key: 'gpu', operator: 'Exists' }, { key: NAME, value: 'rome' }]),
    );
    const before = pod({ ...(terms.length > 0 && requiring(terms)), ...(random() < 0.5 && { tolerations }) });
    const selector: LabelSelector = { matchExpressions: some(2, expression) };
    const strategy = pick(['Local', 'Remote', 'LocalAndRemote'] as const);
    const away = random() < 0.3 ? [pick(['milan', 'rome', 'oslo'])] : [];
    const entry = { cluster: 'c', phase: 'Ready', reason: 'AsExpected' } as const;
    const clusters = [{ ...entry, virtualNodes: ['milan', 'rome', 'oslo'] }];
    const situation = facts(offloading(strategy, selector, { clusters }), away);
    const after = patched(before, admit(before, situation).patch);
    expect(admit(after, situation).patch).toEqual([]);
    for (const node of NODES) {
      const isVirtual = node.labels[TYPE] !== undefined;
      const isSelected = matchesSelector(selector, node.labels) && !away.includes(node.name);
      const permitted = isVirtual ? strategy !== 'Local' && isSelected : strategy !== 'Remote';
      const tolerated = strategy === 'Local' ? toleratesNode(before, node) : true;
      const expected = permitted && tolerated && wantsNode(before, node);
      if (expected !== fits(before, node)) narrowedPods++;
      if (fits(after, node) !== expected) {
        throw new Error(
          `round ${round}, node ${node.name}: ${JSON.stringify({ before, after, strategy, selector, away })}`,
        );
      }
    }
  }
  expect(narrowedPods).toBeGreaterThan(1000);
});
