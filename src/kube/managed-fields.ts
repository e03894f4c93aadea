import { isFields } from '../lib/fields.ts';

/**
 * JSON of objects as API servers write it, without reading `metadata.managedFields`: they are half of many objects, made of many
 * small ones, and of no use to us. Reading them takes nearly half of the time, and leaves as much garbage.
 */

const KEY = '"managed';
/** Looked for by a letter that is rare: quotes are everywhere. */
const REST = 'Fields":[{';
const BEFORE_VALUE = REST.indexOf('[');
/** In their place, so that it shows afterwards whether it was the right place. */
const MARK = 0;

/**
 * As JSON.parse, but where an object has `metadata.managedFields`, they may be 0.
 *
 * @param objectsOf those in the value that may have `metadata`
 * @throws SyntaxError
 */
export function parseObjects(text: string, objectsOf: (value: unknown) => readonly unknown[]): unknown {
  const { rest, cuts } = withoutManagedFields(text);
  if (cuts > 0) {
    try {
      const value: unknown = JSON.parse(rest);
      // A field of the same name elsewhere in an object is part of what it says.
      if (objectsOf(value).filter(isMarked).length === cuts) return value;
    } catch {
      // Not as API servers write it.
    }
  }
  return JSON.parse(text);
}

const isMarked = (object: unknown): boolean =>
  isFields(object) && isFields(object['metadata']) && object['metadata']['managedFields'] === MARK;

function withoutManagedFields(text: string): { rest: string; cuts: number } {
  let rest = '';
  let cuts = 0;
  let from = 0;
  for (let found = text.indexOf(REST); found !== -1; found = text.indexOf(REST, found + 1)) {
    if (!text.startsWith(KEY, found - KEY.length)) continue;
    const end = endOf(text, found + REST.length);
    if (end === undefined) break;
    rest += text.slice(from, found + BEFORE_VALUE) + String(MARK);
    from = end;
    cuts++;
    found = end;
  }
  return { rest: rest + text.slice(from), cuts };
}

/**
 * Behind the list that began before; undefined: it is not certain where that is. No list is within it (FieldsV1 is objects in objects),
 * so that the first `}]` ends it unless that is in a string. There the quotes of what follows would be escaped, and the quote that ends
 * one is followed by nothing but a colon, a comma or a bracket.
 */
function endOf(text: string, from: number): number | undefined {
  let found = text.indexOf(']', from);
  while (found !== -1 && text[found - 1] !== '}') found = text.indexOf(']', found + 1);
  if (found === -1) return undefined;
  const end = found + 1;
  const after = text.slice(end, end + LONGEST_SIGN);
  return NEXT.test(after) || (after.length < LONGEST_SIGN && END.test(after)) ? end : undefined;
}

/** The next key or the next object, after what closes `metadata`, the object, and the event. */
const NEXT = /^\}{0,3},\{?"[^:,}\]\s]/u;
const END = /^[\]}\s]*$/u;
const LONGEST_SIGN = 8;
