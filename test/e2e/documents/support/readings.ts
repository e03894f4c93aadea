/** All documents, by the clusters at which they are read: each begins with what those before it have left. */
import { BY_HAND } from './by-hand.ts';
import { DAY_TO_DAY } from './day-to-day.ts';
import { DEVICE } from './device.ts';
import { EXAMPLES } from './examples.ts';
import { FIRST_STEPS } from './first-steps.ts';
import type { Reading } from './reading.ts';
import { REMOVAL } from './removal.ts';

/** rome and milan, from the first installation to the last removal. */
export const TWO_CLUSTERS: readonly Reading[] = [...FIRST_STEPS, ...DAY_TO_DAY, ...EXAMPLES, ...REMOVAL];

/** A laptop and a company. */
export const LAPTOP: readonly Reading[] = DEVICE;

/** home and foreign. */
export const WITHOUT_PEERING: readonly Reading[] = BY_HAND;

export const ALL: readonly Reading[] = [...TWO_CLUSTERS, ...LAPTOP, ...WITHOUT_PEERING];
