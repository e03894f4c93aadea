import { expect, test } from '@jest/globals';
import { CONDITION_OFFLOADED } from '../../../../src/api/names.ts';
import type { OwnerReference, Pod } from '../../../../src/api/wire.ts';
import { isToEnd, shortagesOf } from '../../../../src/provider/pods/shortage.ts';
import { homePod, NOW } from '../support/pods.ts';

test.each<[string, string, ReturnType<typeof shortagesOf>]>([
  [
    'a ResourceQuota',
    'pods "web" is forbidden: exceeded quota: tributary, requested: requests.cpu=500m, used: requests.cpu=3, limited: requests.cpu=3200m',
    [{ resource: 'cpu', left: 200n }],
  ],
  [
    'several amounts: as a kubelet, pods first',
    'exceeded quota: tributary, requested: pods=1,requests.a.com/gpu=1,requests.memory=1Gi, used: pods=9,requests.a.com/gpu=2,requests.memory=1Gi, limited: pods=9,requests.a.com/gpu=2,requests.memory=1025Mi',
    [
      { resource: 'pods', left: 0n },
      { resource: 'memory', left: 1048576000n },
      { resource: 'a.com/gpu', left: 0n },
    ],
  ],
  [
    'the sum over all namespaces',
    'admission webhook "quota.guests.tributary.dev" denied the request: exceeded quota of peer rome over all its namespaces: requested cpu=2, used cpu=3, granted cpu=4',
    [{ resource: 'cpu', left: 1000n }],
  ],
  [
    'finished pods that are kept',
    'exceeded quota: tributary, requested: count/pods=1, used: count/pods=1k, limited: count/pods=1k',
    [{ resource: 'pods', left: 0n }],
  ],
  [
    'less than is used: the share was cut',
    'exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=2',
    [{ resource: 'cpu', left: 0n }],
  ],
  ['other words', 'exceeded quota', [{ resource: 'pods', left: 0n }]],
  [
    'a resource that no node counts',
    'exceeded quota: q, requested: limits.cpu=1,requests.memory=1k, used: limits.cpu=4,requests.memory=1k, limited: limits.cpu=4,requests.memory=2k',
    [{ resource: 'memory', left: 1_000_000n }],
  ],
  [
    'a peer that writes into the terminal',
    'exceeded quota: q, requested: requests.\u001B[2Jcpu=1, used: a=1, limited: a=1',
    [{ resource: 'pods', left: 0n }],
  ],
  [
    'no quantities',
    'exceeded quota: q, requested: requests.cpu=much, used: x=-1, limited: =1,,',
    [{ resource: 'pods', left: 0n }],
  ],
  [
    'no end of it',
    `exceeded quota: q, requested: ${'requests.cpu=1,'.repeat(9999)}, used: a=1, limited: a=1`,
    [{ resource: 'pods', left: 0n }],
  ],
])('reads what is left in the words of %s', (_, words, shortages) => {
  expect(shortagesOf(words)).toEqual(shortages);
});

const owner = (kind: string, apiVersion = 'apps/v1'): OwnerReference => ({
  apiVersion,
  kind,
  name: 'o',
  uid: 'o',
  controller: true,
});
const refused = (given: OwnerReference | undefined, reason = 'ExceededQuota'): Pod =>
  homePod({
    metadata: given ? { ownerReferences: [given] } : {},
    status: {
      conditions: [{ type: CONDITION_OFFLOADED, status: 'False', reason, lastTransitionTime: NOW }],
    },
  });
const after = (ms: number): number => Date.parse(NOW) + ms;

test.each<[string, Pod, number, boolean]>([
  ['of a ReplicaSet, at once', refused(owner('ReplicaSet')), 4999, false],
  ['of a ReplicaSet', refused(owner('ReplicaSet')), 5000, true],
  ['of a StatefulSet', refused(owner('StatefulSet')), 5000, true],
  ['of a Job', refused(owner('Job', 'batch/v1')), 5000, true],
  ['of a ReplicationController', refused(owner('ReplicationController', 'v1')), 5000, true],
  ['of another controller', refused(owner('Workflow', 'argoproj.io/v1alpha1')), 1e9, false],
  ['of another ReplicaSet', refused(owner('ReplicaSet', 'example.com/v1')), 1e9, false],
  ['of nobody', refused(undefined), 1e9, false],
  ['refused for another reason', refused(owner('ReplicaSet'), 'Forbidden'), 1e9, false],
  [
    'refused for the first time',
    homePod({ metadata: { ownerReferences: [owner('ReplicaSet')] } }),
    1e9,
    false,
  ],
])('whether a pod ends: %s', (_, pod, ms, ends) => {
  expect(isToEnd(pod, after(ms))).toBe(ends);
});
