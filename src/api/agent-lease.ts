/** The Lease by which one agent of a virtual node acts at a time. Beside that of its Node, where agents may write Leases. */

export const NODE_LEASES = 'kube-node-lease';
export const AGENT_LEASE_PREFIX = 'tributary-agent.';

/** Of the agent of this Node. */
export const agentLeaseName = (nodeName: string): string => `${AGENT_LEASE_PREFIX}${nodeName}`;
