import { plainText } from '../lib/untrusted.ts';

const MESSAGE = 500;
const WORD = 80;

/** A message, in one line, without control characters and without those that turn the order of text. */
export const line = (text: string, most: number = MESSAGE): string => plainText(text, most);

/** A name or a reason. */
export const word = (text: string): string => plainText(text, WORD);
