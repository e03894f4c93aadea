import { describe, expect, test } from '@jest/globals';
import type { NamespaceOffloadingSpec, PodStrategy } from '../../../../src/api/namespace-offloading.ts';
import { carriedRulesOf, type Placement, placementFor } from '../../../../src/api/placement.ts';
import type { Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../../../../src/api/wire.ts';
import { type AdmissionFacts, admit } from '../../../../src/offloading/admission/decide.ts';
import { remadePod } from '../../../../src/offloading/release/remade-pod.ts';
import { patched } from './scheduler.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const labelSelector = { matchLabels: { app: 'web' } };
const near = (topologyKey: string): PodAffinityTerm => ({ topologyKey, labelSelector });
const spread = (
  topologyKey: string,
  whenUnsatisfiable = 'DoNotSchedule',
  more: Partial<TopologySpreadConstraint> = {},
): TopologySpreadConstraint => ({ topologyKey, whenUnsatisfiable, maxSkew: 1, labelSelector, ...more });
const required = (...terms: PodAffinityTerm[]): object => ({
  requiredDuringSchedulingIgnoredDuringExecution: terms,
});
const preferred = (...terms: PodAffinityTerm[]): object => ({
  preferredDuringSchedulingIgnoredDuringExecution: terms.map((podAffinityTerm) => ({
    weight: 100,
    podAffinityTerm,
  })),
});

const APART: Partial<PodSpec> = {
  affinity: { podAntiAffinity: required(near(HOST), near('rack')) },
  topologySpreadConstraints: [
    spread(ZONE, 'DoNotSchedule', { minDomains: 3 }),
    spread(HOST, 'ScheduleAnyway'),
  ],
};

const pod = (spec: Partial<PodSpec>, annotations?: Record<string, string>): Pod => ({
  metadata: {
    name: 'web',
    uid: 'p',
    resourceVersion: '',
    creationTimestamp: '',
    ...(annotations && { annotations }),
  },
  spec: { containers: [], ...spec },
});

const facts = (spec: NamespaceOffloadingSpec): AdmissionFacts => ({
  offloading: {
    metadata: {
      name: 'offloading',
      namespace: 'shop',
      uid: 'o',
      resourceVersion: '1',
      creationTimestamp: '',
    },
    spec,
  },
  failedNodes: [],
  isOpen: false,
  nowMs: 0,
});

interface Admitted {
  spec: Pick<PodSpec, 'topologySpreadConstraints'> & { apart: unknown };
  carried: ReturnType<typeof carriedRulesOf>;
  /** What the webhook writes. */
  placement: string | undefined;
  own: string | undefined;
  warnings: readonly string[];
  after: Pod;
}

/** What becomes of the pod; the same when it is asked about again. */
function admitted(before: Pod, spec: NamespaceOffloadingSpec): Admitted {
  const { patch, warnings } = admit(before, facts(spec));
  const after = patched(before, patch);
  expect(admit(after, facts(spec)).patch).toEqual([]);
  return {
    spec: {
      apart: after.spec?.affinity?.podAntiAffinity,
      ...(after.spec?.topologySpreadConstraints && {
        topologySpreadConstraints: after.spec.topologySpreadConstraints,
      }),
    },
    carried: carriedRulesOf(after),
    placement: after.metadata.annotations?.['tributary.dev/placement-of-namespace'],
    own: after.metadata.annotations?.['tributary.dev/placement'],
    warnings,
    after,
  };
}

const NOT_CARRIED = { podAntiAffinity: [], topologySpreadConstraints: [] };

describe('of a pod that runs on virtual nodes only', () => {
  test.each<[string, NamespaceOffloadingSpec, Partial<PodSpec>]>([
    ['by its strategy', { podStrategy: 'Remote' }, {}],
    ['by its own selector', {}, { nodeSelector: { 'tributary.dev/node-type': 'virtual-node' } }],
  ])('hard rules about hosts and zones leave the spec, and are kept: %s', (_what, offloading, more) => {
    const { spec, carried, placement } = admitted(pod({ ...APART, ...more }), offloading);
    expect(spec).toEqual({
      apart: required(near('rack')),
      topologySpreadConstraints: [spread(HOST, 'ScheduleAnyway')],
    });
    expect(carried).toEqual({
      podAntiAffinity: [near(HOST)],
      topologySpreadConstraints: [spread(ZONE, 'DoNotSchedule', { minDomains: 3 })],
    });
    expect(placement).toBeUndefined();
  });

  test('one that another webhook adds in between is kept beside them', () => {
    const { after } = admitted(pod(APART), { podStrategy: 'Remote' });
    const { spec } = after;
    if (spec === undefined) throw new Error('no spec');
    const changed = { ...after, spec: { ...spec, topologySpreadConstraints: [spread(HOST)] } };
    const again = admitted(changed, { podStrategy: 'Remote' });
    expect(again.spec.topologySpreadConstraints).toEqual([]);
    expect(again.carried?.topologySpreadConstraints).toEqual([
      spread(ZONE, 'DoNotSchedule', { minDomains: 3 }),
      spread(HOST),
    ]);
  });

  test('they are in its spec again when it is made anew elsewhere', () => {
    const { after } = admitted(pod(APART), { podStrategy: 'Remote' });
    const { spec, metadata } = remadePod(after);
    expect(metadata.annotations).toEqual({});
    expect(spec?.affinity).toEqual({ podAntiAffinity: required(near(HOST), near('rack')) });
    expect(spec?.topologySpreadConstraints).toEqual(APART.topologySpreadConstraints);
  });
});

describe('a choice', () => {
  const SOFT = {
    apart: { ...required(near('rack')), ...preferred(near(HOST)) },
    topologySpreadConstraints: [spread(ZONE, 'ScheduleAnyway'), spread(HOST, 'ScheduleAnyway')],
  };

  test.each<PodStrategy>(['Remote', 'LocalAndRemote'])(
    'Soft softens at home, too, with %s',
    (podStrategy) => {
      const { spec, carried, placement, warnings } = admitted(pod(APART), { podStrategy, placement: 'Soft' });
      expect(spec).toEqual(SOFT);
      expect(carried).toEqual(NOT_CARRIED);
      expect(placement).toBe('Soft');
      expect(warnings).toEqual([]);
    },
  );

  test.each<Placement | undefined>([undefined, 'Propagate', 'Hard'])(
    '%s leaves hard rules to the scheduler where real nodes are permitted, and says so',
    (placement) => {
      const { spec, carried, warnings } = admitted(pod(APART), placement === undefined ? {} : { placement });
      expect(spec).toEqual({
        apart: required(near(HOST), near('rack')),
        topologySpreadConstraints: APART.topologySpreadConstraints,
      });
      expect(carried).toEqual(NOT_CARRIED);
      expect(warnings).toEqual([expect.stringContaining('each virtual node counts as one host')]);
    },
  );

  test('of the pod comes before that of the namespace, and a misspelt one is told', () => {
    const soft = { podStrategy: 'Remote', placement: 'Soft' } as const;
    const own = admitted(pod(APART, { 'tributary.dev/placement': 'Hard' }), soft);
    expect([own.own, own.placement, own.carried?.podAntiAffinity]).toEqual(['Hard', undefined, [near(HOST)]]);
    const wrong = admitted(pod(APART, { 'tributary.dev/placement': 'Weich' }), { podStrategy: 'Remote' });
    expect(wrong.carried?.podAntiAffinity).toEqual([near(HOST)]);
    expect(wrong.warnings).toEqual([expect.stringContaining('"Weich" is none of Propagate, Soft, Hard')]);
  });

  test('of the pod stays as its owner wrote it, whatever the namespace says', () => {
    const wrong = admitted(pod(APART, { 'tributary.dev/placement': 'Weich' }), { placement: 'Soft' });
    expect([wrong.own, wrong.placement, placementFor(wrong.after)]).toEqual(['Weich', 'Soft', 'Soft']);
    expect(wrong.spec).toEqual(SOFT);
    const lower = admitted(pod(APART, { 'tributary.dev/placement': 'soft' }), { placement: 'Hard' });
    expect([lower.own, lower.placement, placementFor(lower.after)]).toEqual(['soft', undefined, 'Soft']);
    expect([lower.spec, lower.warnings]).toEqual([SOFT, []]);
  });

  test('of the namespace is kept where all rules have left the spec, and goes when the pod is made anew', () => {
    const hard = { podStrategy: 'Remote', placement: 'Hard' } as const;
    const { after, placement } = admitted(pod({ topologySpreadConstraints: [spread(ZONE)] }), hard);
    expect(placement).toBe('Hard');
    expect(remadePod(after).metadata.annotations).toEqual({});
  });

  test('that a template brings as if it were its namespace’s is not believed', () => {
    const forged = pod(APART, { 'tributary.dev/placement-of-namespace': 'Soft' });
    expect(placementFor(admitted(forged, { podStrategy: 'Remote' }).after)).toBe('Propagate');
  });

  test('that is unknown, or a pod that is too large, is to be told', () => {
    const wrong = pod(APART, { 'tributary.dev/placement': 'Weich' });
    expect(admit(wrong, facts({})).toTell).toBe('any');
    expect(admit(pod(APART), facts({})).toTell).toBeUndefined();
    const milan = { name: 'milan', labels: {}, isTainted: true, nodeSizes: [{ cpu: '1' }] };
    const container = { name: 'app', resources: { requests: { cpu: '2' } } };
    const large = { ...pod({ containers: [container] }) };
    expect(admit(large, { ...facts({}), selected: [milan] }).toTell).toBe('waiting');
  });

  test('of the namespace is not written onto pods that say nothing of other pods', () => {
    expect(admitted(pod({}), { placement: 'Hard' }).placement).toBeUndefined();
    const wish = { affinity: { podAntiAffinity: preferred(near(HOST)) } };
    expect(admitted(pod(wish), { placement: 'Hard' }).placement).toBe('Hard');
  });

  test('says nothing of pods that stay home', () => {
    const home = { podStrategy: 'Local', placement: 'Soft' } as const;
    const tolerant = pod({ ...APART, tolerations: [{ operator: 'Exists' }] });
    expect(admitted(tolerant, home).spec.apart).toEqual(required(near(HOST), near('rack')));
  });
});
