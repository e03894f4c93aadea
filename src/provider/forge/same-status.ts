import type { PodStatus } from '../../api/wire.ts';
import { type Fields, isFields } from '../../lib/fields.ts';

/**
 * Whether writing `wanted` over `stored` would change nothing. The API server stores a time that was not given as
 * null and a state that was not given as `{}`, so what was written does not come back letter by letter; without this
 * every look at such a pod would end in one more write.
 */
export function sameStatus(wanted: PodStatus, stored: PodStatus): boolean {
  return same(wanted, stored);
}

/** Of JSON values. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, place) => same(item, b[place]));
  }
  return isFields(a) && isFields(b) && sameFields(a, b);
}

function sameFields(a: Fields, b: Fields): boolean {
  let more = 0;
  for (const key of Object.keys(a)) {
    if (isUnset(key, a[key])) continue;
    more++;
    // A key that is unset there differs from the value here.
    if (!Object.hasOwn(b, key) || !same(a[key], b[key])) return false;
  }
  for (const key of Object.keys(b)) if (!isUnset(key, b[key])) more--;
  return more === 0;
}

const isUnset = (key: string, value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) && value.length === 0) ||
  ((key === 'lastState' || key === 'state' || key === 'resources') &&
    typeof value === 'object' &&
    Object.keys(value).length === 0);
