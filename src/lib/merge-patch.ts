import { deepEqual } from './equality.ts';
import { type Fields, isFields, ownField } from './fields.ts';

/**
 * The JSON merge patch (RFC 7386) that makes `after` of `before`; undefined where nothing differs. A field that is
 * undefined counts as absent. Lists are replaced whole.
 */
export function mergePatchOf(before: object, after: object): Record<string, unknown> | undefined {
  const [from, to] = [before as Fields, after as Fields];
  const changes: [string, unknown][] = [];
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [old, wanted] = [ownField(from, key), ownField(to, key)];
    if (deepEqual(old, wanted)) continue;
    changes.push([
      key,
      isFields(old) && isFields(wanted) ? mergePatchOf(old, wanted) : withoutGaps(wanted ?? null),
    ]);
  }
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

/** Without fields that are undefined: JSON does not write them. */
const withoutGaps = (value: unknown): unknown =>
  isFields(value)
    ? Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined))
    : value;
