import { isConditionTrue } from '../../api/conditions.ts';
import { PEERING_REQUEST_CONDITIONS, type PeeringRequest } from '../../api/peering-request.ts';
import type { Clock } from '../../lib/clock.ts';
import { Pace, type PaceOptions } from '../../lib/pace.ts';
import type { Decision } from './decide.ts';
import type { Wish } from './request-spec.ts';

/**
 * Writes about peers that nobody has let in. Identities cost nothing, so all of them share one rate; who waits is served in
 * turn. A write is at most some 3 KiB, so they add less than 1 MiB to etcd in five minutes once the burst is over.
 */
export const STRANGER_PACE: Omit<PaceOptions, 'clock'> = {
  free: 8,
  baseMs: 2_000,
  quietMs: 60_000,
  all: { burst: 400, perSecond: 1 },
};

/** What is written of the wish of a stranger, as JSON. What it says beyond that is kept in memory. */
const OUTLINE_BYTES = 1024;

export const strangerPace = (clock: Clock): Pace => new Pace({ clock, ...STRANGER_PACE });

/** Nobody has let it in, neither now nor before. */
export const isStranger = ({ status }: PeeringRequest, { state }: Decision): boolean =>
  state !== 'Approved' && !isConditionTrue(status?.conditions, PEERING_REQUEST_CONDITIONS.approved);

/** As many of its namespaces as fit, with the names that they must have, and how many more there are. Pure. */
export function outlineOf(wish: Wish): Wish {
  const { namespaces, tenantNames = [], ...rest } = wish;
  const outline = (count: number): Wish => {
    const named = namespaces.slice(0, count);
    const names = tenantNames.filter(({ homeNamespace }) => named.includes(homeNamespace));
    return {
      ...rest,
      namespaces: named,
      ...(names.length > 0 && { tenantNames: names }),
      ...(count < namespaces.length && { moreNamespaces: namespaces.length - count }),
    };
  };
  let count = namespaces.length;
  while (count > 0 && Buffer.byteLength(JSON.stringify(outline(count))) > OUTLINE_BYTES) count--;
  return outline(count);
}
