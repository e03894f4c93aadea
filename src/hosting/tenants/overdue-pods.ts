import { pods } from '../../api/resources.ts';
import type { Namespace } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { ignoring, throwFirst } from '../../lib/errors.ts';

/**
 * Pods of a tenant that ends are given so long, whatever grace they have asked for: a peer that asks for a day would
 * hold the namespace, and what runs in it, for a day after it has lost every right.
 */
const OVERDUE_AFTER_MS = 60_000;
/** So often it is looked whether it is overdue, milliseconds. */
const LOOK_MS = 20_000;
const AT_ONCE = 16;

/** When to look again at namespaces of which some may be ending, milliseconds. */
export const lookAtEndingMs = (namespaces: readonly Namespace[]): number =>
  namespaces.some(({ metadata }) => metadata.deletionTimestamp !== undefined) ? LOOK_MS : Infinity;

/**
 * Ends by force what is left in a tenant namespace that has been ending for long. No budget is asked. A pod that somebody's
 * admission keeps does not keep the others: its error comes after the last.
 */
export async function endOverduePods(
  { client, clock }: { client: KubeClient; clock: Clock },
  { metadata: { name: namespace, deletionTimestamp = '' } }: Namespace,
  signal: AbortSignal,
): Promise<undefined> {
  if (!(clock.now() - Date.parse(deletionTimestamp) >= OVERDUE_AFTER_MS)) return undefined;
  const { items } = await client.list(pods, { namespace, metadataOnly: true, signal });
  const failures: unknown[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const some = items.slice(at, at + AT_ONCE);
    await Promise.all(
      some.map(async ({ metadata: { name, uid } }) =>
        client
          .delete(pods, { name, namespace }, { gracePeriodSeconds: 0, uid, signal })
          .catch(ignoring('NotFound', 'Conflict'))
          .catch((error: unknown) => failures.push(error)),
      ),
    );
  }
  throwFirst(failures);
  return undefined;
}
