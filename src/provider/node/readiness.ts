import { type NamespaceMapping, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import { includesMapping } from '../namespaces.ts';
import type { Tenants } from '../tenants.ts';
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

/** Whether pods can be served, besides that the foreign cluster answers. */
export class Readiness {
  /** The kubelet API answers. */
  listening = false;
  readonly #tenants: Pick<Tenants, 'of' | 'missing'>;
  /** All namespaces of the start have been read. */
  #wasComplete = false;

  constructor(tenants: Pick<Tenants, 'of' | 'missing'>) {
    this.#tenants = tenants;
  }

  /** @param asked what is on its way out is not waited for: its home namespace, and our rights in it, may be gone */
  obstacle(
    mappings: readonly NamespaceMapping[],
    asked: readonly NamespaceMapping[] = [],
  ): Obstacle | undefined {
    if (!this.listening) {
      return { reason: VIRTUAL_NODE_REASONS.stopped, message: 'the agent is starting or has stopped' };
    }
    this.#wasComplete ||= mappings.every(
      (mapping) => !includesMapping(asked, mapping) || this.#tenants.of(mapping.homeNamespace)?.synced,
    );
    // Pods of a namespace that comes later wait for it; those of all others need not.
    const message = this.#wasComplete ? undefined : this.#tenants.missing;
    return message === undefined ? undefined : { reason: VIRTUAL_NODE_REASONS.cachesNotSynced, message };
  }

  /** The tenant namespace to try the credential in. One that is in trouble says nothing of the others. */
  probed(asked: readonly NamespaceMapping[] = []): string | undefined {
    const sound = asked.find(({ homeNamespace }) => this.#tenants.of(homeNamespace)?.problem === undefined);
    return (sound ?? asked[0])?.tenantNamespace;
  }
}
