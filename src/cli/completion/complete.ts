/**
 * `tributary __complete WORD...`: what may stand at the cursor, in the form that kubectl reads from its plug-ins (cobra's): a line
 * for each candidate, its text behind a tab, then `:` with a directive. Never fails, and says nothing else.
 */
import type { CommandEnvironment, CommandSpec } from '../spec.ts';
import { printable } from '../peering/terminal-text.ts';
import { type Candidate, type Wanted, wantedAt } from './candidates.ts';

/** The first word of the command line that asks for candidates. */
export const COMPLETE = '__complete';

/** Cobra's ShellCompDirective: no blank after it; no names of files. */
const NO_SPACE = 2;
const NO_FILES = 4;

/** Of the names in a kubeconfig any text is possible; what a shell would have to quote is left out. */
const PLAIN = /^[A-Za-z0-9._:@/+=,-]+$/;

export async function completed(
  program: CommandSpec,
  words: readonly string[],
  environment: Pick<CommandEnvironment, 'open' | 'clock' | 'signal'>,
): Promise<string> {
  const wanted = wantedAt(program, words);
  if (wanted === undefined) return `:${NO_FILES}\n`;
  const cursor = words.at(-1) ?? '';
  const all = [...wanted.candidates, ...(await namesFor(wanted, environment))];
  const lines = all
    .filter(({ value }) => value.startsWith(cursor) && PLAIN.test(value))
    .map(({ value, text = '' }) => (text === '' ? `${value}\n` : `${value}\t${printable(text)}\n`));
  const directive = (wanted.names === 'files' ? 0 : NO_FILES) + (wanted.isList ? NO_SPACE : 0);
  return `${lines.join('')}:${directive}\n`;
}

async function namesFor(
  { names, where, prefix }: Wanted,
  environment: Pick<CommandEnvironment, 'open' | 'clock' | 'signal'>,
): Promise<Candidate[]> {
  if (names === undefined || names === 'files') return [];
  try {
    // API types and their client are of no use for commands and options, which are most of what is asked for.
    const { namesOf } = await import('./names.ts');
    const taken = new Set(prefix.replace(/^--[a-z0-9-]+=/, '').split(','));
    const found = await namesOf(names, where, environment);
    return found
      .filter(({ value }) => !taken.has(value))
      .map(({ value, text }) => ({ value: prefix + value, ...(text !== undefined && { text }) }));
  } catch {
    // A cluster that is away or slow, or a right that is missing: a prompt is no place to say so.
    return [];
  }
}
