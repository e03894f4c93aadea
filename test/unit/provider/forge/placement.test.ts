import { describe, expect, test } from '@jest/globals';
import type { Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../../../../src/api/wire.ts';
import type { ForgeContext } from '../../../../src/provider/forge/context.ts';
import { forgePlacement } from '../../../../src/provider/forge/placement.ts';
import { decide } from '../../../../src/provider/pods/decide.ts';
import { CONTEXT, homePod, situation } from '../support/pods.ts';

const HOST = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const NAME = 'kubernetes.io/metadata.name';
const labelSelector = { matchLabels: { app: 'web' } };
const near = (topologyKey: string, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  topologyKey,
  labelSelector,
  ...more,
});
const spread = (
  topologyKey: string,
  whenUnsatisfiable = 'DoNotSchedule',
  more: Partial<TopologySpreadConstraint> = {},
): TopologySpreadConstraint => ({ topologyKey, whenUnsatisfiable, maxSkew: 1, labelSelector, ...more });
const required = (...terms: PodAffinityTerm[]): object => ({
  requiredDuringSchedulingIgnoredDuringExecution: terms,
});
const wish = (weight: number, podAffinityTerm: PodAffinityTerm): object => ({ weight, podAffinityTerm });
const preferred = (...wishes: object[]): object => ({
  preferredDuringSchedulingIgnoredDuringExecution: wishes,
});

const WORLD: ForgeContext = {
  ...CONTEXT,
  tenants: () => [
    ['shop', 'tenant'],
    ['stock', 'tenant-stock'],
  ],
  nodeHas: (label) => label === 'example.com/cloud',
};

const pod = (spec: Partial<PodSpec>, choice?: string, rules?: unknown): Pod =>
  homePod({
    spec,
    metadata: {
      annotations: {
        ...(choice !== undefined && { 'tributary.dev/placement': choice }),
        ...(rules !== undefined && { 'tributary.dev/placement-rules': JSON.stringify(rules) }),
      },
    },
  });
const apart = (...terms: PodAffinityTerm[]): Partial<PodSpec> => ({
  affinity: { podAntiAffinity: required(...terms) },
});
const beside = (...terms: PodAffinityTerm[]): Partial<PodSpec> => ({
  affinity: { podAffinity: required(...terms) },
});

