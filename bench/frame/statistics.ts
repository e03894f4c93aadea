/** The few figures that describe many, and their place in a table. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** The smallest of the values that is at least as large as this share of them (nearest rank); NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export const spread = (values: readonly number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
});

/** Least squares: how much the second coordinate grows for one unit of the first. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (index: 0 | 1): number => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const covariance = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const variance = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return variance === 0 ? 0 : covariance / variance;
}

/**
 * How much steeper a line is between its last two points than between its first and the one before the last: 1 if it is straight.
 */
export function bend(points: readonly (readonly [number, number])[]): number {
  const [first, middle, last] = [points.at(0), points.at(-2), points.at(-1)];
  if (first === undefined || middle === undefined || last === undefined) return Number.NaN;
  return slope([middle, last]) / slope([first, middle]);
}

/** `12.3 (11.9–12.8)`: the median with the smallest and the largest. */
export function shown({ median, min, max }: Spread, digits = 1): string {
  const text = (value: number): string => value.toFixed(digits);
  return min === max ? text(median) : `${text(median)} (${text(min)}–${text(max)})`;
}

/** Columns as wide as their widest cell; the first is aligned left, all others right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return `${rows.map(line).join('\n')}\n`;
}
