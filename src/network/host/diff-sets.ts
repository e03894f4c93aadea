/** What has to be added to a set and removed from it. Pure. */
export interface SetDiff<T> {
  add: T[];
  remove: T[];
}

/** Elements are equal when their keys are. */
export function diffSets<T>(
  wanted: readonly T[],
  actual: readonly T[],
  keyOf: (element: T) => string,
): SetDiff<T> {
  const wantedByKey = new Map(wanted.map((element) => [keyOf(element), element]));
  const actualKeys = new Set(actual.map(keyOf));
  return {
    add: [...wantedByKey].flatMap(([key, element]) => (actualKeys.has(key) ? [] : [element])),
    remove: actual.filter((element) => !wantedByKey.has(keyOf(element))),
  };
}
