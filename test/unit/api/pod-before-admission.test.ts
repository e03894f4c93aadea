import { expect, test } from '@jest/globals';
import { specBeforeAdmission } from '../../../src/api/pod-before-admission.ts';
import type { PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../../../src/api/wire.ts';

const HOST = 'kubernetes.io/hostname';
const merged = { matchExpressions: [{ key: 'hash', operator: 'In', values: ['a'] }] };

test('keys that an API server has written into a selector are not said again, where it would refuse them', () => {
  const made: PodAffinityTerm = {
    topologyKey: HOST,
    labelSelector: merged,
    matchLabelKeys: ['hash'],
    mismatchLabelKeys: ['tier'],
  };
  const said: PodAffinityTerm = { topologyKey: HOST, labelSelector: merged, mismatchLabelKeys: ['tier'] };
  const spread: TopologySpreadConstraint = {
    topologyKey: HOST,
    maxSkew: 1,
    whenUnsatisfiable: 'DoNotSchedule',
  };
  const affinityOf = (term: PodAffinityTerm): PodSpec['affinity'] => ({
    nodeAffinity: {},
    podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }] },
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
  });
  const spec = {
    containers: [],
    affinity: affinityOf(made),
    topologySpreadConstraints: [{ ...spread, labelSelector: merged, matchLabelKeys: ['hash'] }],
  } as PodSpec;
  expect(specBeforeAdmission(spec)).toEqual({
    containers: [],
    affinity: affinityOf(said),
    topologySpreadConstraints: [{ ...spread, labelSelector: merged }],
  });
});

test('what no API server has written yet stays as it is', () => {
  const affinity: PodSpec['affinity'] = { podAffinity: {}, podAntiAffinity: {} };
  const spread = [{ topologyKey: HOST, maxSkew: 1, whenUnsatisfiable: 'x', matchLabelKeys: ['hash'] }];
  const spec: PodSpec = { containers: [], affinity, topologySpreadConstraints: spread };
  expect(specBeforeAdmission(spec)).toEqual(spec);
  expect(specBeforeAdmission({ containers: [] })).toEqual({ containers: [] });
});
