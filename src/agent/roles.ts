/**
 * Builds everything: a role is a list of components, in the order in which they start, and this is the list of
 * roles. There is no `if (role)` anywhere else.
 */
import { startAll, startCluster } from './cluster.ts';
import { startGateway } from './gateway.ts';
import { startNode } from './node.ts';
import type { Agent, AgentParts } from './parts.ts';
import { startPeer } from './peer.ts';

export type Role = 'all' | 'cluster' | 'gateway' | 'node' | 'peer';

export const ROLES: Readonly<Record<Role, (parts: AgentParts, signal: AbortSignal) => Promise<Agent>>> = {
  all: startAll,
  cluster: startCluster,
  gateway: startGateway,
  node: startNode,
  peer: startPeer,
};
