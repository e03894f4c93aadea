import { expect, test } from '@jest/globals';

import { isAsManifest } from '../../../../src/hosting/tenants/as-manifest.ts';
import { forgeLimits, forgeQuota } from '../../../../src/hosting/tenants/quota.ts';

const stored = (object: object): Parameters<typeof isAsManifest>[0] =>
  ({ ...object, metadata: { name: 'tributary', namespace: 'a', labels: { x: 'y' } } }) as never;
const QUOTA = { cpu: '1000m', memory: '16384Mi', pods: '2000' };

test('amounts that an API server has written in its own form are the same', () => {
  const { spec } = forgeQuota('a', { x: 'y' }, QUOTA);
  const hard = {
    ...spec?.hard,
    'count/endpointslices.discovery.k8s.io': '1k',
    'requests.cpu': '1',
    'requests.memory': '16Gi',
    pods: '2k',
    'count/pods': '20k',
  };
  const manifest = forgeQuota('a', { x: 'y' }, QUOTA);
  expect(isAsManifest(stored({ spec: { hard } }), manifest)).toBe(true);
  for (const other of [{ pods: '2001' }, { 'requests.memory': '16G' }, { secrets: '501' }, { jobs: '1' }])
    expect(isAsManifest(stored({ spec: { hard: { ...hard, ...other } } }), manifest)).toBe(false);
  const { pods: _pods, ...fewer } = hard;
  expect(isAsManifest(stored({ spec: { hard: fewer } }), manifest)).toBe(false);
});

test('default requests, too', () => {
  const requests = { cpu: '0.1', memory: '131072Ki' };
  const manifest = forgeLimits('a', { x: 'y' }, QUOTA, { defaultRequests: requests });
  const [limit] = manifest.spec.limits;
  const as = (cpu: string, memory: string): boolean =>
    isAsManifest(
      stored({ spec: { limits: [{ ...limit, defaultRequest: { ...limit?.defaultRequest, cpu, memory } }] } }),
      manifest,
    );
  expect(as('100m', '128Mi')).toBe(true);
  expect(as('101m', '128Mi')).toBe(false);
  expect(as('100m', '128M')).toBe(false);
});

test('what does not belong to a manifest any more is a difference in quotas and NetworkPolicies only', () => {
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'tributary', namespace: 'a', labels: { x: 'y' } },
    spec: { podSelector: {} },
  };
  expect(isAsManifest(stored({ spec: { podSelector: {} } }), policy)).toBe(true);
  expect(isAsManifest(stored({ spec: { podSelector: {}, policyTypes: ['Ingress'] } }), policy)).toBe(false);
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: policy.metadata };
  expect(isAsManifest(stored({ secrets: [] }), account)).toBe(true);
});
