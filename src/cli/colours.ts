/** Colours, where the terminal shows them and its owner wants them. */
import type { CommandIo } from './command-line.ts';

const CODES = { bold: 1, red: 31, green: 32, yellow: 33, dim: 2 } as const;

export type Paint = (colour: keyof typeof CODES, text: string) => string;

/** Text comes out as it is where there are no colours. */
export const painter = ({ hasColours }: Pick<CommandIo, 'hasColours'>): Paint =>
  hasColours === true ? (colour, text) => `\u001B[${CODES[colour]}m${text}\u001B[0m` : (_, text) => text;
