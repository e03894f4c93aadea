import { StringDecoder } from 'node:string_decoder';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { type Fields, isFields } from '../lib/fields.ts';
import { parseObjects } from './managed-fields.ts';

/** Some milliseconds of parsing, in characters. */
const PART_LENGTH = 64 * 1024;
/** Each look makes one text of all pieces that have come. Beyond this length it is taken when there is half as much more. */
const OFTEN_LOOKED_AT = 4 * PART_LENGTH;

const ITEMS = '"items":[';
/** Between two items, as API servers write them. No string can contain it: there the quotes would be escaped. */
const BETWEEN = '},{"metadata":{';

export interface ListTextOptions {
  /** What is asked for, for errors. */
  readonly what: string;
  /** Most characters that are held at a time: one item, or a list that cannot be cut. */
  readonly mostLength: number;
}

/**
 * The answer to a list request, parsed in parts while it comes: in one go, a page of 600 KB holds up everything else for ten
 * milliseconds, and all of it together grows too old for the young generation.
 *
 * A cut between two items is a guess, since what is within an item may look like that place. Such a part is no JSON, as its brackets
 * do not match: it is cut later then. A list that does not look as an API server writes it is parsed as a whole.
 */
export class ListText {
  readonly #options: ListTextOptions;
  readonly #decoder = new StringDecoder('utf8');
  /** The text before the items; undefined until they have begun. */
  #head: string | undefined;
  /** What has come and is not parsed yet. */
  #text = '';
  /** Where to look for the next cut. */
  #from = 0;
  /** How long the text has to be for the next look. */
  #lookAt = 0;

  constructor(options: ListTextOptions) {
    this.#options = options;
  }

  /** Items that are complete, some at a time, in order. @throws Unavailable */
  *add(chunk: Buffer): Generator<unknown[], void> {
    this.#text += this.#decoder.write(chunk);
    if (this.#text.length > this.#options.mostLength)
      throw this.#error(`the answer has a part that is longer than ${this.#options.mostLength} characters`);
    if (this.#text.length < this.#lookAt) return;
    this.#findHead();
    if (this.#head === undefined) return;
    for (let cut = this.#nextCut(); cut !== -1; cut = this.#nextCut()) {
      const items = valueOf(`[${this.#text.slice(0, cut)}]`);
      if (Array.isArray(items)) {
        // After the comma.
        this.#text = this.#text.slice(cut + 1);
        this.#from = PART_LENGTH;
        this.#lookAt = 0;
        yield items;
      } else {
        // At least twice as long next time, so that all tries together cost no more than two.
        this.#from = 2 * cut;
      }
    }
  }

  /** The list with the items that are left. @throws Unavailable */
  end(): Fields {
    const text = (this.#head ?? '') + this.#text + this.#decoder.end();
    let value: unknown;
    try {
      value = parseObjects(text, itemsIn);
    } catch (error) {
      throw this.#error(`the answer is not JSON: ${errorMessage(error)}`);
    }
    if (!isFields(value)) throw this.#error('the answer is not an object');
    return value;
  }

  #findHead(): void {
    if (this.#head !== undefined || this.#from === Infinity) return;
    const found = this.#text.indexOf(ITEMS, this.#from);
    if (found === -1) {
      this.#foundNothing(ITEMS);
      return;
    }
    const head = this.#text.slice(0, found + ITEMS.length);
    if (!isFields(valueOf(`${head}]}`))) {
      // Somewhere within: it is parsed as a whole.
      this.#from = Infinity;
      return;
    }
    this.#head = head;
    this.#text = this.#text.slice(head.length);
    this.#from = PART_LENGTH;
  }

  /** Where a part ends; -1: not in what has come. */
  #nextCut(): number {
    const found = this.#text.indexOf(BETWEEN, this.#from);
    if (found !== -1) return found + 1;
    this.#foundNothing(BETWEEN);
    return -1;
  }

  /** A peer may send what is never found: all looks together cost no more than a few of the last. */
  #foundNothing(wanted: string): void {
    const { length } = this.#text;
    this.#from = Math.max(this.#from, length - wanted.length);
    this.#lookAt = length > OFTEN_LOOKED_AT ? length * 1.5 : 0;
  }

  #error(message: string): TributaryError {
    return new TributaryError('Unavailable', `${this.#options.what}: ${message}`);
  }
}

/** @param value a list, or items of one */
function itemsIn(value: unknown): readonly unknown[] {
  const items = isFields(value) ? value['items'] : value;
  return Array.isArray(items) ? items : [];
}

/** Undefined: it is not JSON. */
function valueOf(text: string): unknown {
  try {
    return parseObjects(text, itemsIn);
  } catch {
    return undefined;
  }
}
