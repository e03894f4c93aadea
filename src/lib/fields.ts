/** A JSON object of which nothing is known yet. */
export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type Present<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Only the fields that have a value: `undefined` would count as a field, and as null in a merge patch. */
export const present = <T extends object>(fields: T): Present<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>;

/** A field of the object itself, never one of its prototype. */
export const ownField = (fields: Readonly<Fields>, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
