import type {
  HeldOff,
  NamespaceOffloading,
  NamespaceOffloadingSpec,
  OffloadedCluster,
} from '../../../../src/api/namespace-offloading.ts';
import { CONDITION_OFFLOADED } from '../../../../src/api/names.ts';
import type { OwnerReference, Pod, PodStatus } from '../../../../src/api/wire.ts';

export const NOW: string = '2026-01-01T00:00:00Z';
export const NOW_MS: number = Date.parse(NOW);
/** So many seconds after NOW. */
export const at = (seconds: number): string =>
  `${new Date(NOW_MS + seconds * 1000).toISOString().slice(0, 19)}Z`;

export const REPLICA_SET: OwnerReference = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: 'web-1',
  uid: 'r1',
  controller: true,
};

export function refused(reason = 'Unschedulable', since: string = NOW): PodStatus {
  const condition = {
    type: CONDITION_OFFLOADED,
    status: 'False',
    reason,
    message: 'no room',
    lastTransitionTime: since,
  };
  return { phase: 'Pending', conditions: [condition] };
}

export function boundPod(metadata: Partial<Pod['metadata']> = {}, status: PodStatus = refused()): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-1-a',
      namespace: 'shop',
      uid: 'u1',
      resourceVersion: '7',
      creationTimestamp: NOW,
      ...metadata,
    },
    spec: { nodeName: 'milan', containers: [{ name: 'main', image: 'web:1' }] },
    status,
  };
}

export function cluster(virtualNode: string, phase: OffloadedCluster['phase'] = 'Ready'): OffloadedCluster {
  return { cluster: `id-${virtualNode}`, virtualNodes: [virtualNode], phase, reason: 'AsExpected' };
}

export function offloading(
  spec: NamespaceOffloadingSpec = {},
  {
    clusters = [cluster('milan')],
    heldOff = [],
  }: { clusters?: OffloadedCluster[]; heldOff?: HeldOff[] } = {},
): NamespaceOffloading {
  return {
    metadata: {
      name: 'offloading',
      namespace: 'shop',
      uid: 'o1',
      resourceVersion: '3',
      creationTimestamp: NOW,
    },
    spec,
    status: { clusters, heldOff },
  };
}
