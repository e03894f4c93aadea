import { createHash } from 'node:crypto';
import { MAX_LABEL_LENGTH } from '../../api/manifest.ts';
import type { NamespaceOffer } from '../../api/offer.ts';
import { isReservedNamespace } from '../tenant.ts';

/** How many characters of the consumer's ID a name bears; more only where fewer are taken. */
const ID_LENGTHS = [8, 13, 26] as const;
const HASH_LENGTH = 6;

export interface TenantNames {
  namespaces: NamespaceOffer[];
  /** Home namespaces for which no free name was found. */
  taken: string[];
}

/**
 * A tenant namespace for each home namespace: `<home>-<first 8 of the consumer's ID>`. What was chosen before stays;
 * a name that somebody else's namespace bears is passed over. The same in, the same out.
 */
export function chooseTenantNames(
  homeNamespaces: readonly string[],
  options: {
    consumer: string;
    /** Chosen before. */
    before: readonly NamespaceOffer[];
    /** Whether a namespace of that name is there that is not this peer's. */
    isTaken: (name: string) => boolean;
  },
): TenantNames {
  const { consumer, before, isTaken } = options;
  const known = new Map(before.map(({ homeNamespace, tenantNamespace }) => [homeNamespace, tenantNamespace]));
  const chosen: TenantNames = { namespaces: [], taken: [] };
  for (const homeNamespace of new Set(homeNamespaces)) {
    const candidates = [known.get(homeNamespace) ?? [], ...candidatesOf(homeNamespace, consumer)].flat();
    const tenantNamespace = candidates.find((name) => !isReservedNamespace(name) && !isTaken(name));
    if (tenantNamespace === undefined) chosen.taken.push(homeNamespace);
    else chosen.namespaces.push({ homeNamespace, tenantNamespace });
  }
  return chosen;
}

/** Of two long names that begin alike the hash keeps the tenants apart. */
function candidatesOf(homeNamespace: string, consumer: string): string[] {
  return ID_LENGTHS.map((length) => {
    const suffix = consumer.slice(0, length);
    const room = MAX_LABEL_LENGTH - suffix.length - 1;
    if (homeNamespace.length <= room) return `${homeNamespace}-${suffix}`;
    const hash = createHash('sha256').update(homeNamespace).digest('hex').slice(0, HASH_LENGTH);
    return `${homeNamespace.slice(0, room - HASH_LENGTH - 1)}-${hash}-${suffix}`;
  });
}
