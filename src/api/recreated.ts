import { fieldsIn, isFields } from '../lib/fields.ts';

/** What the value of ANNOTATION_RECREATED says. */
export interface Recreated {
  /** How often the pod was made anew. */
  count: number;
  /** Restarts of containers before that, by name of the container. */
  restarts: ReadonlyMap<string, number>;
}

/** More than a container restarts in its life; keeps sums far from the 32 bits that the API server takes. */
const MAX_COUNT = 1_000_000;
const MAX_TEXT = 65_536;
const MAX_CONTAINERS = 256;

/** Each of the two clusters, and others, may write annotations: what cannot be read counts as never. */
export function parseRecreated(text: string): Recreated {
  const { count, restarts } = fieldsIn(text, MAX_TEXT);
  const counts = isFields(restarts) ? Object.entries(restarts).slice(0, MAX_CONTAINERS) : [];
  return {
    count: boundedCount(count) ?? 0,
    restarts: new Map(
      counts.flatMap(([name, value]): [string, number][] => {
        const restartCount = boundedCount(value);
        return restartCount === undefined ? [] : [[name, restartCount]];
      }),
    ),
  };
}

export const recreatedText = ({ count, restarts }: Recreated): string =>
  JSON.stringify({ count, restarts: Object.fromEntries(restarts) });

/** Undefined for what is not a count. */
export const boundedCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? Math.min(MAX_COUNT, value)
    : undefined;
