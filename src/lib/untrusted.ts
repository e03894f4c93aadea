import { TributaryError } from './errors.ts';
import { isFields } from './fields.ts';

/**
 * Reads JSON that a peer has sent: every function returns what it has checked or throws Invalid with one line that
 * names the field. Only own properties are read, and nothing is assigned by a name that came from outside.
 */
export type Json = Readonly<Record<string, unknown>>;

export function refuse(field: string, why: string): never {
  throw new TributaryError('Invalid', `${field} ${why}`);
}

/** What a peer wrote, short enough for one line, with nothing in it that a terminal would obey. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text).replaceAll(
    /[^ -~]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );

export function objectAt(field: string, value: unknown): Json {
  return isFields(value) ? value : refuse(field, 'is not an object');
}

export const own = (object: Json, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined;

export function textAt(field: string, value: unknown, most: number): string {
  if (typeof value !== 'string') return refuse(field, 'is not text');
  if (value.length > most) refuse(field, `has ${value.length} characters, at most ${most} are allowed`);
  return value;
}

export function matchedAt(field: string, value: unknown, form: { pattern: RegExp; most: number }): string {
  const text = textAt(field, value, form.most);
  return form.pattern.test(text) ? text : refuse(field, `is malformed: ${quoted(text)}`);
}

export function integerAt(field: string, value: unknown, range: { least: number; most: number }): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    return refuse(field, 'is not a whole number');
  if (value < range.least || value > range.most) {
    refuse(field, `is ${value}, not from ${range.least} to ${range.most}`);
  }
  return value;
}

export function booleanAt(field: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuse(field, 'is not true or false');
}

export function listAt<T>(
  field: string,
  value: unknown,
  { most, item }: { most: number; item: (field: string, value: unknown) => T },
): T[] {
  if (!Array.isArray(value)) return refuse(field, 'is not a list');
  if (value.length > most) refuse(field, `has ${value.length} entries, at most ${most} are allowed`);
  return value.map((entry: unknown, index) => item(`${field}[${index}]`, entry));
}

/** As listAt, for texts of which none may come twice. */
export function setAt(
  field: string,
  value: unknown,
  rules: { most: number; item: (field: string, value: unknown) => string },
): string[] {
  const items = listAt(field, value, rules);
  if (new Set(items).size !== items.length) refuse(field, 'names something twice');
  return items;
}

/** A map; `entry` checks the key too. */
export function mapAt<T>(
  field: string,
  value: unknown,
  { most, entry }: { most: number; entry: (field: string, key: string, value: unknown) => T },
): Record<string, T> {
  const entries = Object.entries(objectAt(field, value));
  if (entries.length > most) refuse(field, `has ${entries.length} entries, at most ${most} are allowed`);
  // fromEntries defines properties, so that a key `__proto__` would be one like any other.
  return Object.fromEntries(
    entries.map(([key, item]) => [key, entry(`${field}[${quoted(key)}]`, key, item)]),
  );
}