describe('rules about hosts and zones', () => {
  const BOTH: Partial<PodSpec> = {
    affinity: {
      podAffinity: { ...required(near(ZONE)), ...preferred(wish(3, near(HOST))) },
      podAntiAffinity: { ...required(near(HOST)), ...preferred(wish(7, near(ZONE))) },
      nodeAffinity: {},
    },
    topologySpreadConstraints: [
      spread(HOST, 'ScheduleAnyway'),
      spread(HOST, 'DoNotSchedule', { minDomains: 2 }),
      spread(ZONE, 'ScheduleAnyway'),
    ],
  };

  test.each<[string | undefined, Partial<PodSpec>]>([
    [
      undefined,
      {
        affinity: {
          podAffinity: { ...required(near(ZONE)), ...preferred(wish(3, near(HOST))) },
          podAntiAffinity: { ...required(near(HOST)), ...preferred(wish(7, near(ZONE))) },
        },
        topologySpreadConstraints: BOTH.topologySpreadConstraints,
      } as Partial<PodSpec>,
    ],
    [
      'Soft',
      {
        affinity: {
          podAffinity: preferred(wish(100, near(ZONE)), wish(3, near(HOST))),
          podAntiAffinity: preferred(wish(100, near(HOST)), wish(7, near(ZONE))),
        },
        topologySpreadConstraints: [spread(HOST, 'ScheduleAnyway'), spread(ZONE, 'ScheduleAnyway')],
      },
    ],
    [
      'Hard',
      {
        affinity: {
          podAffinity: { ...required(near(ZONE)), ...preferred(wish(3, near(HOST))) },
          podAntiAffinity: required(near(HOST), near(ZONE)),
        },
        topologySpreadConstraints: [spread(HOST, 'DoNotSchedule', { minDomains: 2 }), spread(ZONE)],
      },
    ],
  ])('with the choice %s', (choice, expected) => {
    expect(forgePlacement(pod(BOTH, choice), WORLD)).toEqual({ spec: expected, left: [], refused: [] });
  });

  test('those that the webhook has taken out of the spec are put in', () => {
    const rules = { podAntiAffinity: [near(HOST)], topologySpreadConstraints: [spread(ZONE)] };
    const given = pod({ topologySpreadConstraints: [spread(ZONE, 'ScheduleAnyway')] }, undefined, rules);
    expect(forgePlacement(given, WORLD).spec).toEqual({
      ...apart(near(HOST)),
      topologySpreadConstraints: [spread(ZONE), spread(ZONE, 'ScheduleAnyway')],
    });
    const soft = pod({}, 'Soft', rules);
    expect(forgePlacement(soft, WORLD).spec).toEqual({
      affinity: { podAntiAffinity: preferred(wish(100, near(HOST))) },
      topologySpreadConstraints: [spread(ZONE, 'ScheduleAnyway')],
    });
  });

  test.each([['{'], ['null'], ['[]'], ['{"podAntiAffinity":{}}'], ['{"podAntiAffinity":[null]}']])(
    'a record of them that cannot be read refuses the pod: %s',
    (text) => {
      const given = homePod({ metadata: { annotations: { 'tributary.dev/placement-rules': text } } });
      expect(forgePlacement(given, WORLD).refused).toEqual([expect.stringContaining('cannot be read')]);
    },
  );

  test('former names of zone and region become those of today', () => {
    const given = pod(apart(near('failure-domain.beta.kubernetes.io/zone')));
    expect(forgePlacement(given, WORLD).spec).toEqual(apart(near(ZONE)));
  });

  test('a key that the API server has written into the selector is not said twice', () => {
    const merged = { key: 'hash', operator: 'In', values: ['a'] };
    const selector = { ...labelSelector, matchExpressions: [merged] };
    const given = pod({
      ...apart(near(HOST, { labelSelector: selector, matchLabelKeys: ['hash', 'other'] })),
      topologySpreadConstraints: [
        spread(HOST, 'DoNotSchedule', { labelSelector: selector, matchLabelKeys: ['hash'] }),
      ],
    });
    expect(forgePlacement(given, WORLD).spec).toEqual({
      ...apart(near(HOST, { labelSelector: selector, matchLabelKeys: ['other'] })),
      topologySpreadConstraints: [spread(HOST, 'DoNotSchedule', { labelSelector: selector })],
    });
  });
});

describe('a key that means something at home only', () => {
  test('is the business of home where the virtual node has such a label', () => {
    const given = pod({
      ...apart(near('example.com/cloud')),
      topologySpreadConstraints: [spread('example.com/cloud')],
    });
    expect(forgePlacement(given, WORLD)).toEqual({ spec: {}, left: [], refused: [] });
  });

  test.each<[string | undefined, 'left' | 'refused']>([
    [undefined, 'left'],
    ['Soft', 'left'],
    ['Hard', 'refused'],
  ])('is told otherwise, with the choice %s', (choice, where) => {
    const given = pod({ ...apart(near('rack')), topologySpreadConstraints: [spread('row')] }, choice);
    const forged = forgePlacement(given, WORLD);
    expect(forged.spec).toEqual({});
    expect(forged[where]).toEqual([
      'required podAntiAffinity by rack is not said over there: only host, zone and region mean the same in every cluster',
      'required topologySpreadConstraints by row is not said over there: only host, zone and region mean the same in every cluster',
    ]);
  });
});

