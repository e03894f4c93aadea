import { expect, test } from '@jest/globals';
import type { NamespaceOffloading, PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import type { Pod, PodSpec, ResourceList } from '../../../../src/api/wire.ts';
import type { SelectedNode } from '../../../../src/offloading/admission/avoid.ts';
import { type AdmissionFacts, admit } from '../../../../src/offloading/admission/decide.ts';
import { whyTooLarge } from '../../../../src/offloading/admission/node-sizes.ts';
import { cluster, NOW_MS, offloading, at } from '../release/support.ts';
import { patched, wantsNode } from './scheduler.ts';

const TYPE = 'tributary.dev/node-type';
const NAME = 'tributary.dev/virtual-node';

const pod = (requests: ResourceList, spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name: 'web', uid: 'p', resourceVersion: '', creationTimestamp: '' },
  spec: { containers: [{ name: 'web', image: 'web:1', resources: { requests } }], ...spec },
});
const SIZES = [
  { cpu: '16', memory: '8Gi', pods: '10' },
  { cpu: '4', memory: '64Gi', pods: '10', 'a.com/gpu': '1' },
];

test.each<[string, ResourceList, ResourceList[] | undefined, string | undefined]>([
  ['what fits on the one with most CPU', { cpu: '16', memory: '8Gi' }, SIZES, undefined],
  ['what fits on the one with most memory', { cpu: '1', memory: '64Gi', 'a.com/gpu': '1' }, SIZES, undefined],
  ['a pod without requests', {}, SIZES, undefined],
  ['where nothing is known', { cpu: '99' }, undefined, undefined],
  ['what fits on neither alone', { cpu: '5', memory: '16Gi' }, SIZES, 'memory 16Gi, one node lends 8Gi'],
  [
    'too much of both',
    { cpu: '17', memory: '80Gi' },
    SIZES,
    'cpu 17, one node lends 16, memory 80Gi, one node lends 8Gi',
  ],
  ['a device that none has', { cpu: '1', 'b.com/fpga': '1' }, SIZES, 'b.com/fpga 1, one node lends 0'],
  ['where no node is lent', {}, [], 'no node is lent now'],
])('%s', (_what, requests, sizes, expected) => {
  expect(whyTooLarge(pod(requests), sizes)).toBe(expected);
});

const node = (name: string, nodeSizes?: ResourceList[]): SelectedNode => ({
  name,
  labels: { [TYPE]: 'virtual-node', [NAME]: name },
  isTainted: true,
  ...(nodeSizes && { nodeSizes }),
});
const SMALL = node('milan', SIZES);
const LARGE = node('turin', [{ cpu: '64', memory: '256Gi', pods: '100' }]);
const facts = (
  selected: SelectedNode[],
  podStrategy: PodStrategy,
  more: Partial<NonNullable<NamespaceOffloading['status']>> = {},
): AdmissionFacts => ({
  offloading: offloading({ podStrategy }, { clusters: selected.map(({ name }) => cluster(name)), ...more }),
  failedNodes: [],
  selected,
  isOpen: false,
  nowMs: NOW_MS,
});
const HUGE = { cpu: '20', memory: '1Gi' };

/** Which of the virtual nodes the scheduler may choose, the warnings, and why it is too large; asked again, nothing changes. */
function letIn(
  one: Pod,
  situation: AdmissionFacts,
): { places: string[]; warnings: string[]; why: string | undefined } {
  const { patch, warnings } = admit(one, situation);
  const after = patched(one, patch);
  expect(admit(after, situation).patch).toEqual([]);
  const nodes = (situation.selected ?? []).map(({ name, labels }) => ({
    name,
    labels: { ...labels },
    taints: [],
  }));
  return {
    places: nodes.filter((place) => wantsNode(after, place)).map(({ name }) => name),
    warnings,
    why: after.metadata.annotations?.['tributary.dev/too-large-for'],
  };
}

test.each<PodStrategy>(['Remote', 'LocalAndRemote'])(
  'a pod that is too large for each node of a cluster goes elsewhere: %s',
  (strategy) => {
    expect(letIn(pod(HUGE), facts([SMALL, LARGE], strategy))).toEqual({
      places: ['turin'],
      warnings: [],
      why: 'milan: cpu 20, one node lends 16',
    });
    expect(letIn(pod({ cpu: '2' }), facts([SMALL, LARGE], strategy)).places).toEqual(['milan', 'turin']);
  },
);

test('it waits where there is no other: it would not run there either', () => {
  const { places, warnings } = letIn(pod(HUGE), facts([SMALL], 'Remote'));
  expect(places).toEqual([]);
  expect(warnings).toEqual([
    'tributary: the pod is too large for each node over there (milan: cpu 20, one node lends 16), and its strategy Remote ' +
      'permits no other; see kubectl get namespaceoffloading',
  ]);
  const own = pod(HUGE, { nodeSelector: { [NAME]: 'milan' } });
  expect(letIn(own, facts([SMALL, LARGE], 'LocalAndRemote'))).toMatchObject({
    places: ['turin'],
    warnings: [expect.stringContaining('its own nodeSelector or node affinity permits no other')],
  });
});

test('where all that are large enough are avoided for a while, none of these is, and those that are too small still are', () => {
  const heldOff = [{ owner: 'Pod/web', virtualNode: 'turin', until: at(60) }];
  const { places, warnings } = letIn(pod(HUGE), facts([SMALL, LARGE], 'Remote', { heldOff }));
  expect(places).toEqual(['turin']);
  expect(warnings).toEqual([
    expect.stringContaining('no virtual node of this namespace can take the pod now'),
  ]);
});
