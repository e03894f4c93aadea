import { describe, expect, test } from '@jest/globals';
import type { NamespaceOffloading, PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import type { Prices } from '../../../../src/api/prices.ts';
import type { Pod, PodSpec, ResourceList } from '../../../../src/api/wire.ts';
import type { SelectedNode } from '../../../../src/offloading/admission/avoid.ts';
import { type AdmissionFacts, admit } from '../../../../src/offloading/admission/decide.ts';
import { remadePod } from '../../../../src/offloading/release/remade-pod.ts';
import { patched, preferenceFor, type TestNode } from './scheduler.ts';

const TYPE = 'tributary.dev/node-type';
const NAME = 'tributary.dev/virtual-node';
const PREFERRED = 'tributary.dev/preferred';
const HOME: TestNode = { name: 'n1', labels: {}, taints: [] };
const REQUESTS = { cpu: '500m', memory: '1Gi' };

const eur = (cpu: string): Prices => ({ cpu: { amount: cpu, currency: 'EUR' } });
const usd = (cpu: string): Prices => ({ cpu: { amount: cpu, currency: 'USD' } });
const node = (name: string, prices?: Prices, more: Partial<SelectedNode> = {}): SelectedNode => ({
  name,
  labels: { [TYPE]: 'virtual-node', [NAME]: name },
  isTainted: true,
  resources: { cpu: '8', memory: '16Gi', pods: '100' },
  ...(prices && { prices }),
  ...more,
});
const pod = (
  spec: Partial<PodSpec> = {},
  requests: ResourceList = REQUESTS,
  annotations?: Record<string, string>,
): Pod => ({
  metadata: {
    name: 'web',
    uid: 'p',
    resourceVersion: '',
    creationTimestamp: '',
    ...(annotations && { annotations }),
  },
  spec: { containers: [{ name: 'web', image: 'web:1', resources: { requests } }], ...spec },
});
const facts = (
  selected: SelectedNode[],
  podStrategy: PodStrategy = 'Remote',
  more: Partial<AdmissionFacts> = {},
): AdmissionFacts => ({
  offloading: {
    metadata: {
      name: 'offloading',
      namespace: 'shop',
      uid: 'o',
      resourceVersion: '1',
      creationTimestamp: '',
    },
    spec: { podStrategy },
  } satisfies NamespaceOffloading,
  failedNodes: [],
  selected,
  isOpen: false,
  nowMs: 0,
  ...more,
});

/** The pod as it is let in; asked again, as API servers do, nothing changes. */
function letIn(one: Pod, situation: AdmissionFacts): Pod {
  const after = patched(one, admit(one, situation).patch);
  expect(admit(after, situation).patch).toEqual([]);
  return after;
}

/** What the scheduler adds up for each node, home first. */
const weights = (one: Pod, selected: SelectedNode[]): number[] =>
  [HOME, ...selected.map(({ name, labels }) => ({ name, labels: { ...labels }, taints: [] }))].map((place) =>
    preferenceFor(one, place),
  );

const MILAN = node('milan', eur('0.04'));
const TURIN = node('turin', eur('0.02'));
const ROME = node('rome', eur('0.03'));

test('of three, the cheapest for what the pod requests leads, and whichever are full, so does the cheapest of the others', () => {
  const selected = [MILAN, TURIN, ROME];
  const after = letIn(pod(), facts(selected));
  expect(weights(after, selected)).toEqual([0, 0, 100, 10]);
  expect(after.metadata.annotations?.[PREFERRED]).toBe(
    'turin: 0.01 EUR/h; rome: 0.015 EUR/h; milan: 0.02 EUR/h',
  );
});

test('where it may stay home, that is as good as the cheapest', () => {
  const selected = [MILAN, TURIN];
  expect(weights(letIn(pod(), facts(selected, 'LocalAndRemote')), selected)).toEqual([100, 0, 100]);
});

test.each<[string, SelectedNode[], number[], string | undefined]>([
  ['one that asks nothing is the cheapest', [MILAN, node('bern')], [0, 0, 100], 'bern: 0; milan: 0.02 EUR/h'],
  [
    'those that ask the same are as good',
    [MILAN, TURIN, node('pisa', eur('0.020'))],
    [0, 0, 100, 100],
    undefined,
  ],
  ['where all ask the same, nothing is said', [MILAN, node('pisa', eur('0.04'))], [0, 0, 0], undefined],
  ['where nobody asks anything, nothing is said', [node('bern'), node('pisa')], [0, 0, 0], undefined],
  ['one alone is compared with nobody', [MILAN], [0, 0], undefined],
  [
    'the currency of most counts',
    [MILAN, node('york', usd('0.001')), TURIN],
    [0, 10, 0, 100],
    'turin: 0.01 EUR/h; milan: 0.02 EUR/h; york: 0.0005 USD/h, in another currency',
  ],
  [
    'of two currencies neither counts',
    [MILAN, node('york', usd('0.001'))],
    [0, 0, 0],
    'not compared: EUR, USD (milan: 0.02 EUR/h; york: 0.0005 USD/h)',
  ],
  [
    'upper and lower case are one currency',
    [MILAN, node('pisa', { cpu: { amount: '0.02', currency: 'eur' } })],
    [0, 0, 100],
    'pisa: 0.01 EUR/h; milan: 0.02 EUR/h',
  ],
  [
    'but what costs nothing is cheaper in both',
    [node('bern'), MILAN, node('york', usd('0.001'))],
    [0, 100, 0, 0],
    'bern: 0; milan: 0.02 EUR/h, not compared; york: 0.0005 USD/h, not compared',
  ],
  [
    'one that asks in two currencies cannot be compared',
    [MILAN, TURIN, node('pisa', { ...eur('0.001'), memory: { amount: '1', currency: 'USD' } })],
    [0, 10, 100, 0],
    'turin: 0.01 EUR/h; milan: 0.02 EUR/h; pisa: asks in two currencies (EUR, USD)',
  ],
  [
    'a price that cannot be read',
    [MILAN, TURIN, node('pisa', eur('cheap'))],
    [0, 10, 100, 0],
    'turin: 0.01 EUR/h; milan: 0.02 EUR/h; pisa: asks a price that cannot be read',
  ],
  [
    'a full one is not preferred',
    [MILAN, node('turin', eur('0.02'), { resources: { cpu: '0', memory: '16Gi', pods: '9' } }), ROME],
    [0, 0, 0, 100],
    undefined,
  ],
  [
    'nor one that is too large for',
    [MILAN, node('turin', eur('0.02'), { nodeSizes: [{ cpu: '100m', memory: '16Gi' }] }), ROME],
    [0, 0, 0, 100],
    undefined,
  ],
  [
    'nor one that takes nothing new',
    [
      MILAN,
      node('turin', eur('0.02'), { taints: [{ key: 'tributary.dev/closed', effect: 'NoSchedule' }] }),
      ROME,
    ],
    [0, 0, 0, 100],
    undefined,
  ],
])('%s', (_what, selected, expected, mark) => {
  const after = letIn(pod(), facts(selected));
  expect(weights(after, selected)).toEqual(expected);
  if (mark !== undefined) expect(after.metadata.annotations?.[PREFERRED]).toBe(mark);
});

test('one that the pod is kept off is not preferred', () => {
  const selected = [MILAN, TURIN, ROME];
  const situation = facts(selected, 'LocalAndRemote', { failedNodes: ['turin'] });
  expect(weights(letIn(pod(), situation), selected)).toEqual([100, 0, 0, 100]);
});

test('prices of what the pod does not request do not count', () => {
  const gpu = { ...eur('0.01'), 'a.com/gpu': { amount: '9', currency: 'EUR' } };
  const selected = [
    MILAN,
    node('turin', gpu, { resources: { cpu: '8', memory: '16Gi', pods: '9', 'a.com/gpu': '1' } }),
  ];
  expect(weights(letIn(pod(), facts(selected)), selected)).toEqual([0, 0, 100]);
});

test('of many, each leads the next one, and only so many are named', () => {
  const selected = Array.from({ length: 20 }, (_, index) => node(`n${index}`, eur(`0.${10 + index}`)));
  const after = letIn(pod(), facts(selected));
  const [, ...found] = weights(after, selected);
  expect(found.slice(0, 3)).toEqual([100, 78, 62]);
  expect(found).toEqual(found.toSorted((a, b) => b - a));
  expect(found.every((weight) => weight >= 0 && weight <= 100)).toBe(true);
  expect(after.metadata.annotations?.[PREFERRED]).toMatch(/; 4 more$/u);
});

describe("a person's own preferred terms", () => {
  const term = (weight: number, zone: string): object => ({
    weight,
    preference: { matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] },
  });
  const preferring = (...terms: object[]): Partial<PodSpec> => ({
    affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms as never } },
  });
  const selected = [
    node('milan', eur('0.04'), { labels: { [TYPE]: 'virtual-node', [NAME]: 'milan', zone: 'a' } }),
    TURIN,
  ];
  const own = (one: Pod): unknown =>
    one.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.[0];

  test.each([100, 50, 2])('are kept and win: %d', (weight) => {
    const after = letIn(pod(preferring(term(weight, 'a'))), facts(selected));
    expect(own(after)).toEqual(term(weight, 'a'));
    const [, milan, turin] = weights(after, selected);
    expect(milan).toBe(weight);
    expect(turin).toBe(weight - 1);
  });

  test('that leave no weight are all that counts', () => {
    const one = pod(preferring(term(1, 'a')));
    const after = letIn(one, facts(selected));
    expect(after.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution).toEqual([
      term(1, 'a'),
    ]);
    expect(after.metadata.annotations?.[PREFERRED]).toBeUndefined();
  });

  test('for real nodes are taken for nobody else', () => {
    const home = {
      weight: 40,
      preference: { matchExpressions: [{ key: TYPE, operator: 'NotIn', values: ['virtual-node'] }] },
    };
    expect(own(letIn(pod(preferring(home)), facts(selected)))).toEqual(home);
  });
});

test('a pod that is made from another one, or asked about again later, goes by the prices of today', () => {
  const before = letIn(pod(), facts([MILAN, TURIN]));
  const selected = [node('milan', eur('0.01')), TURIN];
  const after = letIn(before, facts(selected));
  expect(weights(after, selected)).toEqual([0, 100, 0]);
  expect(after.metadata.annotations?.[PREFERRED]).toBe('milan: 0.005 EUR/h; turin: 0.01 EUR/h');
  const alone = letIn(before, facts([MILAN]));
  expect(weights(alone, [MILAN])).toEqual([0, 0]);
  expect(alone.metadata.annotations?.[PREFERRED]).toBe('');
});

test('a pod that is made anew has none of it', () => {
  const { spec, metadata } = remadePod(letIn(pod(), facts([MILAN, TURIN], 'LocalAndRemote')));
  expect(spec?.affinity).toBeUndefined();
  expect(metadata.annotations).toEqual({});
});
