/** The questions of API servers about pods of offloaded namespaces, and where they are told to ask. */
import {
  type Admission,
  mutatingWebhookConfigurations,
  type Question,
  WEBHOOK_CONFIGURATION,
  WEBHOOK_PATH,
} from '../../api/admission.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import type { NamespaceOffloading, PodStrategy } from '../../api/namespace-offloading.ts';
import { nodeLabelsOf } from '../../api/node-labels.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { AdmissionPart } from '../../kube/webhook-configuration.ts';
import type { Clock } from '../../lib/clock.ts';
import { admit } from './decide.ts';
import type { SelectedNode } from './avoid.ts';
import { forgeWebhooks } from './webhook-configuration.ts';

/** What is in effect now, from caches. */
interface Offloadings {
  offloadingOf(namespace: string): NamespaceOffloading | undefined;
  all(): NamespaceOffloading[];
  selectedBy(offloading: NamespaceOffloading): readonly VirtualNode[];
  onChange(listener: () => void): () => void;
}

/** Pods of offloaded namespaces. */
export function offloadingAdmission(
  offloadings: Offloadings,
  { clock, systemNamespace }: { clock: Clock; systemNamespace: string },
): AdmissionPart {
  const decide = ({ pod, namespace, about }: Question): Admission => {
    if (about !== 'Create') return { patch: [], warnings: [] };
    const offloading = offloadings.offloadingOf(namespace);
    const selected = offloading === undefined ? [] : offloadings.selectedBy(offloading);
    const failedNodes = failedNodesOf(offloading, selected);
    return admit(pod, { offloading, failedNodes, selected: selected.map(placeOf), nowMs: clock.now() });
  };
  return {
    components: [],
    hooks: [{ path: WEBHOOK_PATH, decide }],
    configurations: (place) => [
      {
        type: mutatingWebhookConfigurations,
        name: WEBHOOK_CONFIGURATION,
        wanted: () =>
          forgeWebhooks({
            namespaces: byStrategy(offloadings.all(), systemNamespace),
            ...place(WEBHOOK_PATH),
          }),
      },
    ],
    onChange: (listener) => offloadings.onChange(listener),
  };
}

const placeOf = (virtualNode: VirtualNode): SelectedNode => ({
  name: virtualNode.metadata.name,
  labels: nodeLabelsOf(virtualNode),
});

/**
 * Pure. What is being removed takes no new pods abroad. The cluster's own parts are never held up: they could not bring
 * back the one whose answer they wait for.
 */
export function byStrategy(
  offloadings: readonly NamespaceOffloading[],
  systemNamespace: string,
): Record<PodStrategy, string[]> {
  const found: Record<PodStrategy, string[]> = { Local: [], LocalAndRemote: [], Remote: [] };
  for (const { metadata, spec } of offloadings) {
    const { namespace = '', deletionTimestamp } = metadata;
    const isSystem = isClusterNamespace(namespace, systemNamespace);
    if (deletionTimestamp !== undefined || isSystem || namespace === '') continue;
    found[spec.podStrategy ?? 'LocalAndRemote'].push(namespace);
  }
  return found;
}

/** Pure: virtual nodes that have failed to take the namespace, or are about to lose it. */
export function failedNodesOf(
  offloading: NamespaceOffloading | undefined,
  selected: readonly VirtualNode[],
): string[] {
  const names = new Set(selected.map(({ metadata }) => metadata.name));
  return (offloading?.status?.clusters ?? []).flatMap(({ phase, virtualNodes }) =>
    phase === 'Failed' || phase === 'Ending' ? virtualNodes : virtualNodes.filter((name) => !names.has(name)),
  );
}
