/** The code blocks of documents that are for a shell: what people type, and what they are told that it prints. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT: string = join(import.meta.dirname, '..', '..', '..', '..');

/** Decisions show no commands; the others are generated, and their examples have tests of their own. */
const OTHERS = /^docs\/(?:decisions|reference|conformance)\b/;

/** All whose blocks are run, from the root. */
export const DOCUMENTS: readonly string[] = globSync(['README.md', 'docs/**/*.md', 'examples/**/README.md'], {
  cwd: ROOT,
})
  .filter((path) => !OTHERS.test(path))
  .toSorted();

export interface Block {
  readonly document: string;
  /** Of its first line of text, counted from 1. */
  readonly line: number;
  /** Whether it shows a prompt, and what is printed. */
  readonly isConsole: boolean;
  /** Without the indentation of its fence. */
  readonly text: string;
}

/** What is typed in a console, and the lines that follow it. */
export interface Typed {
  readonly command: string;
  readonly printed: readonly string[];
}

const FENCE = /^([ \t]*)```(\w*)/;
const SHELLS = new Set(['sh', 'console', 'bash', 'shell']);

export const blocksOf = (document: string): Block[] =>
  blocksIn(document, readFileSync(join(ROOT, document), 'utf8'));

export function blocksIn(document: string, markdown: string): Block[] {
  const found: Block[] = [];
  let open: { indent: string; language: string; line: number; lines: string[] } | undefined;
  for (const [index, raw] of markdown.split('\n').entries()) {
    const [isFence, indent = '', language = ''] = FENCE.exec(raw) ?? [];
    if (isFence === undefined) {
      open?.lines.push(raw.startsWith(open.indent) ? raw.slice(open.indent.length) : raw);
    } else if (open === undefined) {
      open = { indent, language, line: index + 2, lines: [] };
    } else {
      const { line, lines } = open;
      if (SHELLS.has(open.language))
        found.push({ document, line, isConsole: open.language === 'console', text: lines.join('\n') });
      open = undefined;
    }
  }
  return found;
}

/** The commands of a console, here-documents and continued lines included. */
export function typedIn(text: string): Typed[] {
  const found: { command: string; printed: string[] }[] = [];
  let ending: string | undefined;
  for (const line of text.split('\n')) {
    const last = found.at(-1);
    const isMore = last !== undefined && (ending !== undefined || last.command.endsWith('\\'));
    if (isMore) last.command += `\n${line}`;
    else if (line.startsWith('$ ')) found.push({ command: line.slice(2), printed: [] });
    else last?.printed.push(line);
    if (line === ending) ending = undefined;
    else ending ??= isMore || line.startsWith('$ ') ? /<<'?(\w+)/.exec(line)?.[1] : undefined;
  }
  return found;
}
