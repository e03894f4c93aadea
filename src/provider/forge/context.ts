import type { HomeApiServer } from '../../api/virtual-node.ts';

/** What a translation between the two clusters needs to know beyond the pod itself. */
export interface ForgeContext {
  virtualNode: string;
  nodeName: string;
  /** Address of the virtual node: what a pod shows as its hostIP. */
  nodeAddress: string;
  /** The namespace in the foreign cluster that stands for the pod's home namespace. */
  tenantNamespace: string;
  homeApiServer?: HomeApiServer;
  /** A foreign pod's address as the home cluster sees it; the identity while no network joins the two. */
  homeViewOf: (foreignAddress: string) => string;
}