describe('namespaces of a term', () => {
  const chosen = (...values: string[]): Partial<PodAffinityTerm> => ({
    namespaceSelector: { matchExpressions: [{ key: NAME, operator: 'In', values }] },
  });

  test.each<[string, Partial<PodAffinityTerm>, Partial<PodAffinityTerm>]>([
    ['its own', { namespaces: ['shop'] }, {}],
    ['others by name', { namespaces: ['shop', 'stock', 'elsewhere'] }, chosen('tenant', 'tenant-stock')],
    ['all', { namespaceSelector: {} }, chosen('tenant', 'tenant-stock')],
    ['selected by name', { namespaceSelector: { matchLabels: { [NAME]: 'stock' } } }, chosen('tenant-stock')],
  ])('%s', (_what, said, expected) => {
    const forged = forgePlacement(pod(apart(near(HOST, said))), WORLD);
    expect(forged).toEqual({ spec: apart(near(HOST, expected)), left: [], refused: [] });
  });

  test('none of which is over there: nothing to keep away from, and nothing to be beside', () => {
    const elsewhere = near(HOST, { namespaces: ['elsewhere'] });
    expect(forgePlacement(pod(apart(elsewhere)), WORLD)).toEqual({ spec: {}, left: [], refused: [] });
    expect(forgePlacement(pod(beside(elsewhere)), WORLD).refused).toEqual([
      expect.stringContaining('none of its namespaces is in the foreign cluster'),
    ]);
    const wished = pod({ affinity: { podAffinity: preferred(wish(1, elsewhere)) } });
    expect(forgePlacement(wished, WORLD)).toMatchObject({ refused: [], left: [expect.any(String)] });
  });

  test('selected by labels refuse a hard rule, and let a soft one go', () => {
    const labelled = near(HOST, { namespaceSelector: { matchLabels: { team: 'a' } } });
    expect(forgePlacement(pod(apart(labelled)), WORLD).refused).toHaveLength(1);
    expect(forgePlacement(pod(apart(labelled), 'Soft'), WORLD)).toMatchObject({ spec: {}, refused: [] });
  });

  test('of a pod that returns to where it came from are those that the cluster between has narrowed', () => {
    const term = near(HOST, {
      namespaceSelector: {
        matchLabels: { 'tributary.dev/peer': 'rome' },
        matchExpressions: [{ key: NAME, operator: 'In', values: ['stock'] }],
      },
    });
    const guest = homePod({ spec: apart(term), metadata: { labels: { 'tributary.dev/home-uid': 'x' } } });
    expect(forgePlacement(guest, WORLD).spec).toEqual(apart(near(HOST, chosen('tenant-stock'))));
  });
});

describe('the agent', () => {
  test('makes the pod, and tells which rule does not hold', () => {
    const action = decide(situation({ home: pod(apart(near('rack'), near(HOST))), context: WORLD }));
    expect(action).toMatchObject({
      do: 'create',
      pod: { spec: apart(near(HOST)) },
      notes: [{ reason: 'PlacementNotCarried', message: expect.stringContaining('by rack') }],
    });
  });

  test('says of a rule that no cluster can be told that it is so', () => {
    const labelled = near(HOST, { namespaceSelector: { matchLabels: { team: 'a' } } });
    const reasonOf = (home: Pod): unknown => {
      const action = decide(situation({ home, context: WORLD }));
      return action.do === 'refuse' && action.reason;
    };
    expect(reasonOf(pod(apart(labelled)))).toBe('PlacementNowhere');
    expect(reasonOf(pod({}, undefined, 'no rules'))).toBe('PlacementNowhere');
    expect(reasonOf(pod(beside(near(HOST, { namespaces: ['elsewhere'] }))))).toBe('PlacementNotPossible');
  });

  test('goes by what the webhook wrote where the pod says nothing that is understood', () => {
    const marks = { 'tributary.dev/placement': 'Weich', 'tributary.dev/placement-of-namespace': 'Soft' };
    const home = homePod({ spec: apart(near(HOST)), metadata: { annotations: marks } });
    const soft = { affinity: { podAntiAffinity: preferred(wish(100, near(HOST))) } };
    expect(forgePlacement(home, WORLD).spec).toEqual(soft);
    expect(forgePlacement(pod(apart(near(HOST)), 'soft'), WORLD).spec).toEqual(soft);
  });

  test('tells an unknown choice where no webhook has seen the pod', () => {
    const notesOf = (home: Pod): unknown => {
      const action = decide(situation({ home, context: WORLD }));
      return action.do === 'create' && action.notes.map(({ reason }) => reason);
    };
    const home = pod(apart(near(HOST)), 'Weich');
    expect(notesOf(home)).toEqual(['PlacementUnknown']);
    const annotations = { ...home.metadata.annotations, 'tributary.dev/strategy': 'Remote' };
    expect(notesOf({ ...home, metadata: { ...home.metadata, annotations } })).toEqual([]);
  });

  test('refuses a pod with a hard rule that cannot be said, with what to do', () => {
    const action = decide(situation({ home: pod(apart(near('rack')), 'Hard'), context: WORLD }));
    expect(action).toMatchObject({
      do: 'refuse',
      reason: 'PlacementNotPossible',
      message: expect.stringMatching(/podAntiAffinity by rack .*tributary\.dev\/placement: Soft$/u),
      status: { reason: 'PlacementNotPossible' },
    });
  });
});
