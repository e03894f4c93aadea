import { type NamespaceMapping, VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import { includesMapping } from '../namespaces.ts';
import type { Tenants } from '../tenants.ts';
import type { ContactState } from './contact.ts';

/** Why a node takes no pods, for its Ready condition. */
export interface Obstacle {
  reason: string;
  message: string;
}

/** The first obstacle: an agent that does not run, then the foreign cluster, then this side; undefined when there is none. */
export function obstacleOf(contact: ContactState, own: Obstacle | undefined): Obstacle | undefined {
  if (own?.reason === VIRTUAL_NODE_REASONS.stopped) return own;
  return contact.ok ? own : { reason: contact.reason, message: contact.message };
}

/** Whether pods can be served, besides that the foreign cluster answers. */
export class Readiness {
  /** The kubelet API answers. */
  listening = false;
  readonly #tenants: Pick<Tenants, 'of' | 'missing'>;
  /** All namespaces that were asked for at the start have been read. */
  #wasComplete = false;

  constructor(tenants: Pick<Tenants, 'of' | 'missing'>) {
    this.#tenants = tenants;
  }

  /** @param asked other namespaces are being taken out and not waited for: our rights in them may be gone */
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
    // A namespace that is added later holds up only its own pods.
    const message = this.#wasComplete ? undefined : this.#tenants.missing;
    return message === undefined ? undefined : { reason: VIRTUAL_NODE_REASONS.cachesNotSynced, message };
  }

  /**
   * The tenant namespace in which to try the credential: one without problems, which say nothing of the others. None while
   * rights in all of them are still waited for.
   */
  probed(asked: readonly NamespaceMapping[] = []): string | undefined {
    const known = asked.filter(({ homeNamespace }) => {
      const tenant = this.#tenants.of(homeNamespace);
      return tenant === undefined || tenant.synced || tenant.problem !== undefined;
    });
    const sound = known.find(({ homeNamespace }) => this.#tenants.of(homeNamespace)?.problem === undefined);
    return (sound ?? known[0])?.tenantNamespace;
  }
}
