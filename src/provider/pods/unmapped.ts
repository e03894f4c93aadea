import {
  ANNOTATION_STRATEGY,
  LABEL_CLUSTER,
  LABEL_OFFLOAD,
  LABEL_PROVIDER,
  OFFLOADED_REASONS,
} from '../../api/names.ts';
import { asksForItself, homeAdvice } from '../../api/sent-abroad.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import type { Refusal } from './refusal.ts';

/** For people: which virtual node a pod is on, and who says which namespaces it has. */
export interface NodeIdentity {
  virtualNode: string;
  /** What the foreign cluster is called here. */
  cluster: string;
  /** Whether peering writes the VirtualNode; people write the others. */
  isPeered: boolean;
}

export function nodeIdentity({ metadata, spec }: VirtualNode): NodeIdentity {
  const { name, labels = {} } = metadata;
  return {
    virtualNode: name,
    cluster: spec.labels?.[LABEL_CLUSTER] ?? name,
    isPeered: labels[LABEL_PROVIDER] !== undefined,
  };
}

/** Why a pod does not begin in a namespace that the virtual node does not have, and what to do. Pure. */
export function refusalUnmapped(
  home: Pod,
  { virtualNode, cluster, isPeered }: NodeIdentity,
  isLeaving: boolean,
): Refusal {
  const { namespace = '', annotations = {} } = home.metadata;
  const { namespaceNotOffloaded, namespaceBeingMade } = OFFLOADED_REASONS;
  if (isLeaving) {
    const message = `namespace "${namespace}" leaves ${cluster}, so nothing is begun there${toRunHome(home)}`;
    return { reason: namespaceNotOffloaded, message };
  }
  if (!isPeered) {
    const message = `namespace "${namespace}" is not offloaded: add it to spec.namespaces of VirtualNode ${virtualNode}, which was made by hand`;
    return { reason: namespaceNotOffloaded, message };
  }
  // The webhook has let it out, so the namespace has been asked for, or is about to be.
  if (annotations[ANNOTATION_STRATEGY] !== undefined) {
    const message = `namespace "${namespace}" is being made by ${cluster}, and the pod waits for it; if that lasts: kubectl -n ${namespace} describe namespaceoffloading`;
    return { reason: namespaceBeingMade, message };
  }
  const message = `namespace "${namespace}" is not offloaded to ${cluster}; if it is to be: kubectl label namespace ${namespace} ${LABEL_OFFLOAD}=true${toRunHome(home)}`;
  return { reason: namespaceNotOffloaded, message };
}

/** The scheduler has sent it here by what it says itself. One that the webhook has let in comes home by others. */
const toRunHome = (home: Pod): string =>
  home.metadata.annotations?.[ANNOTATION_STRATEGY] === undefined && asksForItself(home)
    ? `. To run it at home, ${homeAdvice(home)}`
    : '';
