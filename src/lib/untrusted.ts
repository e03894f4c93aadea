import { TributaryError } from './errors.ts';
import { type Fields, isFields, ownField } from './fields.ts';

/**
 * Checks of JSON that a peer has sent. A Check takes a parsed value and returns it with its type, or throws Invalid with
 * one line that names the place and says what is wrong there. Only own properties are read, and what a form does not
 * name is left out, so that later versions can add fields.
 */
export type Check<T> = (value: unknown, path: string) => T;

/** Our own documents nest to eight. */
const MAX_DEPTH = 24;
/** Keys, items and plain values together: an offer of a thousand shapes has some 30 000. */
const MAX_VALUES = 100_000;
const MAX_TEXT = 262_144;
const MAX_KEY = 512;
/** Set on a plain object, these keys reach what every object shares. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

export function refuse(path: string, why: string): never {
  throw new TributaryError('Invalid', `${path} ${why}`);
}

/** What a peer wrote, short enough for one line, without anything that a terminal would obey. */
export const quoted = (raw: string): string =>
  JSON.stringify(raw.length > 80 ? `${raw.slice(0, 80)}...` : raw).replaceAll(
    /[^ -~]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );

/** One line of at most so many characters. */
export function plainText(raw: string, most: number): string {
  const line = raw
    .slice(0, 4 * most)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ')
    .trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** All that a terminal would obey, or that hides or reverses what is shown, but line breaks and tabs; for `replaceAll`. */
export const UNSHOWN: RegExp =
  /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\u{61c}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu;

/** A text of several lines, at most so many characters; where it was longer, its end says so. */
export function shownText(raw: string, most: number): string {
  // Half of a pair is no character: API servers replace it, and would seem to have changed the text.
  const clean = (part: string): string => part.toWellFormed().replaceAll(UNSHOWN, ' ');
  if (raw.length <= most) return clean(raw);
  const mark = ' [cut here]';
  return `${clean(raw.slice(0, Math.max(0, most - mark.length)))}${mark}`.slice(0, most);
}

/**
 * Parses JSON from a peer in which nothing can hurt later on: its depth, number of values and lengths are bounded, no
 * number is beyond a double (1e309), and no key reaches a prototype. Throws Invalid.
 */
export function parseUntrusted(raw: string, what: string): unknown {
  // Before parsing, which takes a tenth of a second for half a million brackets.
  if (depthOf(raw) > MAX_DEPTH) refuse(what, `is nested deeper than ${MAX_DEPTH}`);
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    refuse(what, 'is not JSON');
  }
  checkLimits(value, what);
  return value;
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [34, 92, 91, 93, 123, 125];

/** How deep the brackets of a JSON text nest; any number for a text that is not JSON. */
function depthOf(raw: string): number {
  let [depth, deepest, isQuoted] = [0, 0, false];
  for (let index = 0; index < raw.length; index++) {
    const code = raw.charCodeAt(index);
    if (code === QUOTE) isQuoted = !isQuoted;
    else if (isQuoted && code === BACKSLASH) index++;
    else if (!isQuoted && (code === OPEN_LIST || code === OPEN_OBJECT)) deepest = Math.max(deepest, ++depth);
    else if (!isQuoted && (code === CLOSE_LIST || code === CLOSE_OBJECT)) depth--;
  }
  return deepest;
}

function checkLimits(root: unknown, what: string): void {
  let level: unknown[] = [root];
  let values = 0;
  while (level.length > 0) {
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === 'string' && value.length > MAX_TEXT) {
        refuse(what, `holds a text longer than ${MAX_TEXT}`);
      }
      if (typeof value === 'number' && !Number.isFinite(value)) refuse(what, 'holds a number too large');
      const children = childrenOf(value, what);
      values += children.length + 1;
      if (values > MAX_VALUES) refuse(what, `holds more than ${MAX_VALUES} values`);
      for (const child of children) next.push(child);
    }
    level = next;
  }
}

function childrenOf(value: unknown, what: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value;
  for (const key of Object.keys(value)) {
    if (key.length > MAX_KEY) refuse(what, `has a key longer than ${MAX_KEY}`);
    if (FORBIDDEN_KEYS.has(key)) refuse(what, `has the key ${key}, which is not allowed`);
  }
  return Object.values(value);
}

export interface TextLimits {
  most: number;
  least?: number;
  pattern?: RegExp;
}

/** Without control characters, so that it can be shown anywhere. */
const ONE_LINE = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]*$/u;

