import type { Advertisement } from '../../api/advertisement.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { Course } from './course.ts';
import type { Facts } from './facts.ts';

/** One provider whose pods are to run, as it stands now. */
export interface Work {
  clusterID: string;
  facts: Facts;
  course: Extract<Course, { kind: 'use' }>;
  advertisement: Advertisement;
  /** VirtualNodes that were made because of it. */
  ours: readonly VirtualNode[];
  signal: AbortSignal;
}

export const hasReason = ({ status }: VirtualNode, type: string, reason: string): boolean =>
  status?.conditions?.some((one) => one.type === type && one.status === 'False' && one.reason === reason) ??
  false;
