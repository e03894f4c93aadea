import { expect, test } from '@jest/globals';
import type { Container, PodSpec } from '../../../../src/api/wire.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { CONTEXT, homePod } from '../support/pods.ts';

type Resources = NonNullable<Container['resources']>;

const container = (name: string, resources?: Resources): Container => ({
  name,
  image: 'web:1',
  ...(resources && { resources }),
});
const requestsOf = (spec: Partial<PodSpec>): unknown[] => {
  const { containers, initContainers = [] } = forgePod(homePod({ spec }), CONTEXT).spec as PodSpec;
  return [...containers, ...initContainers].map(({ resources }) => resources?.requests);
};
const NOTHING = { cpu: '0', memory: '0', 'ephemeral-storage': '0' };

test('one container is left to the defaults of the provider', () => {
  expect(requestsOf({ containers: [container('main')] })).toEqual([undefined]);
});

test('of several that request nothing, the first one', () => {
  const containers = [container('main'), container('side')];
  const initContainers = [container('init')];
  expect(requestsOf({ containers, initContainers })).toEqual([undefined, NOTHING, NOTHING]);
});

test.each<[string, Partial<PodSpec>, unknown[]]>([
  [
    'of some containers',
    { containers: [container('main'), container('side', { requests: { cpu: '1' } })] },
    [{ cpu: '0' }, { ...NOTHING, cpu: '1' }],
  ],
  [
    'of an init container',
    { containers: [container('main')], initContainers: [container('init', { requests: { memory: '1Gi' } })] },
    [{ memory: '0' }, { ...NOTHING, memory: '1Gi' }],
  ],
  [
    'of the pod as a whole',
    { containers: [container('main')], resources: { requests: { cpu: '1' } } },
    [{ cpu: '0' }],
  ],
  [
    'by a limit, from which the API server makes one',
    { containers: [container('main'), container('side', { limits: { cpu: '1' } })] },
    [{ cpu: '0' }, { memory: '0', 'ephemeral-storage': '0' }],
  ],
])('none is left to them of what is requested: %s', (_, spec, requests) => {
  expect(requestsOf(spec)).toEqual(requests);
});

test('limits, and requests of other resources, stay', () => {
  const resources = { limits: { 'a.com/gpu': '1' }, requests: { 'a.com/gpu': '1', cpu: '1' } };
  const { containers } = forgePod(
    homePod({ spec: { containers: [container('main', resources), container('side')] } }),
    CONTEXT,
  ).spec as PodSpec;
  expect(containers[0]?.resources).toEqual(resources);
});
