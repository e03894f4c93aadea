import { describe, expect, test } from '@jest/globals';

import { areaOf, choose } from '../../../../lab/conformance/choice.ts';
import { compare, unexplained, withSecondRun } from '../../../../lab/conformance/score.ts';
import {
  exactly,
  specsOf,
  suiteFailure,
  type GinkgoReport,
  type Spec,
} from '../../../../lab/conformance/specs.ts';

const report = (
  ...specs: { text: string; state: string; node?: string; message?: string }[]
): GinkgoReport[] => [
  {
    SpecReports: specs.map(({ text, state, node = 'It', message }) => ({
      ContainerHierarchyTexts: ['[sig-node] Pods'],
      ContainerHierarchyLabels: [['sig-node']],
      LeafNodeType: node,
      LeafNodeText: text,
      LeafNodeLabels: ['Conformance'],
      State: state,
      ...(message !== undefined && { Failure: { Message: message } }),
    })),
  },
];
const spec = (name: string, state: Spec['state']): Spec => ({ name, state, labels: [], message: '' });

describe('a report of ginkgo', () => {
  test('becomes specs with whole names, labels and how they ended', () => {
    expect(specsOf(report({ text: 'should run', state: 'failed', message: 'no' }))).toEqual([
      {
        name: '[sig-node] Pods should run',
        labels: ['sig-node', 'Conformance'],
        state: 'failed',
        message: 'no',
      },
    ]);
  });

  test.each(['panicked', 'interrupted', 'timedout', 'aborted', 'whatever comes'])(
    'a spec that has %s has failed',
    (state) => expect(specsOf(report({ text: 'a', state }))[0]?.state).toBe('failed'),
  );

  test('tells set-up that failed from specs', () => {
    const reports = report(
      { text: '', state: 'failed', node: 'SynchronizedBeforeSuite', message: 'no cluster' },
      { text: 'a', state: 'skipped' },
    );
    expect(specsOf(reports).map(({ state }) => state)).toEqual(['skipped']);
    expect(suiteFailure(reports)).toBe('no cluster');
    expect(suiteFailure(report({ text: 'a', state: 'failed', message: 'no' }))).toBeUndefined();
  });

  test('an empty one has no specs', () => expect(specsOf([{ SpecReports: null }])).toEqual([]));
});

test('a name is matched exactly, whatever signs it has', () => {
  const name = '[sig-node] Pods should run (a+b)? [Conformance]';
  expect(new RegExp(exactly(name)).test(`Kubernetes e2e suite ${name}`)).toBe(true);
  expect(new RegExp(exactly(name)).test(`${name} more`)).toBe(false);
  expect(new RegExp(exactly('a.c')).test('abc')).toBe(false);
});

describe('the choice', () => {
  const of = (name: string, ...labels: string[]): Spec => ({ name, labels, state: 'passed', message: '' });

  test('is all of Conformance of our areas, without what is left out with a reason', () => {
    const { chosen, leftOut } = choose([
      of('[sig-node] b', 'sig-node', 'Conformance'),
      of('[sig-node] a', 'sig-node', 'Conformance'),
      of('[sig-node] c', 'sig-node'),
      of('[sig-scheduling] d', 'sig-scheduling', 'Conformance'),
      of('[sig-apps] Daemon set [Serial] e', 'sig-apps', 'Conformance'),
    ]);
    expect(chosen).toEqual(['[sig-node] a', '[sig-node] b']);
    expect(leftOut.map(({ name }) => name)).toEqual(['[sig-apps] Daemon set [Serial] e']);
    expect(leftOut[0]?.reason).toMatch(/DaemonSets stay home/);
  });

  test('knows the area of a name', () => expect(areaOf('[sig-node] Pods')).toBe('sig-node'));
});

describe('the score', () => {
  test('is what passes directly and not through the virtual node', () => {
    const outcomes = compare(
      ['f', 'e', 'd', 'c', 'b', 'a'],
      [
        spec('a', 'passed'),
        spec('b', 'passed'),
        spec('c', 'failed'),
        spec('d', 'failed'),
        spec('e', 'skipped'),
      ],
      [
        spec('a', 'passed'),
        spec('b', 'failed'),
        spec('c', 'failed'),
        spec('d', 'passed'),
        spec('e', 'skipped'),
      ],
    );
    expect(outcomes).toEqual({
      passed: ['a'],
      differences: ['b'],
      betterThrough: ['d'],
      failedBoth: ['c', 'f'],
      skipped: ['e'],
    });
  });

  test('a spec that skips itself on one side only is a difference', () => {
    const outcomes = compare(['a'], [spec('a', 'passed')], [spec('a', 'skipped')]);
    expect(outcomes.differences).toEqual(['a']);
  });

  test('what ran again counts, what was not chosen again stays', () => {
    const first = [spec('a', 'failed'), spec('b', 'passed'), spec('c', 'failed')];
    const second = [spec('a', 'passed'), spec('b', 'skipped'), spec('c', 'failed')];
    expect(withSecondRun(first, second).map(({ state }) => state)).toEqual(['passed', 'passed', 'failed']);
  });

  test('names differences that nobody has explained', () => {
    expect(unexplained({ differences: ['a', 'b'] }, new Map([['a', 'a policy']]))).toEqual(['b']);
  });
});
