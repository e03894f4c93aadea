/** Plots as SVG, readable on light and dark pages alike. Pure. */
import type { Curve, Goal } from './bench.ts';
import { isReached } from './goals.ts';
import { median } from './statistics.ts';

const FONT = 'font-family="sans-serif" font-size="12"';
const GREY = '#808890';
const COLOURS = ['#2f7ed8', '#d9822b', '#3d9970', '#a05fbf', '#c2453d', '#7a6a2f'];

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const text = (x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end' = 'start'): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${FONT} fill="${GREY}" text-anchor="${anchor}">${escaped(words)}</text>`;

const line = (from: readonly [number, number], to: readonly [number, number], more = ''): string =>
  `<line x1="${from[0].toFixed(1)}" y1="${from[1].toFixed(1)}" x2="${to[0].toFixed(1)}" y2="${to[1].toFixed(1)}" stroke="${GREY}" ${more}/>`;

const svg = (width: number, height: number, parts: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">\n${parts.join('\n')}\n</svg>\n`;

const GOALS = { width: 720, row: 26, left: 300, right: 30, top: 30 };
/** In the middle of a row is the goal, at its ends half and double of it. */
const OCTAVES = 1;

/**
 * Each round of each goal as a dot, and the median as a bar, on a scale of its own goal; better is always to the right. A goal
 * of nothing, as “no write”, has no such scale and is left out.
 */
export function goalPlot(goals: readonly Goal[]): string {
  const { width, row, left, right, top } = GOALS;
  const drawn = goals.filter((goal) => (goal.atLeast ?? goal.atMost ?? 0) > 0);
  const middle = left + (width - left - right) / 2;
  const x = (goal: Goal, value: number): number => {
    const better = goal.atLeast === undefined ? (goal.atMost ?? 1) / value : value / goal.atLeast;
    const octaves = Math.max(-OCTAVES, Math.min(OCTAVES, Math.log2(Math.max(better, 1e-6))));
    return middle + (octaves / OCTAVES) * ((width - left - right) / 2);
  };
  const height = top + drawn.length * row + 8;
  const rows = drawn.flatMap((goal, index) => {
    const y = top + index * row + row / 2;
    const colour = isReached(goal) ? COLOURS[2] : COLOURS[4];
    const at = x(goal, median(goal.values));
    return [
      text(left - 10, y + 4, `${goal.id}: ${shortened(goal.what)}`, 'end'),
      line([left, y], [width - right, y], 'stroke-opacity="0.25"'),
      ...goal.values.map(
        (value) =>
          `<circle cx="${x(goal, value).toFixed(1)}" cy="${y}" r="3.5" fill="${colour}" fill-opacity="0.45"/>`,
      ),
      `<rect x="${(at - 1.5).toFixed(1)}" y="${y - 8}" width="3" height="16" fill="${colour}"/>`,
    ];
  });
  return svg(width, height, [
    text(left, 16, 'half as good'),
    text(middle, 16, 'goal', 'middle'),
    text(width - right, 16, 'twice as good', 'end'),
    line([middle, top - 6], [middle, height - 4], 'stroke-dasharray="4 3"'),
    ...rows,
  ]);
}

const LONGEST = 46;
const shortened = (what: string): string =>
  what.length <= LONGEST ? what : `${what.slice(0, LONGEST - 1).trimEnd()}…`;

const CURVE = { width: 720, height: 300, left: 70, right: 160, top: 34, bottom: 44 };
const TICKS = 4;

/** Lines over a shared, linear pair of axes that begin at zero: whatever grows in proportion is straight. */
export function curvePlot({ title, x, y, lines }: Curve): string {
  const { width, height, left, right, top, bottom } = CURVE;
  const points = lines.flatMap((one) => one.points);
  const [mostX, mostY] = [
    roundUp(Math.max(...points.map(([at]) => at))),
    roundUp(Math.max(...points.map(([, at]) => at))),
  ];
  const place = ([px, py]: readonly [number, number]): [number, number] => [
    left + (px / mostX) * (width - left - right),
    height - bottom - (py / mostY) * (height - top - bottom),
  ];
  const ticks = Array.from({ length: TICKS + 1 }, (_, tick) => tick / TICKS).flatMap((share) => {
    const [tx] = place([share * mostX, 0]);
    const [, ty] = place([0, share * mostY]);
    return [
      line([left, ty], [width - right, ty], 'stroke-opacity="0.25"'),
      text(left - 8, ty + 4, number(share * mostY), 'end'),
      text(tx, height - bottom + 18, number(share * mostX), 'middle'),
    ];
  });
  const drawn = lines.flatMap((one, index) => {
    const colour = COLOURS[index % COLOURS.length] ?? GREY;
    const path = one.points
      .map((point) =>
        place(point)
          .map((at) => at.toFixed(1))
          .join(','),
      )
      .join(' ');
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...one.points.map((point) => {
        const [cx, cy] = place(point);
        return `<circle cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="3" fill="${colour}"/>`;
      }),
      `<rect x="${width - right + 14}" y="${top + index * 20 - 9}" width="10" height="10" fill="${colour}"/>`,
      text(width - right + 30, top + index * 20, one.name),
    ];
  });
  return svg(width, height, [
    text(left, 16, `${title}: ${y}`),
    text(left + (width - left - right) / 2, height - 6, x, 'middle'),
    ...ticks,
    ...drawn,
  ]);
}

/** To one, two, five or ten times a power of ten. */
function roundUp(most: number): number {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((factor) => factor * power >= most) ?? 10) * power;
}

const number = (value: number): string =>
  value >= 10_000 ? `${value / 1000}k` : String(Number(value.toPrecision(3)));
