/** How what is decided gets into a pod: operations of a JSON Patch. Pure. */
import type { JsonPatchOperation } from '../../api/admission.ts';
import { type PREFERRED, type REQUIRED } from '../../api/placement.ts';
import type { Pod } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import type { NodeTerm } from './node-terms.ts';
import type { PreferredTerm } from './prefer.ts';
import { TOLERATION } from './strategy.ts';

export const tolerate = ({ spec }: Pod): JsonPatchOperation =>
  spec?.tolerations === undefined || spec.tolerations === null
    ? { op: 'add', path: '/spec/tolerations', value: [TOLERATION] }
    : { op: 'add', path: '/spec/tolerations/-', value: TOLERATION };

interface NodeAffinity {
  [REQUIRED]?: { nodeSelectorTerms: NodeTerm[] };
  [PREFERRED]?: PreferredTerm[];
}

/** Adds to the innermost object that exists; `add` replaces a member of the same name (RFC 6902, section 4.1). */
export function affinity({ spec }: Pod, nodeAffinity: NodeAffinity): JsonPatchOperation[] {
  const path = '/spec/affinity';
  if (Object.keys(nodeAffinity).length === 0) return [];
  const before = spec?.affinity ?? undefined;
  if (before === undefined) return [{ op: 'add', path, value: { nodeAffinity } }];
  if ((before.nodeAffinity ?? undefined) === undefined) {
    return [{ op: 'add', path: `${path}/nodeAffinity`, value: nodeAffinity }];
  }
  return Object.entries(nodeAffinity).map(([name, value]: [string, unknown]) => ({
    op: 'add',
    path: `${path}/nodeAffinity/${name}`,
    value,
  }));
}

/** Whatever the pod has said itself; undefined: nothing is to be said. */
export function record({ metadata }: Pod, marks: Record<string, string | undefined>): JsonPatchOperation[] {
  const { annotations } = metadata;
  if (annotations === undefined || annotations === null) {
    return [{ op: 'add', path: '/metadata/annotations', value: present(marks) }];
  }
  return Object.entries(marks)
    .filter(([key, value = '']) => (annotations[key] ?? '') !== value)
    .map(([key, value = '']) => {
      const path = `/metadata/annotations/${key.replaceAll('/', '~1')}`;
      return { op: 'add', path, value };
    });
}
