import { forgeFence, isAccount, writes } from '../api/fence.ts';
import type { Manifest } from '../api/manifest.ts';
import type { AccountRef } from '../api/rbac.ts';
import type { PlaceRights } from './rights-cluster.ts';

/**
 * The `cluster` role holds rights to further kinds only because RBAC lets nobody pass on what they do not hold. A
 * ValidatingAdmissionPolicy sees to it that it never uses them: it writes nothing outside the API groups of its own table.
 */
export function forgeKindsFence(account: AccountRef, places: readonly PlaceRights[]): Manifest[] {
  const rights = places.flatMap(({ parts }) => parts.flatMap((part) => part.rights));
  const groups = [...new Set(rights.map(({ group }) => group))].toSorted();
  return forgeFence({
    name: 'tributary-kinds',
    user: isAccount(account),
    when: `!(request.resource.group in [${groups.map((group) => `'${group}'`).join(', ')}])`,
    rules: [writes('*', ['*/*'], 'CREATE', 'UPDATE', 'DELETE')],
    validations: [['false', 'rights to further kinds are held to be passed on to peers, and not to be used']],
  });
}
