import { deepEqual } from '../lib/equality.ts';

/**
 * Whether an object has all that a manifest says, so that applying it would change nothing. What the API server or
 * others have added does not count; lists are compared whole.
 */
export function covers(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((item, index) => covers(actual[index], item))
    );
  }
  if (typeof wanted !== 'object' || wanted === null) return deepEqual(actual, wanted);
  if (typeof actual !== 'object' || actual === null) return false;
  return Object.entries(wanted).every(
    ([key, value]) =>
      value === undefined ||
      (Object.hasOwn(actual, key) && covers((actual as Record<string, unknown>)[key], value)),
  );
}
