import { expect, test } from '@jest/globals';
import { forgeLimits, forgeQuota, parseQuota } from '../../../../src/hosting/tenants/quota.ts';

test.each([
  ['', { cpu: '4', memory: '8Gi', pods: '100' }],
  ['cpu=2', { cpu: '2', memory: '8Gi', pods: '100' }],
  ['pods=7, nvidia.com/gpu=1', { cpu: '4', memory: '8Gi', pods: '7', 'nvidia.com/gpu': '1' }],
])('reads %j', (text, quota) => {
  expect(parseQuota(text)).toEqual(quota);
});

test.each(['cpu', 'cpu=', 'cpu=-1', 'cpu=1=2', '=1', 'cpu=NaN', 'pods=0', 'pods=1.5', 'pods=1e9', 'cp u=1'])(
  'refuses %j',
  (text) => {
    expect(() => parseQuota(text)).toThrow(/^quota /);
  },
);

test('requests are bounded, finished pods as well, and what a peer has no right to is zero', () => {
  const quota = {
    ...parseQuota('cpu=2,pods=5,nvidia.com/gpu=1,secrets=9,limits.memory=4Gi'),
    'count/jobs.batch': '0',
  };
  expect(forgeQuota('a', {}, quota).spec?.hard).toEqual({
    configmaps: '500',
    secrets: '9',
    services: '250',
    'count/endpointslices.discovery.k8s.io': '1000',
    'count/ingresses.networking.k8s.io': '100',
    'services.loadbalancers': '0',
    'services.nodeports': '0',
    persistentvolumeclaims: '0',
    'requests.storage': '0',
    'count/pods': '50',
    'requests.cpu': '2',
    'requests.memory': '8Gi',
    pods: '5',
    'requests.nvidia.com/gpu': '1',
    'limits.memory': '4Gi',
    'count/jobs.batch': '0',
  });
});

test.each([
  ['', undefined, { cpu: '0', memory: '0' }, undefined],
  [
    'limits.memory=4Gi,ephemeral-storage=10Gi',
    undefined,
    { cpu: '0', memory: '0', 'ephemeral-storage': '0' },
    { memory: '512Mi' },
  ],
  ['', { cpu: '0.05', 'ephemeral-storage': '1Gi' }, { cpu: '50m', memory: '0' }, undefined],
  [
    'ephemeral-storage=10Gi',
    { memory: '1024Ki', 'ephemeral-storage': '1Gi' },
    { cpu: '0', memory: '1Mi', 'ephemeral-storage': '1Gi' },
    undefined,
  ],
])(
  'containers that name nothing get defaults for what the quota counts, zero unless more is said: %j, %j',
  (text, given, defaultRequest, limits) => {
    expect(forgeLimits('a', {}, parseQuota(text), { defaultRequests: given }).spec.limits).toEqual([
      { type: 'Container', defaultRequest, ...(limits && { default: limits }) },
    ]);
  },
);

test('a default request that is no quantity is refused', () => {
  expect(() => forgeLimits('a', {}, parseQuota(''), { defaultRequests: { cpu: 'much' } })).toThrow(
    /default requests cannot be read/,
  );
});
