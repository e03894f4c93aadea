/** Some milliseconds of parsing. */
const PART_BYTES = 64 * 1024;

const ITEMS = '"items":[';
/** Between two items, as API servers write them. No string can contain it: there the quotes would be escaped. */
const BETWEEN = '},{"metadata":{';

/** The text of a list, cut between its items. */
export interface ListParts {
  /** The list without its items. */
  readonly head: string;
  /** Items, so many as a part has, with commas between them: the text of an array without its brackets. In order. */
  readonly parts: readonly string[];
}

/**
 * Cuts the answer to a list request, so that it need not be parsed in one go: a page of 600 KB holds up everything else for ten
 * milliseconds, and all of it together grows too old for the young generation.
 *
 * A cut is a guess, since what is within an item may look like the place between two. Such a part is no JSON, as its brackets do not
 * match: then the whole has to be parsed. Where all parts are JSON, they are the whole list.
 */
export function cutList(text: string): ListParts | undefined {
  const found = text.indexOf(ITEMS);
  if (found === -1) return undefined;
  const from = found + ITEMS.length;
  const to = text.lastIndexOf(']');
  const parts: string[] = [];
  let start = from;
  for (let cut = next(text, start); cut !== -1; cut = next(text, start)) {
    parts.push(text.slice(start, cut + 1));
    // After the comma.
    start = cut + 2;
  }
  if (to > start) parts.push(text.slice(start, to));
  return { head: text.slice(0, from) + text.slice(to), parts };
}

const next = (text: string, start: number): number => text.indexOf(BETWEEN, start + PART_BYTES);
