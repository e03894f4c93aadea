import type { PodStatus } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';

/**
 * Whether writing `wanted` over `stored` would change nothing. The API server stores a time that was not given as
 * null and a state that was not given as `{}`, so what was written does not come back letter by letter; without this
 * every look at such a pod would end in one more write.
 */
export function sameStatus(wanted: PodStatus, stored: PodStatus): boolean {
  return deepEqual(wanted, stored) || deepEqual(plain(wanted), plain(stored));
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  const entries = Object.entries(value).filter(([key, item]) => !isUnset(key, item));
  return Object.fromEntries(entries.map(([key, item]) => [key, plain(item)]));
}

const isUnset = (key: string, value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) && value.length === 0) ||
  ((key === 'lastState' || key === 'state' || key === 'resources') &&
    typeof value === 'object' &&
    Object.keys(value).length === 0);
