/** Taints of nodes here, by what pods of peers may do about them. */

/** An API server gives every pod tolerations of these (DefaultTolerationSeconds), with the effect NoExecute. */
export const NODE_LIFE_TAINTS: readonly string[] = [
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
];

/** Beginnings of keys that no word of a policy opens to peers: control planes, cordoned nodes, and whole foreign clusters. */
export const NEVER_TOLERATED: readonly string[] = [
  'node-role.kubernetes.io/',
  'node.kubernetes.io/unschedulable',
  'tributary.dev/',
];
