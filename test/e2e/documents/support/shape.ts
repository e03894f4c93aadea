/** Whether a command has printed what a document shows: the same, but for what differs each time. */

const HEADER = /^[A-Z][A-Z -]*(?: {2,}[A-Z][A-Z -]*)+$/;

/** From what is most special to what is least. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, 'ADDRESS'],
  [/\b(?:[a-z2-7]{4}-){6}[a-z2-7]{2}\b/g, 'FINGERPRINT'],
  [/\b[a-z2-7]{26}\b/g, 'ID'],
  [/-[a-f0-9]{8,10}-[a-z0-9]{5}\b/g, '-SUFFIX'],
  [/\b(?:\d+[dhms])+\b/g, 'AGE'],
  [/\d+/g, 'N'],
  [/\s+/g, ' '],
];

export const shapeOf = (line: string): string =>
  VARYING.reduce((text, [pattern, name]) => text.replaceAll(pattern, name), line.trim());

/** Three dots in what a document shows stand for anything. */
function isShown(line: string, printed: readonly string[]): boolean {
  const parts = shapeOf(line)
    .split('...')
    .map((part) => RegExp.escape(part));
  const pattern = new RegExp(`^${parts.join('.*')}$`);
  return printed.some((one) => pattern.test(shapeOf(one)));
}

/** The lines that a document shows and the command has not printed. Of a table, `header` compares the columns alone. */
export function missing(
  shown: readonly string[],
  printed: string,
  only: 'header' | 'all' = 'all',
): readonly string[] {
  const lines = printed.split('\n');
  const wanted = shown.filter((line) => line.trim() !== '');
  const [first = ''] = wanted;
  return (only === 'header' && HEADER.test(first.trim()) ? [first] : wanted).filter(
    (line) => !isShown(line, lines),
  );
}
