/** What a slow command waits for: one line that is rewritten on a terminal, elsewhere a line for each change. */
import type { Clock } from '../lib/clock.ts';
import type { CommandIo } from './command-line.ts';
import { printable } from './peering/terminal-text.ts';

/** Back to the first column, and everything after it away. */
const CLEAR = '\r\u001B[K';

export interface Progress {
  /** Says what is waited for now; may be called at every look, however often nothing has changed. */
  readonly show: (what: string) => void;
  /** To be called before anything else is printed, and at the end; nothing of it stays on a terminal. */
  readonly clear: () => void;
}

/** Not used with `-o`: it writes where the command's result goes. */
export function progressOf({ io, clock }: { io: CommandIo; clock: Clock }): Progress {
  let [last, since, isShown] = ['', 0, false];
  const isTerminal = io.columns !== undefined;
  return {
    show(what) {
      const line = printable(what);
      const isNew = line !== last;
      if (isNew) [last, since] = [line, clock.monotonic()];
      if (!isTerminal) {
        if (isNew) io.out(`  ${line}\n`);
        return;
      }
      io.out(`${CLEAR}${fitted(line, Math.floor((clock.monotonic() - since) / 1000), io.columns ?? 0)}`);
      isShown = true;
    },
    clear() {
      if (isShown) io.out(CLEAR);
      isShown = false;
    },
  };
}

/** On one line of the terminal: a line that wraps cannot be rewritten. The seconds are never cut off. */
function fitted(line: string, seconds: number, columns: number): string {
  const end = seconds < 1 ? '' : ` (${seconds} s)`;
  const room = Math.max(0, columns - 1 - '  '.length - end.length);
  const text = line.length <= room ? line : `${line.slice(0, Math.max(0, room - 1))}…`;
  return `  ${text}${end}`;
}
