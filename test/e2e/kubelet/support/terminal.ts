/** A person at a terminal: the program of script(1) whose pseudo-terminal kubectl runs on. */
import { readFileSync, readlinkSync } from 'node:fs';

import { runProgram, type Program } from '../../../../lab/demo/program.ts';
import { until } from '../../../support/e2e/until.ts';

/** Types the question again and again until what is printed has the answer. */
export async function untilAnswer(terminal: Program, question: string, answer: string): Promise<void> {
  await until(
    `the terminal answers "${answer}"`,
    async () => {
      terminal.write(`${question}\n`);
      return Promise.resolve(terminal.stdout.includes(answer));
    },
    { seen: async () => Promise.resolve({ stdout: terminal.stdout, stderr: terminal.stderr }) },
  );
}

/** Changes the size of the window. */
export async function resize(terminal: Program, size: { rows: number; columns: number }): Promise<void> {
  const { pid } = terminal;
  const [shell] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const device = readlinkSync(`/proc/${shell}/fd/0`);
  await runProgram(['stty', '-F', device, 'rows', String(size.rows), 'cols', String(size.columns)]);
}
