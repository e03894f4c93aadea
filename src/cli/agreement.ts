/**
 * One rule for what changes or removes more than one object: a person at a terminal is asked, and where there is none, --yes must say
 * that somebody wants it.
 */
import { TributaryError } from '../lib/errors.ts';
import type { OptionSpec } from './command.ts';
import type { CommandIo } from './command-line.ts';

export const YES: OptionSpec = { text: 'do not ask; needed where there is no terminal' };

/** Throws Invalid where nobody can be asked. `said`: what will be done, where it has not been shown. */
export async function agreed(
  { io, signal }: { io: CommandIo; signal: AbortSignal },
  { question, said }: { question: string; said?: string },
): Promise<boolean> {
  if (io.input?.isTerminal !== true) {
    const why = 'there is no terminal to ask on, so nothing was changed; a script has to add --yes';
    throw new TributaryError('Invalid', said === undefined ? why : `${said}; ${why}`);
  }
  const answer = await io.input.ask(`${said === undefined ? '' : `${said}.\n`}${question} [y/N] `, signal);
  return /^y(es)?$/iu.test(answer.trim());
}
