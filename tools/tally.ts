/** Counts of tests, as tools/jest/closing-line.mjs writes them and as they are added up. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface FileTally extends Tally {
  /** From the begin of the file to its end. */
  readonly ms: number;
}

/** Reads lines of `passed failed skipped ms path`, by path. */
export function readTallies(text: string): Map<string, FileTally> {
  const matches = text.split('\n').map((line) => /^(\d+) (\d+) (\d+) (\d+) (.+)$/.exec(line));
  return new Map(
    matches
      .filter((match) => match !== null)
      .map(([, passed, failed, skipped, ms, path = '']) => [
        path,
        { passed: Number(passed), failed: Number(failed), skipped: Number(skipped), ms: Number(ms) },
      ]),
  );
}

/** The sum over all files; undefined where there is none, as after a crash of Jest itself. */
export const sumOf = (tallies: ReadonlyMap<string, Tally>): Tally | undefined =>
  [...tallies.values()].reduce<Tally | undefined>((sum, tally) => addTally(tally, sum), undefined);

export function addTally(a: Tally, b: Tally = { passed: 0, failed: 0, skipped: 0 }): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** A suite that failed without a failed test (it crashed, or printed no count) is a failure nevertheless. */
export function suiteResult(tally: Tally | undefined, ok: boolean): Tally {
  const counted = tally ?? { passed: 0, failed: 0, skipped: 0 };
  return ok || counted.failed > 0 ? counted : { ...counted, failed: 1 };
}

/** So many files that took longest, the slowest first. */
export function slowest(
  suites: readonly ReadonlyMap<string, FileTally>[],
  count: number,
): { readonly path: string; readonly ms: number }[] {
  return suites
    .flatMap((files) => [...files].map(([path, { ms }]) => ({ path, ms })))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, count);
}

export const closingLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;
