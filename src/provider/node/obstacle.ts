import { VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { ContactState } from './contact.ts';

/** Why a node takes no pods, for its Ready condition. */
export interface Obstacle {
  reason: string;
  message: string;
}

/** The first thing in the way: an agent that does not run, then the far side, then this one; undefined when nothing is. */
export function obstacleOf(contact: ContactState, own: Obstacle | undefined): Obstacle | undefined {
  if (own?.reason === VIRTUAL_NODE_REASONS.stopped) return own;
  return contact.ok ? own : { reason: contact.reason, message: contact.message };
}
