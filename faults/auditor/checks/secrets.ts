/** I8: values that are secret stand nowhere but in Secrets. Pure. */

/** A value, as it would be read. */
export interface Canary {
  /** Which of the caller's values, counted from 1: the value itself is never written. */
  readonly number: number;
  readonly forms: readonly string[];
}

/** Shorter texts would be found by chance. */
const LEAST = 6;

/**
 * The value itself, escaped for JSON, percent-encoded, and in base64: as a whole, and within a longer text, where it may begin at each of
 * three positions. The first and last characters of base64 depend on the neighbours, so they are left out.
 */
export function canaryOf(value: string, index: number): Canary {
  const bytes = Buffer.from(value);
  const within = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replaceAll('=', '');
    const begin = [0, 2, 3][shift] ?? 0;
    const isWhole = (bytes.length + shift) % 3 === 0;
    return text.slice(begin, isWhole ? undefined : -1);
  });
  const forms = [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), ...within];
  const urls = within.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  return {
    number: index + 1,
    forms: [...new Set([...forms, ...urls])].filter(({ length }) => length >= LEAST),
  };
}

/** Those that occur in the text. */
export const canariesIn = (text: string, canaries: readonly Canary[]): Canary[] =>
  canaries.filter(({ forms }) => forms.some((form) => text.includes(form)));

/** How much of a text that is read in pieces must be looked at again with the next piece, in characters. */
export const overlap = (canaries: readonly Canary[]): number =>
  Math.max(0, ...canaries.flatMap(({ forms }) => forms.map(({ length }) => length - 1)));
