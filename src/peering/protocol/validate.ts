import { TributaryError } from '../../lib/errors.ts';
import { isFields } from '../../lib/fields.ts';

/**
 * Small checks of what came from a peer. Each takes a parsed value and returns it with its type, or throws Invalid
 * saying where and why. What a schema does not name is left out, so that later versions can add fields.
 */
export type Check<T> = (value: unknown, path: string) => T;

/** Ours nest to eight. */
const MAX_DEPTH = 24;
/** Keys, items and plain values together: an offer of a thousand shapes has some 30 000. */
const MAX_VALUES = 100_000;
const MAX_STRING = 262_144;
const MAX_KEY = 512;
/** On a plain object these reach what every object shares. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export function invalid(path: string, why: string): never {
  throw new TributaryError('Invalid', `${path}: ${why}`);
}

/**
 * JSON from a peer, with nothing in it that could hurt further on: bounded depth, number of values and lengths, no
 * number beyond a double (1e309), no key that reaches a prototype. Throws Invalid.
 */
export function parseUntrusted(text: string, what: string): unknown {
  let value: unknown;
  // Before parsing, which takes a tenth of a second for half a million brackets.
  if (depthOf(text) > MAX_DEPTH) invalid(what, `nested deeper than ${MAX_DEPTH}`);
  try {
    value = JSON.parse(text);
  } catch {
    invalid(what, 'not JSON');
  }
  checkLimits(value, what);
  return value;
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [34, 92, 91, 93, 123, 125];

/** How deep the brackets of a JSON text nest; of what is not JSON some number. */
function depthOf(text: string): number {
  let [depth, deepest, quoted] = [0, 0, false];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) quoted = !quoted;
    else if (quoted && code === BACKSLASH) index++;
    else if (!quoted && (code === OPEN_LIST || code === OPEN_OBJECT)) deepest = Math.max(deepest, ++depth);
    else if (!quoted && (code === CLOSE_LIST || code === CLOSE_OBJECT)) depth--;
  }
  return deepest;
}

function checkLimits(root: unknown, what: string): void {
  let level: unknown[] = [root];
  let values = 0;
  while (level.length > 0) {
    const next: unknown[] = [];
    for (const value of level) {
      checkPlain(value, what);
      const children = childrenOf(value, what);
      values += children.length + 1;
      if (values > MAX_VALUES) invalid(what, `more than ${MAX_VALUES} values`);
      for (const child of children) next.push(child);
    }
    level = next;
  }
}

function checkPlain(value: unknown, what: string): void {
  if (typeof value === 'string' && value.length > MAX_STRING) {
    invalid(what, `a text longer than ${MAX_STRING}`);
  }
  if (typeof value === 'number' && !Number.isFinite(value)) invalid(what, 'a number too large');
}

function childrenOf(value: unknown, what: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value;
  for (const key of Object.keys(value)) {
    if (key.length > MAX_KEY) invalid(what, `a key longer than ${MAX_KEY}`);
    if (FORBIDDEN_KEYS.has(key)) invalid(what, `the key ${key} is not allowed`);
  }
  return Object.values(value);
}

export interface TextLimits {
  max: number;
  min?: number;
  pattern?: RegExp;
}

/** Without control characters, so that it can be shown anywhere. */
const ONE_LINE = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*$/u;

export const text =
  ({ max, min = 0, pattern = ONE_LINE }: TextLimits): Check<string> =>
  (value, path) => {
    if (typeof value !== 'string') return invalid(path, 'not a text');
    if (value.length > max) return invalid(path, `longer than ${max}`);
    if (value.length < min) return invalid(path, 'too short');
    return pattern.test(value) ? value : invalid(path, 'holds characters that are not allowed there');
  };

/** Any characters, for what is parsed or verified further on. */
export const opaque = (max: number): Check<string> => text({ max, pattern: /^/ });

export const BASE64: RegExp = /^[A-Za-z0-9+/]+={0,2}$/;

/** What a peer tells people: made fit to show instead of refused. */
export const prose =
  (max: number): Check<string> =>
  (value, path) =>
    typeof value === 'string' ? plainText(value, max) : invalid(path, 'not a text');

/** One line of at most so many characters. */
export function plainText(raw: string, max: number): string {
  const line = raw
    .slice(0, 4 * max)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ')
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}

export const integer =
  (min: number, max: number): Check<number> =>
  (value, path) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
      ? value
      : invalid(path, `not a whole number from ${min} to ${max}`);

export const bool: Check<boolean> = (value, path) =>
  typeof value === 'boolean' ? value : invalid(path, 'not true or false');

export const oneOf =
  <T extends string>(...words: readonly T[]): Check<T> =>
  (value, path) =>
    words.find((word) => word === value) ?? invalid(path, `not one of ${words.join(', ')}`);

/** An object of whatever form. */
export const anyObject: Check<Record<string, unknown>> = (value, path) =>
  isFields(value) ? value : invalid(path, 'not an object');

export const list =
  <T>(item: Check<T>, max: number): Check<T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) return invalid(path, 'not a list');
    if (value.length > max) return invalid(path, `more than ${max} items`);
    return value.map((each, index) => item(each, `${path}[${index}]`));
  };

/** An object with keys of one form and values of another. */
export const map =
  <T>(key: Check<string>, item: Check<T>, max: number): Check<Record<string, T>> =>
  (value, path) => {
    const entries = Object.entries(anyObject(value, path));
    if (entries.length > max) return invalid(path, `more than ${max} entries`);
    // fromEntries defines properties: a key `__proto__` would be one like any other.
    return Object.fromEntries(
      entries.map(([name, each], index) => [
        key(name, `${path}: key ${index}`),
        item(each, `${path}: value ${index}`),
      ]),
    );
  };

type Fields = Record<string, Check<unknown>>;
type Checked<Required extends Fields, Optional extends Fields> = {
  [Key in keyof Required]: ReturnType<Required[Key]>;
} & { [Key in keyof Optional]?: ReturnType<Optional[Key]> };

/** An object with these fields; null counts as absent. */
export const record =
  <Required extends Fields, Optional extends Fields>(
    required: Required,
    optional: Optional,
  ): Check<Checked<Required, Optional>> =>
  (value, path) => {
    const given = anyObject(value, path);
    const result: Record<string, unknown> = {};
    for (const [key, check] of Object.entries(required)) {
      if (!Object.hasOwn(given, key)) invalid(`${path}.${key}`, 'missing');
      result[key] = check(given[key], `${path}.${key}`);
    }
    for (const [key, check] of Object.entries(optional)) {
      const present = Object.hasOwn(given, key) && given[key] !== null;
      if (present) result[key] = check(given[key], `${path}.${key}`);
    }
    return result as Checked<Required, Optional>;
  };
