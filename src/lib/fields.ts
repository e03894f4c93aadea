/** A JSON object of which nothing is known yet. */
export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A field of the object itself, never one of its prototype. */
export const ownField = (fields: Readonly<Fields>, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
