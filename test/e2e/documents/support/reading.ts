/** How a document is read: its blocks in the order in which a reader types them, and what the document takes for granted. */

/** What stands in a document for a value of the reader, and that value; a shell may have to find it out. */
export type Replacements = Readonly<Record<string, string>>;

export interface BlockOptions {
  readonly replace?: Replacements;
  /** Whose kubeconfig comes first. */
  readonly context?: string;
  /** A command whose output is its standard input. */
  readonly stdin?: string;
  /** It is run at a terminal, where this is typed each time it asks. */
  readonly answer?: string;
  /** Commands that do not end by themselves, by how their line begins, and what they print first. */
  readonly blocking?: Readonly<Record<string, RegExp>>;
  /** A command that must succeed, sooner or later, before these are stopped. */
  readonly meanwhile?: string;
  /** These are stopped when the document is at its end, not at the end of the block. */
  readonly stay?: true;
  /** What it must print, where the document shows nothing. */
  readonly prints?: RegExp;
  /** Compare only the columns of a table that the document shows. */
  readonly only?: 'header';
}

export interface BlockAct extends BlockOptions {
  /** How its first line begins, so that no other block of the document begins so. */
  readonly block: string;
}

/** Commands of nobody's document. */
export interface GivenAct {
  readonly given: string;
  readonly context?: string;
}

/** A command that is repeated until it prints this. */
export interface UntilAct {
  readonly until: string;
  readonly prints: RegExp;
  readonly context?: string;
}

export type Act = BlockAct | GivenAct | UntilAct;

export interface Reading {
  readonly document: string;
  /** Of a document that is read in several parts. */
  readonly part?: string;
  readonly context?: string;
  /** Where commands are typed; default: a folder with `deploy` and `examples`. */
  readonly folder?: string;
  readonly replace?: Replacements;
  readonly acts: readonly Act[];
}

export const titleOf = ({ document, part }: Reading): string =>
  part === undefined ? document : `${document}, ${part}`;

export const block = (beginning: string, options: BlockOptions = {}): BlockAct => ({
  block: beginning,
  ...options,
});
export const given = (command: string, context?: string): GivenAct => ({
  given: command,
  ...(context !== undefined && { context }),
});
export const until = (command: string, prints: RegExp, context?: string): UntilAct => ({
  until: command,
  prints,
  ...(context !== undefined && { context }),
});

/** The text with the reader's own values; a name is replaced only where it is a whole word. */
export const replaced = (text: string, ...all: readonly (Replacements | undefined)[]): string =>
  all
    .flatMap((one) => Object.entries(one ?? {}))
    .reduce(
      (done, [name, value]) =>
        done.replaceAll(new RegExp(`(?<!\\w)${RegExp.escape(name)}(?!\\w)`, 'g'), () => value),
      text,
    );
