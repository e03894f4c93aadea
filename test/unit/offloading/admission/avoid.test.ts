import { describe, expect, test } from '@jest/globals';
import type { NamespaceOffloading, PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import type { Pod, PodSpec } from '../../../../src/api/wire.ts';
import { type AdmissionFacts, admit } from '../../../../src/offloading/admission/decide.ts';
import { patched, wantsNode, type TestNode } from './scheduler.ts';

const NOW = Date.UTC(2026, 0, 1);
const TYPE = 'tributary.dev/node-type';
const NAME = 'tributary.dev/virtual-node';
const virtual = (name: string, labels: Record<string, string> = {}): TestNode => ({
  name,
  labels: { [TYPE]: 'virtual-node', [NAME]: name, ...labels },
  taints: [{ key: NAME, value: name, effect: 'NoSchedule' }],
});

function offloading(
  podStrategy: PodStrategy | undefined,
  status: NamespaceOffloading['status'] = {},
): NamespaceOffloading {
  const metadata = { name: 'offloading', namespace: 'shop', uid: 'o', resourceVersion: '1' };
  return {
    metadata: { ...metadata, creationTimestamp: '' },
    spec: { ...(podStrategy && { podStrategy }) },
    status,
  };
}

const pod = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'web', uid: 'p', resourceVersion: '', creationTimestamp: '', ...metadata },
  spec: { containers: [], ...spec },
});
const facts = (one: NamespaceOffloading): AdmissionFacts => ({
  offloading: one,
  failedNodes: [],
  isOpen: false,
  nowMs: NOW,
});
type Terms = NonNullable<
  NonNullable<
    NonNullable<PodSpec['affinity']>['nodeAffinity']
  >['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'];
const requiring = (nodeSelectorTerms: Terms): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

describe('one whose own words permit no other than a virtual node that it is held off', () => {
  const until = new Date(NOW + 1000).toISOString();
  const heldOff = [{ owner: 'Pod/web', virtualNode: 'milan', until }];
  const CLUSTER = 'tributary.dev/cluster';
  const HOST = 'kubernetes.io/hostname';
  const selected = ['milan', 'rome', 'oslo'].map((name) => ({
    name,
    isTainted: true,
    labels: {
      [TYPE]: 'virtual-node',
      [NAME]: name,
      [CLUSTER]: name,
      [HOST]: name,
      region: name === 'oslo' ? 'no' : 'eu',
    },
  }));
  const by = (spec: Partial<PodSpec>, strategy: PodStrategy = 'LocalAndRemote'): unknown => {
    const situation = { ...facts(offloading(strategy, { heldOff })), selected };
    const after = patched(pod(spec), admit(pod(spec), situation).patch);
    expect(admit(after, situation).patch).toEqual([]);
    return !wantsNode(after, virtual('milan', selected[0]?.labels));
  };
  const inMilan = { key: CLUSTER, operator: 'In', values: ['milan'] };

  test.each<[string, Partial<PodSpec>]>([
    ['its cluster', { nodeSelector: { [CLUSTER]: 'milan' } }],
    ['its host name', { nodeSelector: { [HOST]: 'milan' } }],
    ['its type and region', requiring([{ matchExpressions: [inMilan, { key: TYPE, operator: 'Exists' }] }])],
    ['its name', requiring([{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['milan'] }] }])],
  ])('is not kept off it for good: %s', (_what, spec) => {
    expect(by(spec)).toBe(false);
    const situation = { ...facts(offloading(undefined, { heldOff })), selected };
    expect(admit(pod(spec), situation).warnings).toEqual([expect.stringContaining('its own nodeSelector')]);
  });

  test('nor with the strategy Remote, where it asks for a label', () => {
    const heldBoth = [...heldOff, { owner: 'Pod/web', virtualNode: 'rome', until }];
    const clusters = selected.map(({ name }) => ({
      cluster: name,
      virtualNodes: [name],
      phase: 'Ready' as const,
      reason: 'AsExpected' as const,
    }));
    const remote = offloading('Remote', { heldOff: heldBoth, clusters });
    const one = pod({ nodeSelector: { region: 'eu' } });
    const after = patched(one, admit(one, { ...facts(remote), selected }).patch);
    expect(wantsNode(after, virtual('milan'))).toBe(true);
  });

  test.each<[string, Partial<PodSpec>]>([
    ['another virtual node', { nodeSelector: { [TYPE]: 'virtual-node' } }],
    ['real ones with the label, perhaps', { nodeSelector: { region: 'eu' } }],
    [
      'a real one beside it',
      {
        ...requiring([
          { matchExpressions: [inMilan] },
          { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] },
        ]),
      },
    ],
    ['a real host', { nodeSelector: { [HOST]: 'n1' } }],
  ])('but it is where there is another place: %s', (_what, spec) => {
    expect(by(spec)).toBe(true);
  });
});
