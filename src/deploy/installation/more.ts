/** What other rooms add to an installation. */
import type { MoreObjects } from './objects.ts';

/** Alert rules go in here (switch `prometheusRule`). */
export const MORE_OBJECTS: MoreObjects = { rules: [] };
