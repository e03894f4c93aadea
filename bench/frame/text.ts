/** What a benchmark has found, for a terminal and as a table of the document. */
import type { Found, Measured, Parameters } from './bench.ts';
import { goalText, isReached, valueText } from './goals.ts';
import { roundsText, sizesNote } from './repeat.ts';
import type { Done } from './run.ts';
import { shown, spread, table } from './statistics.ts';

/** A row for each figure, a column for each contender, with a head. */
export function figureRows({ measured }: Found): string[][] {
  const contenders = [...new Set(measured.map(({ contender }) => contender))];
  const figures = [...new Set(measured.map(({ figure }) => figure))];
  const cell = (figure: string, contender: string): string => {
    const one = measured.find((each) => each.figure === figure && each.contender === contender);
    return one === undefined ? '' : valueOf(one);
  };
  const rows = figures.map((figure) => [figure, ...contenders.map((contender) => cell(figure, contender))]);
  return [['', ...contenders], ...rows];
}

const valueOf = ({ values, digits = 1 }: Measured): string =>
  values.length === 0 ? '' : shown(spread(values), digits);

export const goalRows = ({ goals }: Found): string[][] => [
  ['goal', 'what', 'wanted', 'median (least–most)', ''],
  ...goals.map((goal) => [
    goal.id,
    goal.what,
    goalText(goal),
    valueText(goal),
    isReached(goal) ? 'reached' : 'missed',
  ]),
];

/** @param defaults the parameters for which the goals are meant */
export function resultText(done: Done, defaults: Parameters): string {
  const { name, title, rounds, found } = done;
  const note = sizesNote(done, defaults);
  const head = `${name}: ${title}; ${roundsText(rounds)}, median (least–most)`;
  return `${head}\n${foundText(found)}${note === '' ? '' : `${note}\n`}`;
}

export function foundText(found: Found): string {
  const parts = [
    found.measured.length === 0 ? '' : table(figureRows(found)),
    found.goals.length === 0 ? '' : table(goalRows(found)),
    ...(found.remarks ?? []),
  ];
  return `${parts.filter((part) => part !== '').join('\n')}\n`;
}
