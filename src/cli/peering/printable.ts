/** Control characters, and what reverses or hides text: names and messages come from other clusters too. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** What may be shown in a terminal, on one line. */
export const printable = (text: string): string => text.replaceAll(UNPRINTABLE, '?');
