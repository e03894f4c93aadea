import type { Toleration } from './wire.ts';

/** What every pod gets that a home sends to one foreign cluster. What the pod itself says comes before it. */
export interface PodAdditions {
  /** Labels of nodes over there. */
  nodeSelector?: Record<string, string>;
  tolerations?: Toleration[];
  /** For pods that name none. */
  runtimeClassName?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}
