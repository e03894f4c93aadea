/** Counts of tests, as tools/jest/closing-line.mjs writes them and as they are added up. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Reads lines of `passed failed skipped`; undefined where there is none, as after a crash of Jest itself. */
export function readTally(text: string): Tally | undefined {
  return text
    .split('\n')
    .map((line) => /^(\d+) (\d+) (\d+)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, passed, failed, skipped]) => ({
      passed: Number(passed),
      failed: Number(failed),
      skipped: Number(skipped),
    }))
    .reduce<Tally | undefined>((sum, tally) => addTally(tally, sum), undefined);
}

export function addTally(a: Tally, b: Tally = { passed: 0, failed: 0, skipped: 0 }): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** A suite that failed without a failed test (it crashed, or printed no count) is a failure nevertheless. */
export function suiteResult(tally: Tally | undefined, ok: boolean): Tally {
  const counted = tally ?? { passed: 0, failed: 0, skipped: 0 };
  return ok || counted.failed > 0 ? counted : { ...counted, failed: 1 };
}

export const closingLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;
