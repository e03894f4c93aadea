import type { Clock } from '../lib/clock.ts';
import { Pace, type PaceOptions } from '../lib/pace.ts';
import { TokenBucket } from '../lib/token-bucket.ts';

/** One unit: a write of up to 4 KiB of status; with the rest of the object, etcd keeps some 8 KiB of it. */
const UNIT_BYTES = 4096;

type HomeWrite = 'podStatus' | 'volume' | 'nodeStatus' | 'virtualNodeStatus';

/**
 * How often this agent writes at home what the foreign cluster says, for each object. A pod that starts, becomes ready and ends
 * needs fewer than ten writes; one whose readiness flaps is shown less and less often, and as it is in the end.
 */
export const HOME_PACES: Readonly<Record<HomeWrite, Omit<PaceOptions, 'clock'>>> = {
  // All pods of the virtual node: a thousand that start at once stay within the burst, and then 256 KiB of status each second.
  podStatus: {
    free: 40,
    baseMs: 1_000,
    quietMs: 15_000,
    maxKeys: 16_384,
    all: { burst: 16_384, perSecond: 64 },
  },
  volume: { free: 8, baseMs: 1_000, quietMs: 60_000, all: { burst: 1_024, perSecond: 2 } },
  nodeStatus: { free: 60, baseMs: 1_000, quietMs: 10_000 },
  virtualNodeStatus: { free: 60, baseMs: 1_000, quietMs: 10_000 },
};

/**
 * For each object over there that home does not know, home is asked whether that is so. A foreign cluster could bring such objects as
 * fast as it likes. For each part that asks.
 */
export const homeLookups = (clock: Clock): TokenBucket =>
  new TokenBucket({ clock, burst: 2_048, perSecond: 128 });
export const LOOKUP_WAIT_MS = 1_000;

export const homePace = (kind: HomeWrite, clock: Clock): Pace => new Pace({ clock, ...HOME_PACES[kind] });

export const statusCost = (status: object): number =>
  Math.ceil(Buffer.byteLength(JSON.stringify(status)) / UNIT_BYTES);
