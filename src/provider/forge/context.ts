import { ANNOTATION_SHARING_POLICY } from '../../api/names.ts';
import { nodeLabelsOf } from '../../api/node-labels.ts';
import type { PodAdditions } from '../../api/pod-additions.ts';
import type { NetworkState } from '../../api/tunnel.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import { present } from '../../lib/fields.ts';
import type { Pod } from '../../api/wire.ts';
import type { HomeApiServerPlace } from '../home-api-server.ts';
import type { HomeDnsPlace } from '../home-dns.ts';
import type { NetworkView } from '../network-view.ts';

/** What a translation between the two clusters needs to know beyond the pod itself. */
export interface ForgeContext {
  virtualNode: string;
  nodeName: string;
  /** Address of the virtual node: what a pod shows as its hostIP. */
  nodeAddress: string;
  /** The namespace in the foreign cluster that stands for the pod's home namespace. */
  tenantNamespace: string;
  /** All namespaces that the virtual node looks after: name at home, name over there. */
  tenants?: () => Iterable<readonly [home: string, tenant: string]>;
  /** Whether the Node bears a label. */
  nodeHas?: (label: string) => boolean;
  /** PriorityClasses that pods may name over there. */
  priorityClasses?: readonly string[];
  /** What every pod gets. */
  podAdditions?: PodAdditions;
  homeApiServer?: HomeApiServerPlace;
  /** Why there is none, where there is none. */
  noHomeApiServer?: string;
  /** The DNS that pods over there ask; undefined: that of their cluster. */
  homeDns?: HomeDnsPlace;
  /** Why they do not ask ours although it is chosen. */
  noHomeDns?: string;
  /** The provider's, by its name; undefined where the tenant was made by hand. */
  sharingPolicy?: string;
  /** By NetworkPolicies of home: labels of the pod over there, null where there is to be none; undefined: not known yet. */
  policyMarks?: (home: Pod) => Readonly<Record<string, 'true' | null>> | undefined;
  /** Of the network between the two clusters. */
  network: NetworkState['kind'];
  /** Whether the foreign cluster counts as away: nothing has answered for the time of grace. */
  isAway?: boolean;
  homeViewOf: NetworkView['homeViewOf'];
  /** The address at home of a pod over there that was placed back into the home cluster: its UID, and its address over there. */
  returnedTo?: (uid: string, address: string) => string | undefined;
  /** Whether such a pod is ready: its UID over there, and its address at home. Undefined: there is none. */
  isReturnedReady?: (uid: string, address: string) => boolean | undefined;
}

/** Pure: what the VirtualNode says. */
export function saidBy(
  virtualNode: VirtualNode,
): Pick<ForgeContext, 'sharingPolicy' | 'nodeHas' | 'podAdditions' | 'priorityClasses'> {
  const { podAdditions, priorityClasses } = virtualNode.spec;
  const sharingPolicy = virtualNode.metadata.annotations?.[ANNOTATION_SHARING_POLICY];
  return {
    ...present({ sharingPolicy, podAdditions, priorityClasses }),
    nodeHas: (label) => Object.hasOwn(nodeLabelsOf(virtualNode), label),
  };
}
