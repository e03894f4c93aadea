/** Further apart, two words are two words, and no mistake. */
const MOST_APART = 3;

/** The one of these names that was probably meant: a few letters are wrong, and most are right. Letter case does not count. */
export function nearestOf(word: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, apart: distance(word.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, apart }) => apart <= MOST_APART && apart < Math.max(word.length, name.length) / 2)
    .toSorted((a, b) => a.apart - b.apart);
  return best?.name;
}

/** By Levenshtein: how many letters are to be put in, taken out or replaced. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [above, letter] of one.split('').entries()) {
    const next = [above + 1];
    for (let at = 1; at <= other.length; at += 1) {
      const replaced = (row[at - 1] ?? 0) + (other[at - 1] === letter ? 0 : 1);
      next.push(Math.min(replaced, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
