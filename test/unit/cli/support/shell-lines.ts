/** Lines of shell in documents, and which commands of ours they call. */

/** What people type in code blocks of sh and console, with its line number; lines that end in a backslash are joined. */
export function shellLines(markdown: string): { line: string; at: number }[] {
  const found: { line: string; at: number }[] = [];
  let language: string | undefined;
  let pending = '';
  for (const [index, raw] of markdown.split('\n').entries()) {
    const fence = /^\s*```(\w*)/.exec(raw);
    if (fence !== null) {
      language = language === undefined ? fence[1] : undefined;
      continue;
    }
    if (language !== 'sh' && language !== 'console' && language !== 'bash') continue;
    // In a console, only what follows the prompt is typed; the rest was printed.
    if (language === 'console' && pending === '' && !raw.startsWith('$ ')) continue;
    const line = pending + raw.replace(/^\$ /, '').trim();
    pending = line.endsWith('\\') ? line.slice(0, -1) : '';
    if (pending === '') found.push({ line, at: index + 1 });
  }
  return found;
}

const TOKEN = /\s*(?:(#.*)|([|;&()<>]+|\d>&?\d?)|((?:'[^']*'|"[^"]*"|\$\([^)]*\)|\\.|[^\s|;&()<>'"\\])+))/gy;

/** The words of each simple command of a line, as a shell cuts them; quotes are taken off, and nothing is replaced. */
export function commandsIn(line: string): string[][] {
  const commands: string[][] = [[]];
  for (const [, , operator, word] of line.matchAll(TOKEN)) {
    if (word !== undefined) commands.at(-1)?.push(word.replaceAll(/^['"]|['"]$/g, ''));
    // What follows < or > is a file.
    else if (operator !== undefined)
      commands.push(/^[\d<>&]*[<>]$/.test(operator) && operator !== '<(' ? ['file'] : []);
  }
  return commands.filter((words) => words.length > 0);
}

/** The arguments of each call of `tributary` or `kubectl tributary`. */
export const callsIn = (line: string): string[][] =>
  commandsIn(line).flatMap((words) => {
    const at = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
    const [first, second] = words.slice(at);
    if (first === 'tributary') return [words.slice(at + 1)];
    return first === 'kubectl' && second === 'tributary' ? [words.slice(at + 2)] : [];
  });
