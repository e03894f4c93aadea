/**
 * Equality of JSON values. A key whose value is undefined counts as absent, because it would not be sent;
 * the order of keys is of no account, that of array items is.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Number.isNaN(a) && Number.isNaN(b);
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && equalArrays(a, b);
  }
  return equalObjects(a as Record<string, unknown>, b as Record<string, unknown>);
}

function equalArrays(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
}

function equalObjects(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let present = 0;
  for (const key of Object.keys(a)) {
    const value = a[key];
    if (value === undefined) continue;
    present++;
    // hasOwn, since a hostile key such as `constructor` would be found on the prototype.
    if (!Object.hasOwn(b, key) || !deepEqual(value, b[key])) return false;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) present--;
  return present === 0;
}

/**
 * Whether a JSON value has all that another says, whatever else it has: applying `wanted` to it would change nothing. Lists must
 * have the same length.
 */
export function jsonContains(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((item, index) => jsonContains(actual[index], item))
    );
  }
  if (typeof wanted !== 'object' || wanted === null) return deepEqual(actual, wanted);
  if (typeof actual !== 'object' || actual === null) return false;
  return Object.entries(wanted).every(
    ([key, value]) =>
      value === undefined ||
      (Object.hasOwn(actual, key) && jsonContains((actual as Record<string, unknown>)[key], value)),
  );
}
