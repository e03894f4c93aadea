import { isClusterNamespace } from '../api/cluster-namespaces.ts';
import { LABEL_PEER } from '../api/names.ts';
import type { KubeObject } from '../api/wire.ts';

/** Why a namespace never leaves this cluster; undefined: it may. Pure. */
export function refusalOf({ metadata }: KubeObject, systemNamespace: string): string | undefined {
  const { name, labels } = metadata;
  if (isClusterNamespace(name, systemNamespace)) {
    return `namespace ${name} holds parts of this cluster and never leaves it; offload a namespace of its own for your applications`;
  }
  const peer = labels?.[LABEL_PEER];
  if (peer !== undefined) {
    return `namespace ${name} belongs to the peer ${peer}, which runs its pods here; what a peer brings is not lent on`;
  }
  return undefined;
}
