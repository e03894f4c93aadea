/** How a stored result is had again, in words and as a command. Pure. */
import type { Found, Parameters } from './bench.ts';
import type { Done } from './run.ts';

/** Where docs/benchmarks.md says that the version before is to be. */
export const BEFORE_FOLDER = '../before';

/** Whether the program of another checkout took part: `before`, `cluster, before`. */
export const hasBefore = ({ measured }: Found): boolean =>
  measured.some(({ contender }) => /(?:^|, )before(?:,|$)/u.test(contender));

/** Those that are not as the benchmark has them today. */
export const changedSizes = (parameters: Parameters, defaults: Parameters): [name: string, value: number][] =>
  Object.entries(parameters).filter(([name, value]) => defaults[name] !== value);

/** What repeats it. */
export function repeatCommand(
  { name, rounds, parameters, found }: Pick<Done, 'name' | 'rounds' | 'parameters' | 'found'>,
  defaults: Parameters,
): string {
  const sizes = changedSizes(parameters, defaults).map(([key, value]) => `${key}=${value}`);
  return [
    `make bench BENCH=${name} ROUNDS=${rounds}`,
    ...(sizes.length === 0 ? [] : [`SET=${sizes.join(',')}`]),
    ...(hasBefore(found) ? [`BEFORE=${BEFORE_FOLDER}`] : []),
  ].join(' ');
}

/** Says that goals were meant for other sizes; nothing where none was changed, or where there are no goals. */
export function sizesNote(
  { parameters, found }: Pick<Done, 'parameters' | 'found'>,
  defaults: Parameters,
): string {
  const changed = changedSizes(parameters, defaults).map(
    ([name, value]) => `${name} is ${value} instead of ${defaults[name] ?? 'none'}`,
  );
  return changed.length === 0 || found.goals.length === 0
    ? ''
    : `Goals are meant for the default parameters; here ${changed.join(' and ')}.`;
}

const MINUTE = 60;
const LONG = 90;

/** `39 s`, `12 min`, `2 h 5 min`. */
export function durationText(seconds: number): string {
  if (seconds < LONG) return `${seconds} s`;
  const minutes = Math.round(seconds / MINUTE);
  const [hours, rest] = [Math.floor(minutes / MINUTE), minutes % MINUTE];
  return [hours === 0 ? '' : `${hours} h`, rest === 0 ? '' : `${rest} min`]
    .filter((part) => part !== '')
    .join(' ');
}

export const roundsText = (rounds: number): string => (rounds === 1 ? '1 round' : `${rounds} rounds`);
