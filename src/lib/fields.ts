/** A JSON object of which nothing is known yet. */
export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object that a JSON text of somebody else says; empty for what is longer than `most`, or none. */
export function fieldsIn(text: string, most: number): Fields {
  if (text.length > most) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

type Present<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Only the fields that have a value: `undefined` would count as a field, and as null in a merge patch. */
export const present = <T extends object>(fields: T): Present<T> =>
  selected(fields, (_key, value) => value !== undefined) as Present<T>;

/** Without the fields of these names. */
export const withoutKeys = <T extends object>(fields: T, keys: readonly string[]): T =>
  selected(fields, (key) => !keys.includes(key)) as T;

/**
 * A copy with the fields that `isTaken` says. One called `__proto__`, which no API has, is left out: assigned, it would become the
 * prototype. (Lists of entries on the way were a tenth of what a burst of pods allocates.)
 */
function selected(fields: object, isTaken: (key: string, value: unknown) => boolean): Fields {
  const taken: Fields = {};
  for (const key of Object.keys(fields)) {
    const value = (fields as Fields)[key];
    if (key !== '__proto__' && isTaken(key, value)) taken[key] = value;
  }
  return taken;
}

/** A field of the object itself, never one of its prototype. */
export const ownField = (fields: Readonly<Fields>, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
