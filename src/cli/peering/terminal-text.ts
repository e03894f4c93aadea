/** Control characters, and what reverses or hides text: names and messages come from other clusters too. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** What may be shown in a terminal, on one line. */
export const printable = (text: string): string => text.replaceAll(UNPRINTABLE, '?');

/** Columns as kubectl prints them: as wide as their widest cell, three blanks between. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows.map((cells) => cells.map(printable))];
  const widths = head.map((_, column) => Math.max(...lines.map((cells) => (cells[column] ?? '').length)));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
