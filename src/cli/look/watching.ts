/** `--watch`: the same page again and again. */
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Options } from '../command.ts';
import { EXIT } from '../command-line.ts';
import type { Session } from '../peering/environment.ts';
import { printable } from '../peering/terminal-text.ts';

export const WATCH: Options = {
  watch: { short: 'w', text: 'go on: draw it again when it has changed, until Ctrl-C' },
};

export interface Page {
  text: string;
  /** What the command would exit with. */
  code: number;
}

const EVERY_MS = 2000;
/** To the upper left corner, and everything after it away. */
const REDRAW = '\u001B[H\u001B[J';

/**
 * Prints the page once, or whenever it has changed until somebody interrupts: on a terminal in the place of the last one.
 * While the API server does not answer, the last page stays, with a line that says so.
 */
export async function showPage(
  isWatched: boolean,
  session: Session,
  make: () => Promise<Page>,
): Promise<number> {
  const { io, clock, signal } = session;
  if (!isWatched) {
    const { text, code } = await make();
    io.out(text);
    return code;
  }
  let last: Page = { text: '', code: EXIT.failed };
  let shown = '';
  while (!signal.aborted) {
    try {
      last = await make();
      shown = show(last.text, shown, session);
    } catch (error) {
      if (signal.aborted) break;
      if (!hasCode(error, 'Unreachable', 'Unavailable', 'TooManyRequests')) throw error;
      const { text } = last;
      shown = show(
        `${text}The API server does not answer: ${printable(errorMessage(error))}\n`,
        shown,
        session,
      );
    }
    await clock.sleep(EVERY_MS, signal).catch(() => {});
  }
  return last.code;
}

function show(text: string, before: string, { io }: Session): string {
  if (text === before) return before;
  if (io.columns !== undefined) io.out(`${REDRAW}${text}`);
  else io.out(before === '' ? text : `\n${text}`);
  return text;
}
