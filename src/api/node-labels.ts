import {
  LABEL_EXCLUDE_BALANCERS,
  LABEL_NODE_TYPE,
  LABEL_ROLE_VIRTUAL,
  LABEL_VIRTUAL_NODE,
  NODE_TYPE_VIRTUAL,
} from './names.ts';
import type { VirtualNode } from './virtual-node.ts';

export const nodeNameOf = ({ metadata, spec }: VirtualNode): string => spec.nodeName ?? metadata.name;

/**
 * The labels that a VirtualNode gives its Node. The user's labels win over the defaults of the platform, but not over those
 * that say what this node is.
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
    [LABEL_ROLE_VIRTUAL]: '',
  };
}
