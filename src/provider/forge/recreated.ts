import { ANNOTATION_RECREATED, ANNOTATION_RESULT } from '../../api/names.ts';
import { isFinished } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';

/** What the guardian says of a pod that it has made anew. */
export interface Recreated {
  /** How often; at least 1. */
  count: number;
  /** Restarts of containers before that, by name. */
  restarts: ReadonlyMap<string, number>;
}

/** More than a container restarts in its life; keeps sums far from the 32 bits that the API server takes. */
const MAX_COUNT = 1_000_000;
const MAX_TEXT = 65_536;
const MAX_CONTAINERS = 256;

/** Undefined for a pod that is still the one that we made. What cannot be read says no more than that it was. */
export function recreatedOf(remote: Pod): Recreated | undefined {
  const text = remote.metadata.annotations?.[ANNOTATION_RECREATED];
  if (text === undefined) return undefined;
  const { count, restarts } = parsed(text);
  return { count: Math.max(1, bounded(count) ?? 1), restarts: restartsOf(restarts) };
}

function parsed(text: string): { count?: unknown; restarts?: unknown } {
  if (text.length > MAX_TEXT) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

function restartsOf(value: unknown): Map<string, number> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
  const entries = Object.entries(value).slice(0, MAX_CONTAINERS);
  return new Map(
    entries.flatMap(([name, count]: [string, unknown]): [string, number][] => {
      const number = bounded(count);
      return number === undefined ? [] : [[name, number]];
    }),
  );
}

const bounded = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? Math.min(MAX_COUNT, value)
    : undefined;

/** It never runs, and only bears what became of the pod whose name it has. */
export const isResult = (remote: Pod): boolean => remote.metadata.annotations?.[ANNOTATION_RESULT] === 'true';

/** The guardian has made it, and has yet to say what it bears. */
export const isUnfinishedResult = (remote: Pod): boolean => isResult(remote) && !isFinished(remote);
