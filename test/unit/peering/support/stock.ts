import type { CountedPod } from '../../../../src/api/pod-requests.ts';
import type { SharingPolicy, SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import { slimNode } from '../../../../src/api/slim-node.ts';
import type { Node, Pod, ResourceList } from '../../../../src/api/wire.ts';
import { keepPod } from '../../../../src/peering/offer/stock-watcher.ts';
import { type Stock, type StockParts, takeStock } from '../../../../src/peering/offer/stock.ts';

const CREATED = '2026-01-01T00:00:00Z';

export interface NodeOptions {
  allocatable?: ResourceList;
  labels?: Record<string, string>;
  architecture?: string;
  kubeletVersion?: string;
  images?: string[];
  declaredFeatures?: string[];
  unschedulable?: boolean;
  taint?: string;
  conditions?: Record<string, string>;
}

/** A real node, Ready, with 4 CPUs, 8 GiB and room for 100 pods, unless told otherwise. */
export function aNode(name: string, options: NodeOptions = {}): Node {
  const { allocatable = { cpu: '4', memory: '8Gi', pods: '100' }, labels = {}, taint } = options;
  const conditions = { Ready: 'True', ...options.conditions };
  return {
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: CREATED, labels },
    spec: {
      ...(options.unschedulable === true && { unschedulable: true }),
      ...(taint !== undefined && { taints: [{ key: 'a', effect: taint }] }),
    },
    status: {
      allocatable,
      conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })),
      nodeInfo: {
        architecture: options.architecture ?? 'amd64',
        operatingSystem: 'linux',
        kubeletVersion: options.kubeletVersion ?? 'v1.36.3',
      } as NonNullable<NonNullable<Node['status']>['nodeInfo']>,
      images: (options.images ?? []).map((image) => ({ names: [image, `${image}@sha256:0`] })),
      ...(options.declaredFeatures && { declaredFeatures: options.declaredFeatures }),
    },
  };
}

export function aPod(key: string, node: string, requests: ResourceList): Pod {
  const [namespace = '', name = ''] = key.split('/');
  return {
    metadata: { name, namespace, uid: key, resourceVersion: '1', creationTimestamp: CREATED },
    spec: { nodeName: node, containers: [{ name: 'main', resources: { requests } }] },
    status: { phase: 'Running' },
  };
}

export interface StockOptions extends Partial<Omit<StockParts, 'nodes' | 'pods' | 'peerOf'>> {
  /** Tenant namespaces, each with its peer. */
  tenants?: Record<string, string>;
}

/** The stock, from objects as the wire brings them. */
export function stockOf(nodes: Node[], pods: Pod[] = [], options: StockOptions = {}): Stock {
  const { tenants = {}, storageClasses = [], ingressClasses = [], priorityClasses = [] } = options;
  return takeStock({
    nodes: nodes.map(slimNode),
    pods: pods.flatMap((pod) => keepPod(pod as unknown as CountedPod) ?? []),
    peerOf: (namespace) => tenants[namespace],
    storageClasses,
    ingressClasses,
    priorityClasses,
  });
}

/** A policy that lends everything to anyone, unless told otherwise. */
export const lendingPolicy = (spec: Partial<SharingPolicySpec> = {}): SharingPolicy => ({
  metadata: { name: 'p', uid: 'p', resourceVersion: '1', creationTimestamp: CREATED },
  spec: { peers: { anyone: true }, sharePercent: 100, ...spec },
});
