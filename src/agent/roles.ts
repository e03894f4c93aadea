/**
 * Builds everything: a role is a list of components, in the order in which they start, and this is the list of
 * roles. There is no `if (role)` anywhere else.
 */
import type { Agent, AgentParts } from './parts.ts';

export type Role = 'all' | 'cluster' | 'gateway' | 'node' | 'peer' | 'peers';

type StartRole = (parts: AgentParts, signal: AbortSignal) => Promise<Agent>;

/** A process loads the code of its own role only: that of all roles would be most of what `node` holds in memory. */
export const ROLES: Readonly<Record<Role, StartRole>> = {
  all: async (parts, signal) => (await import('./all.ts')).startAll(parts, signal),
  cluster: async (parts, signal) => (await import('./cluster.ts')).startCluster(parts, signal),
  gateway: async (parts, signal) => (await import('./gateway.ts')).startGateway(parts, signal),
  node: async (parts, signal) => (await import('./node.ts')).startNode(parts, signal),
  peer: async (parts, signal) => (await import('./peer.ts')).startPeer(parts, signal),
  peers: async (parts, signal) => (await import('./peers.ts')).startPeers(parts, signal),
};
