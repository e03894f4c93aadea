import { namespaced, type ResourceType } from './resources.ts';
import type { KubeObject } from './wire.ts';

/** Usage of one pod as metrics.k8s.io reports it, under the names and UID of home. */
export interface PodSample {
  namespace: string;
  name: string;
  uid: string;
  /** Start of the pod. */
  startTimeMs?: number;
  /** End of the window over which the rates are averages. */
  timestampMs: number;
  windowMs: number;
  containers: ContainerSample[];
}

export interface ContainerSample {
  name: string;
  /** Quantities, for example `1234567n` and `64Mi`. */
  cpu: string;
  memory: string;
  /** Where the foreign metrics server tells it. */
  swap?: string;
  /** Start of the present run of the container. */
  startTimeMs?: number;
}

/** A pod with containers that run, as its status says. */
export interface RunningPod extends Pick<PodSample, 'namespace' | 'name' | 'uid'> {
  startTimeMs: number;
  containers: { name: string; startTimeMs: number }[];
}

/** metrics.k8s.io/v1beta1, as metrics-server serves it. */
export interface PodMetrics extends KubeObject {
  timestamp?: string;
  window?: string;
  containers?: { name: string; usage?: { cpu?: string; memory?: string; swap?: string } }[];
}

export const podMetrics: ResourceType<PodMetrics> = namespaced(
  'metrics.k8s.io/v1beta1',
  'PodMetrics',
  'pods',
);
