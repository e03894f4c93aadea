/** What a benchmark is: what it compares, and what it has found. */

/** Sizes that a person may choose, such as `pods: 1000`. */
export type Parameters = Readonly<Record<string, number>>;

/** Of a parameter, which is always a whole number. */
export interface Limit {
  /** Default: 1. */
  readonly least?: number;
  readonly most?: number;
}

export interface Bench<P extends Parameters = Parameters> {
  /** As in `make bench BENCH=burst,steady`. */
  readonly name: string;
  readonly title: string;
  /** What is compared with what, and how; Markdown for the document. */
  readonly what: string;
  /** Those that `--set NAME=NUMBER` may change. */
  readonly parameters: P;
  /** Where it works with 0, or not with all numbers from 1 on. */
  readonly limits?: Readonly<Partial<Record<keyof P, Limit>>>;
  /** Why it cannot run here, such as without root. */
  problem?(parameters: P): string | undefined;
  run(given: Given<P>): Promise<Found>;
}

export interface Given<P extends Parameters = Parameters> {
  readonly parameters: P;
  /** In each, all contenders take their turn. */
  readonly rounds: number;
  /** The folder of another checkout: its program takes part, as `before`. */
  readonly before?: string | undefined;
  /** Programs of other systems which take part. */
  readonly others: readonly OtherProgram[];
  /** Of Node.js for the program beside those of its image, such as --cpu-prof. */
  readonly nodeFlags: readonly string[];
  readonly say: (line: string) => void;
  /** Somebody wants it to end: what is no lab is put away then. Labs are taken down in any case. */
  readonly signal: AbortSignal;
}

/** How to start another system in a benchmark's clusters. None is shipped. */
export interface OtherProgram {
  readonly name: string;
  /** For `sh -c`; what it is told in its environment is in bench/README.md. It runs until it gets SIGTERM. */
  readonly command: string;
}

export interface Found {
  readonly measured: readonly Measured[];
  readonly goals: readonly Goal[];
  readonly curves?: readonly Curve[];
  /** Of the kind “nothing was written”; a sentence each. */
  readonly remarks?: readonly string[];
}

/** One figure of one contender, a value for each round. */
export interface Measured {
  readonly contender: string;
  /** With its unit: `CPU ms per pod`. */
  readonly figure: string;
  readonly values: readonly number[];
  /** After the decimal point; 1 if not said. */
  readonly digits?: number;
}

/** What is to be reached: the median of all rounds counts. */
export interface Goal {
  /** Stable; a missed goal is explained in bench/bounds/ID.md. */
  readonly id: string;
  /** `pods/s until all are Ready, of the null mirror’s`. */
  readonly what: string;
  readonly values: readonly number[];
  readonly atLeast?: number;
  readonly atMost?: number;
  /** After the decimal point; 2 if not said. */
  readonly digits?: number;
}

/** How a figure grows. */
export interface Curve {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly {
    readonly name: string;
    readonly points: readonly (readonly [number, number])[];
  }[];
}

/**
 * All, in the order of that round. Whoever comes next has to live with what the one before has left behind, so everybody follows everybody
 * else as often as any other: after as many rounds as there are contenders, or twice as many where their number is odd (E. J. Williams,
 * 1949, designs balanced for the estimation of residual effects).
 */
export const inTurn = <T>(all: readonly T[], round: number): T[] => {
  const count = all.length;
  // From the ends inwards: 0, 4, 1, 3, 2.
  const zigzag = all.map((_, place) => (place % 2 === 0 ? place / 2 : count - (place + 1) / 2));
  const isMirrored = count % 2 === 1 && Math.floor(round / count) % 2 === 1;
  const places = isMirrored ? zigzag.toReversed() : zigzag;
  return places.flatMap((place) => {
    const at = (place + round) % count;
    return all.slice(at, at + 1);
  });
};
