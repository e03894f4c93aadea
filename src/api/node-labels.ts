import { LABEL_EXCLUDE_BALANCERS, LABEL_NODE_TYPE, LABEL_VIRTUAL_NODE, NODE_TYPE_VIRTUAL } from './names.ts';
import type { VirtualNode } from './virtual-node.ts';

export const nodeNameOf = ({ metadata, spec }: VirtualNode): string => spec.nodeName ?? metadata.name;

/**
 * The labels that a VirtualNode gives its Node. What the user says of the platform wins; the rest says what this node
 * is.
 */
export function nodeLabelsOf(virtualNode: VirtualNode): Record<string, string> {
  const { metadata, spec } = virtualNode;
  return {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'node.kubernetes.io/instance-type': 'tributary',
    ...spec.labels,
    'kubernetes.io/hostname': nodeNameOf(virtualNode),
    [LABEL_NODE_TYPE]: NODE_TYPE_VIRTUAL,
    [LABEL_VIRTUAL_NODE]: metadata.name,
    [LABEL_EXCLUDE_BALANCERS]: 'true',
  };
}