/** A text; one line, where no other pattern is given. It may be a secret, so a refusal does not quote it. */
export const text =
  ({ most, least = 0, pattern = ONE_LINE }: TextLimits): Check<string> =>
  (value, path) => {
    if (typeof value !== 'string') return refuse(path, 'is not text');
    const { length } = value;
    if (length > most) refuse(path, `has ${length} characters, at most ${most} are allowed`);
    if (length < least) refuse(path, `has ${length} characters, at least ${least} are needed`);
    return pattern.test(value) ? value : refuse(path, 'holds characters that are not allowed there');
  };

/** Any characters, for what is parsed or verified further on. */
export const opaque = (most: number): Check<string> => text({ most, pattern: /^/ });

/** A text that is no secret; a refusal quotes it. */
export const matching = (pattern: RegExp, most: number): Check<string> => {
  const short = opaque(most);
  return (value, path) => {
    const found = short(value, path);
    return pattern.test(found) ? found : refuse(path, `is malformed: ${quoted(found)}`);
  };
};

/** What a peer tells people: it is made fit to show instead of being refused. */
export const prose =
  (most: number): Check<string> =>
  (value, path) =>
    typeof value === 'string' ? plainText(value, most) : refuse(path, 'is not text');

export const BASE64: RegExp = /^[A-Za-z0-9+/]+={0,2}$/;

export const integer =
  (least: number, most: number): Check<number> =>
  (value, path) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      return refuse(path, 'is not a whole number');
    }
    return value >= least && value <= most
      ? value
      : refuse(path, `is ${value}, not from ${least} to ${most}`);
  };

export const boolean: Check<boolean> = (value, path) =>
  typeof value === 'boolean' ? value : refuse(path, 'is not true or false');

export const oneOf =
  <T extends string>(...words: readonly T[]): Check<T> =>
  (value, path) =>
    words.find((word) => word === value) ?? refuse(path, `is not ${words.join(' or ')}`);

/** An object of any form. */
export const anyObject: Check<Fields> = (value, path) =>
  isFields(value) ? value : refuse(path, 'is not an object');

export const list =
  <T>(item: Check<T>, most: number): Check<T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) return refuse(path, 'is not a list');
    if (value.length > most) refuse(path, `has ${value.length} entries, at most ${most} are allowed`);
    return value.map((each: unknown, index) => item(each, `${path}[${index}]`));
  };

/** A list of texts of which none may come twice. */
export const set = (item: Check<string>, most: number): Check<string[]> => {
  const items = list(item, most);
  return (value, path) => {
    const found = items(value, path);
    return new Set(found).size === found.length ? found : refuse(path, 'names something twice');
  };
};

/** An object with keys of one form and values of another; `entry` checks both, and returns the value. */
export const map =
  <T>(entry: (value: unknown, path: string, key: string) => T, most: number): Check<Record<string, T>> =>
  (value, path) => {
    const entries = Object.entries(anyObject(value, path));
    if (entries.length > most) refuse(path, `has ${entries.length} entries, at most ${most} are allowed`);
    // fromEntries defines properties: a key `__proto__` would be one like any other.
    return Object.fromEntries(
      entries.map(([key, each]) => [key, entry(each, `${path}[${quoted(key)}]`, key)]),
    );
  };

/** For an optional field of a record: null counts as absent. */
export const orNull =
  <T>(check: Check<T>): Check<T | undefined> =>
  (value, path) =>
    value === null ? undefined : check(value, path);

type Form = Record<string, Check<unknown>>;
/** What a form without optional fields has in their place. */
type NoFields = { [Key in never]: Check<unknown> };
type Checked<Required extends Form, Optional extends Form> = {
  [Key in keyof Required]: ReturnType<Required[Key]>;
} & { [Key in keyof Optional]?: Exclude<ReturnType<Optional[Key]>, undefined> };

/** An object with these fields. */
export const record =
  <Required extends Form, Optional extends Form = NoFields>(
    required: Required,
    optional?: Optional,
  ): Check<Checked<Required, Optional>> =>
  (value, path) => {
    const given = anyObject(value, path);
    const result: Fields = {};
    for (const [key, check] of Object.entries(required)) {
      const field = ownField(given, key);
      if (field === undefined) refuse(`${path}.${key}`, 'is missing');
      result[key] = check(field, `${path}.${key}`);
    }
    for (const [key, check] of Object.entries(optional ?? {})) {
      const field = ownField(given, key);
      const checked = field === undefined ? undefined : check(field, `${path}.${key}`);
      if (checked !== undefined) result[key] = checked;
    }
    return result as Checked<Required, Optional>;
  };
