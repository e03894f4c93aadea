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
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>;

/** A field of the object itself, never one of its prototype. */
export const ownField = (fields: Readonly<Fields>, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
