/** Counts of tests, as tools/jest/closing-line.mjs writes them and as they are added up. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface Failure {
  /** Its full name. */
  readonly test: string;
  /** The first lines of its message. */
  readonly message: string;
}

export interface FileTally extends Tally {
  readonly path: string;
  /** Duration of the file. */
  readonly ms: number;
  readonly failures: readonly Failure[];
}

/** Reads one line of JSON for each file, as tools/jest/closing-line.mjs writes them. */
export const readTallies = (text: string): FileTally[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as FileTally);

/** The sum over all files; undefined if there is none, for example after a crash of Jest itself. */
export const sumOf = (tallies: readonly Tally[]): Tally | undefined =>
  tallies.reduce<Tally | undefined>((sum, tally) => addTally(tally, sum), undefined);

export function addTally(a: Tally, b: Tally = { passed: 0, failed: 0, skipped: 0 }): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** A suite that failed without a failed test (it crashed, or printed no count) also counts as a failure. */
export function suiteResult(tally: Tally | undefined, ok: boolean): Tally {
  const counted = tally ?? { passed: 0, failed: 0, skipped: 0 };
  return ok || counted.failed > 0 ? counted : { ...counted, failed: 1 };
}

/** The files that took longest, the slowest first. */
export const slowest = (files: readonly FileTally[], count: number): FileTally[] =>
  files.toSorted((a, b) => b.ms - a.ms).slice(0, count);

/** The sum of each folder below test/, to the second level: `test/unit/kube`, `test/integration`. In the order of their paths. */
export function byFolder(
  files: readonly FileTally[],
): (Tally & { readonly folder: string; readonly ms: number })[] {
  const folderOf = ({ path }: FileTally): string => path.split('/').slice(0, -1).slice(0, 3).join('/');
  const folders = Map.groupBy(files, folderOf);
  return [...folders.keys()].toSorted().map((folder) => {
    const its = folders.get(folder) ?? [];
    const sum = its.reduce<Tally>((all, one) => addTally(one, all), { passed: 0, failed: 0, skipped: 0 });
    return { folder, ...sum, ms: its.reduce((ms, one) => ms + one.ms, 0) };
  });
}

/** Each failed test with its file, in the order of the files. */
export const failuresOf = (files: readonly FileTally[]): (Failure & { readonly path: string })[] =>
  files.flatMap(({ path, failures }) => failures.map((failure) => ({ path, ...failure })));

export const closingLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;
