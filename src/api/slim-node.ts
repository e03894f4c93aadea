import { hardTaints } from './taints.ts';
import type { Node } from './wire.ts';

/**
 * Of a Node what this cluster's own parts go by: what it lends, and where it is on the network. Heartbeats, annotations and
 * sizes of images go. There is one form for all who watch Nodes, so that one watch does for all.
 */
export function slimNode({ metadata, spec, status }: Node): Node {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels } = metadata;
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(labels && { labels }),
    },
    spec: slimSpec(spec ?? {}),
    status: slimStatus(status ?? {}),
  };
}

function slimSpec({
  unschedulable,
  taints,
  podCIDR,
  podCIDRs,
}: NonNullable<Node['spec']>): NonNullable<Node['spec']> {
  return {
    ...(unschedulable !== undefined && { unschedulable }),
    ...(taints && { taints: hardTaints(taints).map(({ timeAdded: _time, ...taint }) => taint) }),
    ...(podCIDR !== undefined && { podCIDR }),
    ...(podCIDRs && { podCIDRs }),
  };
}

function slimStatus(status: NonNullable<Node['status']>): NonNullable<Node['status']> {
  const { addresses, allocatable, images, declaredFeatures, nodeInfo, conditions = [] } = status;
  return {
    ...(addresses && { addresses }),
    ...(allocatable && { allocatable }),
    ...(declaredFeatures && { declaredFeatures }),
    ...(images && { images: images.map(({ names = [] }) => ({ names })) }),
    ...(nodeInfo && { nodeInfo }),
    // Without the times of heartbeats, which say nothing here.
    conditions: conditions.map(({ type, status: is }) => ({ type, status: is })),
  };
}
