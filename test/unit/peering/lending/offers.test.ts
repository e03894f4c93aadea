import { expect, test } from '@jest/globals';
import type { PeeringRequest, PeeringRequestStatus } from '../../../../src/api/peering-request.ts';
import { promisesOf } from '../../../../src/peering/lending/offers.ts';

const request = (name: string, status: PeeringRequestStatus): PeeringRequest => ({
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { clusterID: name, namespaces: [] },
  status,
});
const contract = (generation: number, cpu: string): { text: string } => ({
  text: JSON.stringify({ generation, resources: { cpu }, namespaces: [] }),
});

test('a contract that somebody has spoilt counts as was promised, and keeps no other peer from its offer', () => {
  const requests = [
    request('milan', { contract: { text: 'spoilt' }, promised: { cpu: '3' } }),
    request('rome', { contract: contract(1, '2') }),
    request('oslo', {}),
  ];
  expect(promisesOf(requests, [], () => undefined)).toEqual(
    new Map([
      ['milan', { resources: { cpu: '3' } }],
      ['rome', { resources: { cpu: '2' } }],
    ]),
  );
});

test('an offer that waits for its answer counts where it is larger', () => {
  const requests = [request('rome', { contract: contract(1, '2') })];
  const latest = { generation: 2, resources: { cpu: '5', memory: '1Gi' } } as never;
  expect(promisesOf(requests, [], () => latest).get('rome')).toEqual({
    resources: { cpu: '5', memory: '1Gi' },
  });
});
