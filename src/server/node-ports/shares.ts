import type { Clock } from '../../lib/clock.ts';
import { Quota } from '../../lib/quota.ts';

/**
 * Places for what clients hold of the node ports, by address of the client. When all are taken, the address that has the most
 * loses the one that it has not used for the longest time, if the newcomer's has fewer: nobody shuts the ports for others. Otherwise a place
 * is taken away only when it is out of use; else a flood would cost a new connection to the Service for each of its packets.
 */
export const forgeShares = (most: number, outOfUseMs: number, clock: Clock): Quota =>
  new Quota(most, {
    now: () => clock.monotonic(),
    givesWay: ({ most: held, own, untouchedMs }) => held > own + 1 || untouchedMs >= outOfUseMs,
  });
