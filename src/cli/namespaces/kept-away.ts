/** Pods of a namespace that cannot come home, since their own templates send them to virtual nodes. */
import { pods } from '../../api/resources.ts';
import { homeAdvice, isKeptAway } from '../../api/sent-abroad.ts';
import type { Pod } from '../../api/wire.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Session } from '../peering/environment.ts';

const MOST_NAMED = 5;

/** Empty also without the right to read them. To be asked where the namespace is not offloaded, or is about to be so no more. */
export async function readKeptAway(
  namespace: string,
  { client, signal }: Pick<Session, 'client' | 'signal'>,
): Promise<readonly Pod[]> {
  const list = await client.list(pods, { namespace, signal }).catch(ignoring('Forbidden'));
  return (list?.items ?? []).filter(isKeptAway);
}

/** One line for each change that is to be made: which pods, and what. Pure. */
export function keptAwayLines(kept: readonly Pod[]): string[] {
  const byAdvice = Map.groupBy(kept, homeAdvice);
  return [...byAdvice].map(([advice, all]) => {
    const names = all.map(({ metadata }) => metadata.name).toSorted();
    const more = names.length > MOST_NAMED ? ' and others' : '';
    return `${names.slice(0, MOST_NAMED).join(', ')}${more}: ${advice}`;
  });
}

/** What keeps them, in one sentence. */
export const keptAwayTitle = (kept: readonly Pod[]): string =>
  `${kept.length} pod(s) wait for a virtual node and do not run, since their own template sends them there. To run them here:`;
